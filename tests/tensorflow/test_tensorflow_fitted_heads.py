"""Jobs on TensorFlow whose first epoch fits the last layer: what comes of it, and the epochs behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from test_tensorflow_fine_tuning import NETWORK

from tests.fitted_heads import check_fitted_head, check_second_stage, new_workspace

NET = {"source": "file", "path": "net.py", "text": NETWORK}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_workspace(tmp_path_factory.mktemp("fitted") / "workspace", "tensorflow", NET)


def test_the_head_is_fitted_in_the_first_epoch(workspace: Path) -> None:
    check_fitted_head(workspace, "tensorflow", NET, ("model/fc/weights", "model/fc/biases"), turned=False)


@pytest.mark.nightly
def test_further_epochs_go_on_from_the_fitted_head(workspace: Path) -> None:
    check_second_stage(workspace, "tensorflow", NET)
