"""A whole training by default keeps its best checkpoint, notices that it diverged, and says both."""

from __future__ import annotations

import json

import numpy as np
import pytest
from worker_jobs import end_of, events_of, make_data, make_job

from ziggurat.backends.null_info import INFO
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.events import CheckpointSaved, DivergenceNoticed, ScalarLogged
from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs.files import load_spec
from ziggurat.worker.build import data_of, read_pretrained
from ziggurat.worker.commands.trained import open_trained_job
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest
from ziggurat.workspace.workspace import open_folders

EPOCHS = 16
"""The rate becomes three hundred times larger after the first half."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def ruined(data, tmp_path_factory):
    """Return the folder of a training that was ruined half-way, with the checkpoints that are kept by default."""
    job = make_job(
        tmp_path_factory.mktemp("ruined") / "job",
        data,
        epochs=EPOCHS,
        learning_rate=0.1,
        schedule={"policy": "step", "step_percent": 50, "gamma": 300},
        checkpoints={},
        early_stopping=None,
        callbacks=[],
    )
    assert main([str(job)], request=StopRequest()) == 0
    return job


def test_default_training_keeps_its_best_checkpoint(ruined):
    curve = {each.step: each.value for each in events_of(ruined, ScalarLogged) if each.tag == "validation_accuracy"}
    trained = {step: value for step, value in curve.items() if step > 0}
    best = min(step for step, value in trained.items() if value == max(trained.values()))
    store = CheckpointStore(JobFolder(ruined).checkpoints)

    assert [info.step for info in store.list()] == [best, *(6 * epoch for epoch in range(EPOCHS - 4, EPOCHS + 1))]
    assert store.names() == {"best": f"step-{best:08d}"}
    assert any(event.step == best and "best" in event.reason for event in events_of(ruined, CheckpointSaved))


def test_every_user_of_a_model_takes_the_best(ruined):
    best = best_checkpoint(JobFolder(ruined)).checkpoint
    weights = CheckpointStore(JobFolder(ruined).checkpoints).load(best.name).arrays
    from_it = read_pretrained(ruined, object(), INFO)

    assert open_trained_job(ruined).checkpoint == best.name
    assert all(np.array_equal(from_it[name], array) for name, array in weights.items())
    workspace = open_folders(Settings())
    assert workspace.outputs.checkpoint(str(ruined), "best").summary.name == best.name
    assert [each.name for each in workspace.outputs.checkpoints(str(ruined)) if each.best_by] == [best.name]
    assert workspace.jobs.get(str(ruined)).best_checkpoint.startswith(f"Best: step {best.step}, epoch {best.epoch} (")


def test_divergence_stands_in_the_reason_of_the_end(ruined):
    (noticed,) = events_of(ruined, DivergenceNoticed)
    end = end_of(ruined)

    assert end.outcome == "done"
    assert end.reason.startswith("all epochs are done. Diverged: the validation loss rose to ")
    assert f" at epoch {noticed.epoch} (best" in end.reason
    assert EPOCHS // 2 < noticed.epoch < EPOCHS
    assert open_folders(Settings()).jobs.get(str(ruined)).divergence.text in end.reason


def test_best_can_be_turned_off_as_in_jobs_of_before(data, tmp_path):
    job = make_job(tmp_path / "job", data, epochs=4, checkpoints={"keep_last": 2, "keep_best": None}, callbacks=[])
    assert json.loads((job / "spec.json").read_text())["checkpoints"]["keep_best"] is None

    assert main([str(job)], request=StopRequest()) == 0
    kept = CheckpointStore(JobFolder(job).checkpoints)
    assert ([info.step for info in kept.list()], kept.names()) == ([18, 24], {})
    assert best_checkpoint(JobFolder(job)).basis == "best_kept"


def test_best_without_a_validation_is_the_newest(data, tmp_path):
    job = make_job(
        tmp_path / "job", data, validation={"every_epochs": 0}, checkpoints={}, early_stopping=None, callbacks=[]
    )

    assert main([str(job)], request=StopRequest()) == 0
    assert best_checkpoint(JobFolder(job)).text == "Newest: step 12, epoch 2 (no validation metric)"
    assert open_trained_job(job).checkpoint == "step-00000012"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy tells of the overflow
def test_a_loss_that_is_not_finite_leaves_its_last_batch(data, tmp_path):
    job = make_job(tmp_path / "job", data, learning_rate=1e200, checkpoints={}, early_stopping=None, callbacks=[])
    assert main([str(job)], request=StopRequest()) == 6

    found = open_folders(Settings()).outputs.last_batches(str(job))
    last = found.steps[-1]
    assert not np.isfinite(last.values["cost"])
    assert (found.split, found.inputs, found.classes) == ("train", "image-classification", 10)
    assert last.arrays["batch/1"].finite
    split = data_of(load_spec(JobFolder(job).spec)).source.splits["train"]
    with np.load(JobFolder(job).black_box / f"step-{last.step:08d}.npz") as arrays:
        assert [split.datapoint(row)[1] for row in found.rows] == arrays["batch/1"].tolist()
