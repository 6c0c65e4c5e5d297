"""Small jobs and events for the store tests."""

from __future__ import annotations

from typing import Any

from ziggurat.entities import NewJob
from ziggurat.events import AttemptEnded, AttemptStarted, CheckpointSaved, Message, ScalarLogged


def new_job(job_id: str, **fields: Any) -> NewJob:
    return NewJob(**{"id": job_id, "kind": "train", "name": job_id, "folder": f"/jobs/{job_id}", "spec": {}, **fields})


def started(time: float = 1.0, *, attempt: int = 1, at: int = 0, checkpoint: str = "") -> AttemptStarted:
    return AttemptStarted(
        time=time, attempt=attempt, pid=7, host="here", backend="null", release="1.0", global_step=at, max_epoch=3,
        steps_per_epoch=10, checkpoint=checkpoint,
    )  # fmt: skip


def ended(time: float = 9.0, *, outcome: str = "done", step: int = 30) -> AttemptEnded:
    code = {"done": 0, "stopped": 75}.get(outcome, 6)
    return AttemptEnded(time=time, outcome=outcome, exit_code=code, reason="because", global_step=step, epoch=3)


def point(tag: str, step: int, value: float, *, epoch: int = 1) -> ScalarLogged:
    return ScalarLogged(time=100.0 + step, tag=tag, value=value, step=step, epoch=epoch)


def saved(step: int, **scalars: float) -> CheckpointSaved:
    return CheckpointSaved(
        time=100.0 + step, name=f"step-{step:08d}", step=step, epoch=step // 10, reason="epoch", size_bytes=5,
        scalars=scalars,
    )  # fmt: skip


def message(text: str, *, level: str = "info") -> Message:
    return Message(time=1.0, level=level, text=text)
