"""Jobs on PyTorch whose first epoch fits the last layer: what comes of it, kept features, stops, kills, refusals."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from test_torch_fine_tuning import NETWORK

from tests.fine_tuned_jobs import STEPS, arrays, new_job, train
from tests.fitted_heads import (
    FIT,
    check_fitted_head,
    check_second_stage,
    curve,
    fitting,
    new_workspace,
    refit,
    stages,
    stop_in_features,
    stored,
    train_features,
)
from ziggurat.errors import ConfigurationError

NET = {"source": "file", "path": "net.py", "text": NETWORK}
_KILLED = NETWORK.replace(
    "    def forward(self, x):\n",
    """    def forward(self, x):
        import os, signal
        if self.runs == 0 and os.path.exists({flag!r}):
            os.remove({flag!r})
            os.kill(os.getpid(), signal.SIGKILL)
        self.runs -= len(x) > 2 and not self.training
""",
).replace("        self.conv1", "        self.runs = 5\n        self.conv1", 1)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return new_workspace(tmp_path / "workspace", "torch", NET)


def test_the_head_is_fitted_in_the_first_epoch(workspace: Path) -> None:
    check_fitted_head(workspace, "torch", NET, ("model/fc.weight", "model/fc.bias"), turned=True)


def test_further_epochs_go_on_from_the_fitted_head(workspace: Path) -> None:
    check_second_stage(workspace, "torch", NET)


def test_features_of_a_backbone_are_computed_once(workspace: Path) -> None:
    train(fitting(workspace, "one", "torch", NET))
    (file,) = stored(workspace)
    other = fitting(workspace, "other", "torch", NET, seed=4, augmentation={"flip": "fliplr"}, optimizer="adam")
    train(other)
    assert stored(workspace) == [file]
    assert not any(stage.startswith("Features") for stage in stages(other))
    assert curve(other, "validation_accuracy")


def test_other_preprocessing_has_features_of_its_own(workspace: Path) -> None:
    train(fitting(workspace, "one", "torch", NET))
    train(fitting(workspace, "other", "torch", NET, preprocessing={"mean": "pixel"}))
    assert len(stored(workspace)) == 2


def test_a_job_outside_of_a_workspace_keeps_no_features(tmp_path: Path, workspace: Path) -> None:
    alone = new_job(
        tmp_path / "alone",
        "torch",
        network=NET,
        epochs=1,
        fine_tuning=FIT,
        pretrained=str(workspace / "jobs" / "first"),
    )
    train(alone)
    assert curve(alone, "validation_accuracy")[0][0] == STEPS
    assert not stored(workspace)
    assert not [*tmp_path.rglob("features")]


def test_a_stop_while_features_are_computed_loses_nothing(workspace: Path) -> None:
    whole = fitting(workspace, "whole", "torch", NET)
    train(whole)
    for file in stored(workspace):
        file.unlink()
    folder = fitting(workspace, "stopped", "torch", NET)
    assert stop_in_features(folder) == "stopped"
    assert not stored(workspace)
    train(folder)
    np.testing.assert_array_equal(arrays(folder)["model/fc.weight"], arrays(whole)["model/fc.weight"])


def test_a_kill_while_features_are_computed_loses_nothing(tmp_path: Path, workspace: Path) -> None:
    flag = tmp_path / "flag"
    network = {**NET, "text": _KILLED.format(flag=str(flag))}
    folder = fitting(workspace, "killed", "torch", network)
    command = [sys.executable, "-m", "ziggurat.worker", str(folder)]
    flag.touch()
    assert subprocess.run(command, check=False, capture_output=True).returncode == -signal.SIGKILL
    assert not stored(workspace)
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert len(stored(workspace)) == 1
    assert curve(folder, "validation_accuracy")[-1][0] == STEPS


def test_class_weights_and_rare_classes_count_in_the_fit(workspace: Path) -> None:
    by_class = [5.0, *[1.0] * 9]
    folder = fitting(workspace, "weighted", "torch", NET, class_weights=by_class)
    train(folder)
    weights = np.array(by_class)[train_features(folder)[1]]
    wanted = refit(folder, sample_weights=weights)
    np.testing.assert_allclose(arrays(folder)["model/fc.weight"].T, wanted.weights, rtol=1e-3, atol=1e-4)
    assert np.abs(wanted.weights - refit(folder).weights).max() > 1e-3


MASKED = NETWORK.replace("return self.fc(self.dropout(x.flatten(1)))", "return self.fc(x.flatten(1)).log_softmax(1)")


def test_a_network_without_a_linear_end_is_refused(workspace: Path) -> None:
    folder = fitting(workspace, "masked", "torch", {**NET, "text": MASKED})
    with pytest.raises(ConfigurationError, match="The last layer of this network is not one fully connected layer"):
        train(folder)
    assert not stored(workspace)
