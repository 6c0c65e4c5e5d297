"""A job that goes on sees its images as it did before, whatever became of the data."""

import json
from pathlib import Path

import pytest

from ziggurat.layout import JobFolder
from ziggurat.settings import Settings
from ziggurat.specs import parse_spec
from ziggurat.worker.build import BuiltJob, build_job
from ziggurat.worker.heartbeat_thread import StepClock

SPEC = parse_spec(
    {"kind": "train", "version": 1, "network": "mlp", "data": "digits", "epochs": 1, "preprocessing": {"mean": "pixel"}}
)


def built(path: Path) -> BuiltJob:
    return build_job(SPEC, JobFolder(path), StepClock(), Settings())


def give_another_mean(path: Path) -> None:
    definition = path / "preprocessing.json"
    definition.write_text(json.dumps({**json.loads(definition.read_text()), "mean_values": [12.5]}))


def test_a_job_that_goes_on_keeps_the_mean_it_began_with(tmp_path: Path) -> None:
    first = built(tmp_path)
    first.trainer.setup()
    first.store.save(first.trainer.state())
    give_another_mean(tmp_path)
    assert built(tmp_path).data.context.preprocessing.mean_values == pytest.approx([12.5])


def test_a_job_before_any_checkpoint_computes_its_mean_anew(tmp_path: Path) -> None:
    expected = built(tmp_path).data.context.preprocessing.mean_values
    give_another_mean(tmp_path)
    assert built(tmp_path).data.context.preprocessing.mean_values == pytest.approx(expected)
