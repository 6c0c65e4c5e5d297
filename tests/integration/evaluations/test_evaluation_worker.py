"""The worker of such jobs in a folder: stopped and begun anew, files that cannot be read, networks that do not fit."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from ziggurat.cli.main import main as ziggurat
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.entities import EXIT_DONE, EXIT_STOPPED
from ziggurat.events import AttemptEnded, AttemptStarted, Progress, read_events
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.context import save_context
from ziggurat.worker.main import main
from ziggurat.worker.stopping import StopRequest
from ziggurat.workspace.studio.predictions import Predictions, SampleFilter


def make_model(folder: Path, data: str) -> Path:
    """Return the folder of a job with a checkpoint of what a seed gives."""
    spec = parse_spec(
        {"kind": "train", "backend": "null", "network": "mlp", "data": data, "batch_size": 4}, source="a test"
    )
    found = data_of(spec)
    program = load_backend("null").build(program_request(spec, found))
    job = JobFolder(folder)
    folder.mkdir()
    save_spec(spec, job.spec)
    save_context(found.context, job)
    meta = {"global_step": 0, "epoch_num": 0, "latest": {}}
    CheckpointStore(job.checkpoints).save(RunState(meta, program.state()))
    program.close()
    return folder


@pytest.fixture
def pictures(tmp_path):
    """Return class folders with a validation split, whose third image is damaged."""
    for split, each in (("train", 6), ("val", 4)):
        for number, name in enumerate(("dark", "light")):
            folder = tmp_path / "pictures" / split / name
            folder.mkdir(parents=True)
            for count in range(each):
                cv2.imwrite(str(folder / f"{count}.png"), np.full((8, 8), 100 * number + 9 * count, np.uint8))
    (tmp_path / "pictures" / "val" / "dark" / "2.png").write_bytes(b"no image")
    return tmp_path / "pictures"


def a_job(folder: Path, **fields: object) -> JobFolder:
    job = JobFolder(folder)
    folder.mkdir()
    save_spec(parse_spec({"version": 1, "heartbeat_s": 0.1, **fields}, source="a test"), job.spec)
    return job


class _AskedAfter(StopRequest):
    """Is asked to end when it was looked at a number of times."""

    def __init__(self, looks: int) -> None:
        self._looks = looks
        super().__init__()

    @property
    def reason(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Why it ends."""
        self._looks -= 1
        return "a test wants it" if self._looks < 0 else None

    @reason.setter
    def reason(self, value: str | None) -> None:
        pass


@pytest.mark.parametrize("kind", ["evaluate", "infer"])
def test_one_that_is_stopped_leaves_nothing_and_begins_anew(tmp_path, pictures, kind):
    model = make_model(tmp_path / "model", str(pictures))
    source = {"source": str(pictures / "train")} if kind == "infer" else {"split": "train"}
    job = a_job(tmp_path / "job", kind=kind, model=str(model), batch_size=1, **source)

    assert main([str(job.path)], request=_AskedAfter(5)) == EXIT_STOPPED
    assert not job.results.exists()
    assert main([str(job.path)], request=StopRequest()) == EXIT_DONE

    events, _ = read_events(job.events)
    ended = [event for event in events if isinstance(event, AttemptEnded)]
    assert [(each.outcome, each.exit_code) for each in ended] == [("stopped", EXIT_STOPPED), ("done", EXIT_DONE)]
    assert ended[0].reason == "a test wants it"
    assert 0 < ended[0].global_step < 12
    assert [event.attempt for event in events if isinstance(event, AttemptStarted)] == [1, 2]
    stages = [event for event in events if isinstance(event, Progress)]
    assert {each.stage for each in stages} == {"load", "predict"}
    assert (stages[-1].global_step, stages[-1].total_steps) == (12, 12)
    assert len(Predictions(job.results)) == 12


def test_rows_that_cannot_be_read_leave_gaps_and_are_named(tmp_path, pictures):
    model = make_model(tmp_path / "model", str(pictures))
    job = a_job(tmp_path / "job", kind="evaluate", model=str(model))

    assert main([str(job.path)], request=StopRequest()) == EXIT_DONE

    found, known = Predictions(job.results), evaluate({"folder": str(model)})
    assert found.rows.tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert found.figures["confusion"] == known["confusion"]
    assert found.summary["scalars"] == known["scalars"]
    (failure,) = found.summary["failures"]
    assert failure["key"] == str(pictures / "val" / "dark" / "2.png")
    assert "it is no image of a known format" in failure["reason"]
    keys = [each["key"] for each in found.samples(found.select(SampleFilter(order="row")))]
    assert keys[2] == str(pictures / "val" / "dark" / "3.png")


def test_data_in_memory_has_rows_too(tmp_path):
    model = make_model(tmp_path / "model", "digits")
    job = a_job(tmp_path / "job", kind="evaluate", model=str(model), split="test")

    assert main([str(job.path)], request=StopRequest()) == EXIT_DONE

    found, known = Predictions(job.results), evaluate({"folder": str(model), "split": "test"})
    assert found.rows.tolist() == list(range(275))
    assert found.figures["accuracy"] == pytest.approx(known["accuracy"])
    assert found.figures["top5"] == pytest.approx(known["top_5"])
    assert found.figures["confusion"] == known["confusion"]


def test_the_shell_executes_such_a_folder(tmp_path, pictures, capfd):
    model = make_model(tmp_path / "model", str(pictures))
    job = a_job(tmp_path / "job", kind="evaluate", model=str(model))

    assert ziggurat(["resume", str(job.path)]) == 0

    said = capfd.readouterr().out
    assert "7 samples of val, accuracy 0." in said
    assert "1 could not be read" in said
    assert "sample 8 of 8" in said


def test_what_cannot_be_evaluated_fails_with_a_sentence(tmp_path, pictures):
    model = make_model(tmp_path / "model", str(pictures))
    for number, (fields, words) in enumerate(
        (
            ({"split": "test"}, "`test` is not a known split of this data."),
            ({"checkpoint": "best"}, "There is no checkpoint `best`"),
            ({"model": str(tmp_path / "gone")}, "cannot be read: No such file"),
        )
    ):
        job = a_job(tmp_path / f"job{number}", **{"kind": "evaluate", "model": str(model), **fields})
        assert main([str(job.path)], request=StopRequest()) not in (EXIT_DONE, EXIT_STOPPED)
        ended = read_events(job.events)[0][-1]
        assert isinstance(ended, AttemptEnded)
        assert words in ended.reason
        assert not job.results.exists()
