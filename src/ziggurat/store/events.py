"""Ingestion of worker events into the store: in batches, each exactly once, with its offset in the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from ziggurat.entities import INTERVENTION
from ziggurat.entities.job_history import JobHistory
from ziggurat.entities.jobs import divergence_after
from ziggurat.events import AttemptStarted, CheckpointSaved, Event, Message
from ziggurat.store.columns import clean_text
from ziggurat.store.database import Database
from ziggurat.store.event_batch import EventBatch
from ziggurat.store.job_rows import DIVERGENCE, key_of, no_such_job, update_fields
from ziggurat.store.points import write_points
from ziggurat.store.tables import attempts, checkpoints, curves, job_contents, jobs, messages

__all__ = ["MESSAGES_KEPT", "EventRepository"]

MESSAGES_KEPT: Final = 1000
"""Newest messages of a job that are kept."""

_LONGEST_TEXT: Final = 20_000
_EMPTY: Final[dict[str, Any]] = {
    "started": None, "ended": None, "attempt": 0, "epoch": 0, "max_epoch": 0, "global_step": 0, "total_steps": 0,
    "stage": "", "remaining_s": None, "steps_per_s": None, "data_wait_share": None, "exit_code": None, "error": None,
}  # fmt: skip


class EventRepository:
    """The way of events into the store; every method is one transaction.

    Args:
        database: where they go.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, job_id: str, offset: int, next_offset: int, events: Sequence[Event]) -> bool:
        """Take a batch of events, all of it or nothing.

        Points, attempts, checkpoints, messages, progress and error of the job are brought up to date; the state, the
        reason and the process are left to whoever watches over the job.

        Args:
            job_id: whose.
            offset: byte of ``events.jsonl`` at which the batch begins.
            next_offset: byte at which the next one will.
            events: as ``read_events`` gives them.

        Returns:
            Whether it was taken; where not, the store is elsewhere than at ``offset``: another reader was quicker.

        Raises:
            JobError: where there is no such job.
            StorageError: where it cannot be written; then nothing was.
        """
        with self._database.write() as connection:
            columns = (jobs.c.key, jobs.c.events_offset, jobs.c.attempt, jobs.c.global_step, jobs.c.epoch)
            row = connection.execute(sa.select(*columns).where(jobs.c.id == job_id)).one_or_none()
            if row is None:
                raise no_such_job(job_id)
            if row.events_offset != offset:
                return False
            epochs = _checkpoint_epochs(connection, row.key) if _has_start(events) else {}
            batch = EventBatch(row.attempt, row.global_step, row.epoch, epochs)
            batch.add(events)
            _write(connection, row.key, batch)
            connection.execute(sa.update(jobs).where(jobs.c.key == row.key).values(events_offset=next_offset))
            return True

    def reset(self, job_id: str) -> None:
        """Forget what events said of a job, so that its file is read again from the first byte.

        Raises:
            JobError: where there is no such job.
        """
        with self._database.write() as connection:
            key = key_of(connection, job_id)
            for table in (attempts, checkpoints, curves, messages):
                connection.execute(sa.delete(table).where(table.c.job_key == key))
            update_fields(connection, key, _EMPTY)
            facts = _facts(connection, key)
            if facts.pop(DIVERGENCE, None) is not None:
                update_fields(connection, key, {"facts": facts})
            connection.execute(sa.update(jobs).where(jobs.c.key == key).values(events_offset=0))

    def lose_attempt(self, job_id: str, reason: str) -> None:
        """Note that the newest attempt was lost, unless it said itself how it ended.

        Raises:
            JobError: where there is no such job.
        """
        with self._database.write() as connection:
            key = key_of(connection, job_id)
            newest = sa.select(jobs.c.attempt).where(jobs.c.key == key).scalar_subquery()
            lost = sa.update(attempts).where(attempts.c.job_key == key, attempts.c.number == newest)
            connection.execute(lost.where(attempts.c.outcome == "").values(outcome="lost", reason=reason))


def _has_start(events: Iterable[Event]) -> bool:
    return any(isinstance(event, AttemptStarted) for event in events)


def _checkpoint_epochs(connection: Connection, key: int) -> dict[str, int]:
    rows = connection.execute(sa.select(checkpoints.c.name, checkpoints.c.epoch).where(checkpoints.c.job_key == key))
    return {row.name: row.epoch for row in rows}


def _write(connection: Connection, key: int, batch: EventBatch) -> None:
    history = batch.history
    write_points(connection, key, history.cut, batch.points)
    _write_attempts(connection, key, batch.attempts, history.attempt if history.cut is not None else 0)
    _write_checkpoints(connection, key, batch)
    _write_messages(connection, key, batch.messages, history.cut)
    _write_divergence(connection, key, history)
    update_fields(connection, key, batch.fields)


def _write_attempts(connection: Connection, key: int, rows: Mapping[int, Mapping[str, Any]], newest: int) -> None:
    for number, row in rows.items():
        mine = (attempts.c.job_key == key, attempts.c.number == number)
        if "started" in row:
            connection.execute(sa.insert(attempts).values(job_key=key, number=number, **row))
        else:
            connection.execute(sa.update(attempts).where(*mine).values(**row))
    # An attempt that was followed by another one and never said how it ended was lost.
    earlier = (attempts.c.job_key == key, attempts.c.number < newest, attempts.c.outcome == "")
    connection.execute(sa.update(attempts).where(*earlier).values(outcome="lost"))


def _write_checkpoints(connection: Connection, key: int, batch: EventBatch) -> None:
    mine = checkpoints.c.job_key == key
    saved, cut = batch.history.checkpoints, batch.history.cut
    if cut is not None:
        connection.execute(sa.delete(checkpoints).where(mine, checkpoints.c.step > cut))
    gone = [*batch.removed, *saved]
    for start in range(0, len(gone), 500):
        connection.execute(sa.delete(checkpoints).where(mine, checkpoints.c.name.in_(gone[start : start + 500])))
    if saved:
        rows = [{"job_key": key, "name": name, **_checkpoint(each)} for name, each in saved.items()]
        connection.execute(sa.insert(checkpoints), rows)


def _checkpoint(saved: CheckpointSaved) -> dict[str, Any]:
    numbers = {clean_text(str(tag)): _float(value) for tag, value in saved.scalars.items()}
    return {
        "step": saved.step,
        "epoch": saved.epoch,
        "reason": saved.reason[:_LONGEST_TEXT],
        "size_bytes": saved.size_bytes,
        "created": saved.time,
        "scalars": {tag: number for tag, number in numbers.items() if number is not None},
    }


def _float(value: Any) -> float | None:
    try:
        return float(value)  # "NaN" and "Infinity" are how events write what JSON lacks
    except (TypeError, ValueError, OverflowError):
        return None


def _write_divergence(connection: Connection, key: int, history: JobHistory) -> None:
    if history.cut is None and history.divergence is None:
        return
    facts = _facts(connection, key)
    held = facts.get(DIVERGENCE)
    if held is not None and history.cut is not None and held["noticed_step"] > history.cut:
        held = None
    if history.divergence is not None:
        divergence = divergence_after(history.divergence)
        held = None if divergence is None else asdict(divergence)
    if held != facts.pop(DIVERGENCE, None):
        update_fields(connection, key, {"facts": facts if held is None else {**facts, DIVERGENCE: held}})


def _facts(connection: Connection, key: int) -> dict[str, Any]:
    return dict(connection.execute(sa.select(job_contents.c.facts).where(job_contents.c.job_key == key)).scalar_one())


def _write_messages(connection: Connection, key: int, new: Sequence[Message], cut: int | None) -> None:
    if cut is not None:
        undone = (messages.c.level == INTERVENTION, messages.c.step > cut)
        connection.execute(sa.delete(messages).where(messages.c.job_key == key, *undone))
    if not new:
        return
    rows = [
        {"job_key": key, "time": said.time, "level": said.level, "text": said.text[:_LONGEST_TEXT], "step": said.step}
        for said in new[-MESSAGES_KEPT:]
    ]
    connection.execute(sa.insert(messages), rows)
    mine = messages.c.job_key == key
    newest = sa.select(messages.c.key).where(mine).order_by(messages.c.key.desc())
    oldest = connection.execute(newest.offset(MESSAGES_KEPT - 1).limit(1)).scalar()
    if oldest is not None:
        connection.execute(sa.delete(messages).where(mine, messages.c.key < oldest))
