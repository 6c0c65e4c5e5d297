"""Which checkpoint of a model a name means is decided in one place, for exports, publishing and evaluations alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ziggurat.entities import NewJob
from ziggurat.errors import CheckpointError, JobError, MissingCheckpointError
from ziggurat.layout import best_given_name
from ziggurat.settings import Settings
from ziggurat.workspace.checkpoints import chosen_checkpoint
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.bootstrap import open_studio

_SPEC = {"kind": "train", "version": 1, "network": "mlp", "data": "digits"}


@pytest.fixture
def studio(tmp_path):
    with open_studio(Settings(workspace=tmp_path / "workspace"), start=False) as opened:
        yield opened


@pytest.fixture
def model(studio):
    (job,) = studio.training.create(JobRequest(spec=_SPEC))
    for step in (5, 10, 15):
        folder = Path(job.folder) / "checkpoints" / f"step-{step:08d}"
        folder.mkdir(parents=True)
        (folder / "state.json").write_text("{}")
        (folder / "arrays.npz").write_bytes(b"")
    return job


def named(job, **names):
    content = {name.replace("_", "-", 1): target for name, target in names.items()}
    (Path(job.folder) / "checkpoints" / "names.json").write_text(json.dumps(content))


def test_without_a_name_it_is_the_best_or_else_the_latest(model):
    assert chosen_checkpoint(model).name == "step-00000015"
    named(model, min_cost="step-00000010")

    assert chosen_checkpoint(model).name == "step-00000010"
    for name, wanted in (("best", 10), ("latest", 15), ("min-cost", 10), ("step-00000005", 5)):
        assert chosen_checkpoint(model, name).name == f"step-{wanted:08d}"


def test_names_may_come_one_by_one():
    assert best_given_name(name for name in ("kept", "min-cost")) == "min-cost"
    assert best_given_name(name for name in ("max-accuracy", "best")) == "best"
    assert best_given_name(iter(())) is None


@pytest.mark.parametrize("name", ["best", "step-00000007", "other"])
def test_a_name_that_is_none_is_refused_by_evaluations_too(studio, model, name):
    for choose in (chosen_checkpoint, lambda job, name: studio.evaluations.create(job.id, checkpoint=name)):
        with pytest.raises(MissingCheckpointError, match=f"There is no checkpoint `{name}`.*There are: step-00000005,"):
            choose(model, name)


def test_a_model_without_checkpoint_is_refused_like_no_model(studio, tmp_path):
    (waiting,) = studio.training.create(JobRequest(spec=_SPEC))
    new = NewJob(id="20260101-000000-0001", kind="dataset", name="pets", folder=str(tmp_path), spec={}, created=1.0)
    dataset = studio.datasets.take_in(new, {})
    for choose in (chosen_checkpoint, lambda job: studio.evaluations.create(job.id)):
        with pytest.raises(CheckpointError, match=r"has no checkpoint yet.*Let it train first\."):
            choose(waiting)
        with pytest.raises(JobError, match="; this needs a job of kind train"):
            choose(dataset)
