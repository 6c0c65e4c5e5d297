"""Jobs that are fine-tuned on TensorFlow: frozen epochs, stopped and resumed anywhere."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from test_tensorflow_fine_tuning import NETWORK

from tests.fine_tuned_jobs import STEPS, arrays, backbone_rates, costs, new_job, train

NET = {"source": "file", "path": "net.py", "text": NETWORK}
TUNED = {"frozen_epochs": 2, "backbone_rate": 0.5, "layer_decay": 0.8}
FIELDS = {"network": NET, "optimizer": {"name": "adam"}, "learning_rate": 0.003, "ema_decay": 0.9, "fine_tuning": TUNED}


@pytest.mark.nightly
def test_a_stopped_job_goes_on_exactly(tmp_path: Path) -> None:
    pretrained = new_job(tmp_path / "pretrained", "tensorflow", network=NET, epochs=1)
    train(pretrained)
    whole = new_job(tmp_path / "whole", "tensorflow", pretrained=str(pretrained), **FIELDS)
    train(whole)
    assert backbone_rates(whole) == [(0, 0), (2 * STEPS, 1)]
    for step in (STEPS - 2, 2 * STEPS, 2 * STEPS + 1):
        folder = new_job(tmp_path / str(step), "tensorflow", pretrained=str(pretrained), **FIELDS)
        train(folder, stop_after=step)
        if step < 2 * STEPS:
            first, now = arrays(pretrained), arrays(folder)
            backbone = {name for name in first if name in now and name.startswith(("model/conv1", "model/conv2"))}
            assert "model/conv1/BatchNorm/moving_mean" in backbone
            for name in backbone:
                np.testing.assert_array_equal(first[name], now[name], err_msg=name)
        train(folder)
        one, other = arrays(whole), arrays(folder)
        assert one.keys() == other.keys()
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name], err_msg=f"{name}, stopped after {step}")
        assert costs(folder) == costs(whole)
