"""The fold of events: one pass over a file and batches into the store tell the same of a job."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from store_samples import ended, new_job, point, saved, started

from ziggurat.entities.job_history import JobHistory, NewestScalars, read_history
from ziggurat.events import Event, EventFile, Progress
from ziggurat.store import Store

EVENTS: tuple[Event, ...] = (
    started(1.0),
    point("loss", 10, 0.5),
    saved(10, loss=0.5),
    point("loss", 20, 0.25),
    point("rate", 20, 0.1),
    saved(20, loss=0.25),
    started(5.0, attempt=2, at=10, checkpoint="step-00000010"),
    Progress(time=6.0, epoch=2, global_step=15, total_steps=30),
    ended(outcome="stopped", step=15),
)


@pytest.mark.parametrize("size", [1, 4, len(EVENTS)])
def test_store_and_file_tell_the_same(store: Store, tmp_path: Path, size: int) -> None:
    with closing(EventFile(tmp_path / "events.jsonl")) as file:
        file.write(*EVENTS)
    history, scalars = read_history(tmp_path / "events.jsonl")
    store.jobs.add(new_job("a"))
    for start in range(0, len(EVENTS), size):
        assert store.events.take("a", start, min(start + size, len(EVENTS)), EVENTS[start : start + size])
    job = store.jobs.get("a")
    assert (job.attempt, job.global_step, job.epoch) == (history.attempt, history.global_step, history.epoch)
    assert {tag: curve.last for tag, curve in job.scalars.items()} == {tag: at.value for tag, at in scalars.items()}
    assert [each.name for each in store.curves.checkpoints("a")] == list(history.checkpoints) == ["step-00000010"]


def test_history_goes_on_from_what_is_stored() -> None:
    history = JobHistory(NewestScalars(), 2, 40, 4, stored_epochs={"step-00000030": 3})
    history.apply(started(1.0, at=30, checkpoint="step-00000030"))
    assert (history.attempt, history.global_step, history.epoch, history.cut) == (3, 30, 3, 30)


def test_newest_scalar_after_a_resume_is_the_checkpoints() -> None:
    scalars = NewestScalars()
    history = JobHistory(scalars)
    for event in EVENTS[:7]:
        history.apply(event)
    assert {tag: (at.step, at.value) for tag, at in scalars.by_tag.items()} == {"loss": (10, 0.5)}
