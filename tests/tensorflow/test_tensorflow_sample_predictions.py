"""Sample predictions of TensorFlow networks: of classifiers only, and without any effect on the training."""

import numpy as np
import pytest
from tensorflow_jobs import AUTOENCODER
from tensorflow_networks import SMALL

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities.sample_predictions import read_sample_predictions
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.build import build_job
from ziggurat.worker.heartbeat_thread import StepClock


def trained(folder, text, **fields):
    """Train in this process; return the job folder and the arrays of its last checkpoint."""
    spec = {
        "kind": "train",
        "version": 1,
        "backend": "tensorflow",
        "network": {"source": "file", "path": "mine.py", "text": text},
        "data": {"source": "digits", "options": {"size": 8}},
        "epochs": 2,
        "batch_size": 64,
        "monitors": ["events"],
        **fields,
    }
    folder.mkdir()
    parsed = parse_spec(spec)
    assert isinstance(parsed, TrainSpec)
    job = build_job(parsed, JobFolder(folder), StepClock(), Settings(progress="none"))
    job.trainer.train(parsed.epochs)
    job.trainer.program.close()
    newest = CheckpointStore(JobFolder(folder).checkpoints, writable=False).latest()
    assert newest is not None
    return JobFolder(folder), newest[1].arrays


@pytest.mark.parametrize("fields", [{}, {"ema_decay": 0.9, "gradient_accumulation_steps": 2, "batch_size": 16}])
def test_weights_are_bit_equal_with_and_without(tmp_path, fields):
    folder, arrays = trained(tmp_path / "with", SMALL, **fields)
    _, plain = trained(tmp_path / "without", SMALL, sample_predictions=False, **fields)

    found = read_sample_predictions(folder.sample_predictions)
    assert [each["epoch"] for each in found.records] == [0, 1, 2]
    assert len({each.label for each in found.samples}) == 9
    assert arrays.keys() == plain.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, plain[name], err_msg=name)


def test_a_network_without_class_scores_has_none(tmp_path):
    text = AUTOENCODER.replace("784", "64").replace("28, 28", "8, 8")
    folder, _ = trained(tmp_path / "job", text, epochs=1)
    assert not folder.sample_predictions.exists()
