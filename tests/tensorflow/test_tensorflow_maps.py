"""Maps of datasets by the features of networks that were trained on TensorFlow."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tensorflow_jobs import quick_job

from tests.unit.map_samples import check_map_by_model


def test_features_of_a_trained_model_make_a_map(tmp_path: Path) -> None:
    job = quick_job(tmp_path / "job", "lenet", steps=40, learning_rate=0.02)
    check_map_by_model(job, tmp_path, "tensorflow")
