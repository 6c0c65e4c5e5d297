"""Jobs that are fine-tuned on PyTorch: frozen epochs, stopped and resumed anywhere, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from test_torch_fine_tuning import NETWORK

from tests.fine_tuned_jobs import EPOCHS, STEPS, arrays, backbone_rates, costs, new_job, train
from ziggurat.errors import ConfigurationError

NET = {"source": "file", "path": "net.py", "text": NETWORK}
TUNED = {"frozen_epochs": 2, "backbone_rate": 0.5, "layer_decay": 0.8}
FIELDS = {"network": NET, "optimizer": {"name": "adam"}, "learning_rate": 0.003, "ema_decay": 0.9, "fine_tuning": TUNED}


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = new_job(tmp_path_factory.mktemp("pretrained") / "job", "torch", network=NET, epochs=1)
    train(folder)
    return folder


def test_a_stopped_job_goes_on_exactly(tmp_path: Path, pretrained: Path):
    whole = new_job(tmp_path / "whole", "torch", pretrained=str(pretrained), **FIELDS)
    train(whole)
    assert backbone_rates(whole) == [(0, 0), (2 * STEPS, 1)]
    assert arrays(whole)["ziggurat/backbone_rate"] == 1
    for step in (STEPS - 2, STEPS, 2 * STEPS, 2 * STEPS + 1):
        folder = new_job(tmp_path / str(step), "torch", pretrained=str(pretrained), **FIELDS)
        train(folder, stop_after=step)
        assert arrays(folder)["ziggurat/backbone_rate"] == (0 if step < 2 * STEPS else 1)
        train(folder)
        one, other = arrays(whole), arrays(folder)
        assert one.keys() == other.keys()
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name], err_msg=f"{name}, stopped after {step}")
        assert costs(folder) == costs(whole)
        assert backbone_rates(folder)[-1] == (2 * STEPS, 1)


def test_frozen_epochs_leave_the_backbone_as_it_came(tmp_path: Path, pretrained: Path):
    tuned = {**TUNED, "frozen_epochs": EPOCHS}
    folder = new_job(tmp_path / "job", "torch", pretrained=str(pretrained), **{**FIELDS, "fine_tuning": tuned})
    train(folder)
    first, last = arrays(pretrained), arrays(folder)
    for name in (each for each in first if each.startswith("model/") and "fc" not in each):
        np.testing.assert_array_equal(first[name], last[name], err_msg=name)
    assert (first["model/fc.weight"] != last["model/fc.weight"]).any()


def test_fine_tuning_without_a_pretrained_model_is_refused(tmp_path: Path):
    folder = new_job(tmp_path / "job", "torch", **FIELDS)
    with pytest.raises(ConfigurationError, match="`fine_tuning` needs a pretrained model"):
        train(folder)
