"""Ingestion of worker events into the store: in batches, each exactly once, with its offset in the file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, RowMapping

from ziggurat.entities import INTERVENTION
from ziggurat.entities.arithmetic import arithmetic_after
from ziggurat.entities.job_history import JobHistory
from ziggurat.entities.jobs import divergence_after
from ziggurat.events import (
    EVENT_TYPES,
    AttemptEnded,
    AttemptStarted,
    CheckpointRemoved,
    CheckpointSaved,
    ErrorRaised,
    Event,
    HyperparameterChanged,
    Message,
    Progress,
    ScalarLogged,
)
from ziggurat.store.database import Database
from ziggurat.store.dialects import write_rows
from ziggurat.store.job_rows import ARITHMETIC, DIVERGENCE, key_of, no_such_job, update_fields
from ziggurat.store.tables import (
    attempts,
    checkpoints,
    clean_text,
    curves,
    is_storable_integer,
    job_contents,
    jobs,
    messages,
    number_or_none,
    points,
)

__all__ = [
    "MESSAGES_KEPT",
    "EventRepository",
]


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
        reason and the process are left to the supervisor.

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
                raise no_such_job(connection, job_id)
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
            if facts.keys() & {DIVERGENCE, ARITHMETIC}:
                rest = {name: value for name, value in facts.items() if name not in (DIVERGENCE, ARITHMETIC)}
                update_fields(connection, key, {"facts": rest})
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
    _write_arithmetic(connection, key, history)
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
    if history.has_recovered:
        held = None
    if history.divergence is not None and held is None:
        divergence = divergence_after(history.divergence)
        held = None if divergence is None else asdict(divergence)
    if held != facts.pop(DIVERGENCE, None):
        update_fields(connection, key, {"facts": facts if held is None else {**facts, DIVERGENCE: held}})


def _write_arithmetic(connection: Connection, key: int, history: JobHistory) -> None:
    if not history.arithmetic:
        return
    new = {str(number): asdict(arithmetic_after(each)) for number, each in history.arithmetic.items()}
    facts = _facts(connection, key)
    held = {**facts.get(ARITHMETIC, {}), **new}
    newest = sorted(held, key=int)[-_ARITHMETIC_KEPT:]
    update_fields(connection, key, {"facts": {**facts, ARITHMETIC: {number: held[number] for number in newest}}})


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


_ARITHMETIC_KEPT: Final = 50
"""Attempts whose arithmetic is stored; those of earlier ones stay in the events."""

_BY_HAND: Final = "person"

Point = tuple[float, int, float]
"""Value, epoch, seconds since 1970."""

_LONGEST_NAME: Final = 500
_LARGEST_STEP: Final = 1 << 62


@dataclass
class _Points:
    """All points of a batch: tag → step → point, a step's newest one only."""

    by_tag: dict[str, dict[int, Point]] = field(default_factory=dict)

    def add(self, event: ScalarLogged) -> None:
        points = self.by_tag.get(event.tag)
        if points is None:
            points = self.by_tag.setdefault(_short(event.tag), {})
        points.pop(event.step, None)
        points[event.step] = (event.value, event.epoch, event.time)

    def cut(self, step: int, source: CheckpointSaved | None) -> None:
        self.by_tag = {
            tag: kept
            for tag, points in self.by_tag.items()
            if (kept := {each: point for each, point in points.items() if each <= step})
        }


class EventBatch:
    """The sum of a batch of events, as the tables have it.

    Args:
        attempt: number of the newest attempt before the batch.
        global_step: steps done before it.
        epoch: epoch of that step.
        checkpoint_epochs: epoch of each checkpoint that is known, for an attempt that goes on from one.

    Attributes:
        history: fold of the events; where an attempt began, its ``cut`` says what is stored and holds no longer.
        attempts: number → columns that are new.
        removed: names of checkpoints to be removed.
        messages: sentences for people, and what people changed.
        fields: columns of the job that are new.
    """

    def __init__(
        self, attempt: int, global_step: int, epoch: int, checkpoint_epochs: Mapping[str, int] | None = None
    ) -> None:
        self._points = _Points()
        self.history = JobHistory(self._points, attempt, global_step, epoch, checkpoint_epochs or {})
        self.attempts: dict[int, dict[str, Any]] = {}
        self.removed: set[str] = set()
        self.messages: list[Message] = []
        self.fields: dict[str, Any] = {}

    @property
    def points(self) -> Mapping[str, Mapping[int, Point]]:
        """Tag → step → point, to be written; a step's newest point only."""
        return self._points.by_tag

    def add(self, events: Iterable[Event]) -> None:
        """Take events in their order."""
        apply = self.history.apply
        for event in events:
            if type(event) is ScalarLogged:
                if _is_point(event):
                    apply(event)
            elif _is_sound(event):
                self._apply(event)
        self._note_progress()

    def _apply(self, event: Event) -> None:
        match event:
            case AttemptStarted():
                self._note_progress()  # of the attempt before
                self.history.apply(replace(event, checkpoint=_short(event.checkpoint)))
                self._begin(event)
            case CheckpointSaved():
                self.removed.discard(_short(event.name))
                self.history.apply(replace(event, name=_short(event.name)))
            case CheckpointRemoved():
                self.removed.add(_short(event.name))
                self.history.apply(replace(event, name=_short(event.name)))
            case Message():
                self.messages.append(event)
            case HyperparameterChanged():
                if event.source == _BY_HAND:
                    self.messages.append(_intervention(event))
            case _:
                self.history.apply(event)
                self._note(event)

    def _begin(self, event: AttemptStarted) -> None:
        self.messages = [each for each in self.messages if not _is_undone(each, event.global_step)]
        self.attempts[self.history.attempt] = {
            "started": event.time, "ended": None, "outcome": "", "exit_code": None, "reason": "", "pid": event.pid,
            "host": event.host, "first_step": event.global_step, "last_step": event.global_step,
        }  # fmt: skip
        self.fields.update(
            started=event.time, ended=None, exit_code=None, error=None, attempt=self.history.attempt, stage="",
            max_epoch=event.max_epoch, remaining_s=None, steps_per_s=None, data_wait_share=None,
            total_steps=min(event.max_epoch * event.steps_per_epoch, _LARGEST_STEP),
        )  # fmt: skip

    def _note(self, event: Event) -> None:
        """Note the columns that say what an event says."""
        match event:
            case AttemptEnded():
                ended = {"ended": event.time, "exit_code": event.exit_code}
                said = {"outcome": event.outcome, "reason": event.reason[:_LONGEST_TEXT]}
                self.attempts.setdefault(self.history.attempt, {}).update(ended, **said)
                self.fields.update(ended, remaining_s=None, steps_per_s=None, data_wait_share=None, stage="")
            case Progress():
                for name in ("remaining_s", "steps_per_s", "data_wait_share"):
                    value = getattr(event, name)
                    self.fields[name] = float(value) if _is_finite(value) else None
                self.fields["stage"] = event.stage
                if event.total_steps > 0:
                    self.fields["total_steps"] = event.total_steps
                if event.max_epoch > 0:
                    self.fields["max_epoch"] = event.max_epoch
            case ErrorRaised():
                traceback = {"traceback": event.traceback[-_LONGEST_TEXT:]} if event.traceback else {}
                self.fields["error"] = {**event.error, **traceback}
            case _:
                pass

    def _note_progress(self) -> None:
        self.fields.update(global_step=self.history.global_step, epoch=self.history.epoch)
        if self.history.attempt:
            self.attempts.setdefault(self.history.attempt, {})["last_step"] = self.history.global_step


def _is_point(event: ScalarLogged) -> bool:
    step = event.step
    return (
        type(step) is int
        and 0 <= step < _LARGEST_STEP
        and is_storable_integer(event.epoch)
        and type(event.tag) is str
        and _is_finite(event.time)
        and type(event.value) is float
    )


def _is_undone(message: Message, cut: int) -> bool:
    """Return whether a message holds no longer where steps after ``cut`` are done again."""
    return message.level == INTERVENTION and message.step > cut


def _intervention(event: HyperparameterChanged) -> Message:
    name = event.name.replace("_", " ")
    text = f"{name[:1].upper()}{name[1:]} set by hand: {event.previous:g} to {event.value:g}"
    return Message(time=event.time, level=INTERVENTION, text=text, step=event.step)


def _short(name: str) -> str:
    return clean_text(name)[:_LONGEST_NAME]  # an index does not hold texts of any length


def _is_finite(value: Any) -> bool:
    return (type(value) is float and math.isfinite(value)) or is_storable_integer(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


_CHECKS: Final = {"int": is_storable_integer, "float": _is_finite, "str": _is_text}
_FIELD_CHECKS: Final = {
    kind: [
        (part.name, _CHECKS.get(str(part.type), _is_object))
        for part in fields(kind)
        if str(part.type) != "float | None"  # an estimate that is no number is none
    ]
    for kind in EVENT_TYPES.values()
}


def _is_sound(event: Event) -> bool:
    return all(check(getattr(event, name)) for name, check in _FIELD_CHECKS.get(type(event), ()))


_MOST_CURVES: Final = 5000
"""Curves that one job may have; a job that names more has a mistake, and further ones are left out."""

_SQLITE = "INSERT OR REPLACE INTO points (curve_key, step, value, epoch, time) VALUES (?, ?, ?, ?, ?)"
_POSTGRESQL = (
    "INSERT INTO points (curve_key, step, value, epoch, time)"
    " SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::float8[], %s::bigint[], %s::float8[])"
    " ON CONFLICT (curve_key, step)"
    " DO UPDATE SET value = excluded.value, epoch = excluded.epoch, time = excluded.time"
)
_SQLITE_SUMMARIES = "UPDATE curves SET last = ?, minimum = ?, maximum = ?, count = ?, last_step = ? WHERE key = ?"
_POSTGRESQL_SUMMARIES = (
    "UPDATE curves SET last = new.last, minimum = new.minimum, maximum = new.maximum, count = new.count,"
    " last_step = new.last_step FROM unnest(%s::float8[], %s::float8[], %s::float8[], %s::bigint[], %s::bigint[],"
    " %s::bigint[]) AS new (last, minimum, maximum, count, last_step, key) WHERE curves.key = new.key"
)


def write_points(connection: Connection, job_key: int, cut: int | None, new: Mapping[str, Mapping[int, Point]]) -> None:
    """Write the points of one job.

    Args:
        connection: inside a transaction that may write.
        job_key: of the job.
        cut: stored points of later steps are removed first; None for none.
        new: tag → step → point; one that is stored already for that step is replaced.
    """
    mine = sa.select(curves).where(curves.c.job_key == job_key)
    known = {row["tag"]: row for row in connection.execute(mine).mappings()}
    stale: set[int] = set()
    if cut is not None:
        stale = _remove_later(connection, known.values(), cut)
    keys = {tag: row["key"] for tag, row in known.items()}
    keys |= _add_curves(
        connection, job_key, [tag for tag in new if tag not in keys][: max(0, _MOST_CURVES - len(keys))]
    )
    written = {tag: part for tag, part in new.items() if tag in keys}
    rows = [
        (keys[tag], step, number_or_none(value), epoch, time)
        for tag, part in written.items()
        for step, (value, epoch, time) in part.items()
    ]
    write_rows(connection, rows, sqlite=_SQLITE, postgresql=_POSTGRESQL)
    summaries = []
    for tag, part in written.items():
        old = known.get(tag)
        if keys[tag] in stale or (old is not None and min(part) <= old["last_step"]):
            stale.add(keys[tag])
        else:
            summaries.append(_extended(old, keys[tag], part))
    write_rows(connection, summaries, sqlite=_SQLITE_SUMMARIES, postgresql=_POSTGRESQL_SUMMARIES)
    for key in stale:
        _recompute(connection, key)


def _add_curves(connection: Connection, job_key: int, tags: list[str]) -> dict[str, int]:
    if not tags:
        return {}
    rows = [{"job_key": job_key, "tag": tag, "count": 0, "last_step": -1} for tag in tags]
    made = connection.execute(sa.insert(curves).returning(curves.c.tag, curves.c.key), rows)
    return {row.tag: row.key for row in made}


def _remove_later(connection: Connection, known: Iterable[RowMapping], cut: int) -> set[int]:
    stale = {row["key"] for row in known if row["last_step"] > cut}
    for key in stale:
        connection.execute(sa.delete(points).where(points.c.curve_key == key, points.c.step > cut))
    return stale


def _extended(old: RowMapping | None, key: int, part: Mapping[int, Point]) -> tuple[float | None, ...]:
    """Return a summary in the order in which the statements above take it."""
    last_step = max(part)
    values = [value for value, _, _ in part.values() if not math.isnan(value)]
    if old is not None:
        values += [value for value in (old["minimum"], old["maximum"]) if value is not None]
    count = len(part) + (old["count"] if old is not None else 0)
    last = number_or_none(part[last_step][0])
    return last, min(values, default=None), max(values, default=None), count, last_step, key


def _recompute(connection: Connection, key: int) -> None:
    mine = points.c.curve_key == key
    parts = (sa.func.count(), sa.func.min(points.c.value), sa.func.max(points.c.value), sa.func.max(points.c.step))
    count, minimum, maximum, last_step = connection.execute(sa.select(*parts).where(mine)).one()
    if count == 0:
        connection.execute(sa.delete(curves).where(curves.c.key == key))
        return
    last = connection.execute(sa.select(points.c.value).where(mine, points.c.step == last_step)).scalar()
    row = {"last": last, "minimum": minimum, "maximum": maximum, "count": count, "last_step": last_step}
    connection.execute(sa.update(curves).where(curves.c.key == key).values(row))
