"""Tables of the store, and the column types that SQLite and PostgreSQL share."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Column, Dialect, Double, ForeignKey, Index, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from ziggurat.errors import UsageError

__all__ = [
    "attempts",
    "audit",
    "checkpoints",
    "clean_text",
    "curves",
    "dependencies",
    "is_storable_integer",
    "job_contents",
    "job_tags",
    "job_texts",
    "jobs",
    "messages",
    "metadata",
    "number_or_none",
    "points",
    "projects",
    "saved_items",
    "sessions",
    "settings",
    "short_text",
    "spec_values",
    "tokens",
    "users",
]


NUMBER = Double()
"""A float64. NaN is stored as NULL: SQLite has no NaN, and PostgreSQL's has a place in the order that it should not."""

BIG = BigInteger()
_LONGEST_INDEXED = 200
KEY: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
"""Key that the database counts up; SQLite does so only for its own INTEGER."""


class CleanText(TypeDecorator[str]):
    """Text without what some database refuses: NUL characters and lone surrogates become U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Return the text as it goes into the database."""
        return None if value is None else clean_text(str(value))


class Json(TypeDecorator[Any]):
    """JSON values as ASCII text; NaN and infinities, which JSON lacks, come back as they went in."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Return the value as the text that goes into the database."""
        return None if value is None else json.dumps(value, separators=(",", ":"), default=_plain)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Return the value of the text that is in the database."""
        return None if value is None else json.loads(value)


def clean_text(value: str) -> str:
    """Return the text as every database takes it."""
    if "\0" in value:
        value = value.replace("\0", "\ufffd")
    if value.isascii():
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def short_text(value: str, what: str) -> str:
    """Return a text that an index holds, as every database takes it.

    Args:
        value: the text.
        what: what it is, with its article, to begin the sentence of the error.

    Raises:
        UsageError: where it is longer than 200 characters; PostgreSQL cannot index texts of any length.
    """
    if len(value) > _LONGEST_INDEXED:
        shown = f"{value[:40]}… of {len(value)} characters"
        raise UsageError(f"{what} must have at most {_LONGEST_INDEXED} characters.", received=shown)
    return clean_text(value)


def is_storable_integer(value: Any) -> bool:
    """Return whether a value is a whole number of 64 bits; a bool is none."""
    return type(value) is int and -(2**63) <= value < 2**63


def number_or_none(value: float | None) -> float | None:
    """Return a float as a column takes it: None for NaN."""
    return None if value is None or math.isnan(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    if hasattr(value, "item"):
        return value.item()  # a NumPy number
    return str(value)


metadata: Final = MetaData()


def _job_key(**options: Any) -> Column[int]:
    return Column("job_key", KEY, ForeignKey("jobs.key", ondelete="CASCADE"), nullable=False, **options)


def _text(name: str, **options: Any) -> Column[str]:
    return Column(name, CleanText, nullable=False, default="", **options)


def _count(name: str) -> Column[int]:
    return Column(name, BIG, nullable=False, default=0)


jobs: Final = Table(
    "jobs",
    metadata,
    Column("key", KEY, primary_key=True, autoincrement=True),
    Column("id", CleanText, nullable=False, unique=True),
    _text("kind"),
    _text("name"),
    _text("state"),
    _text("folder"),
    _text("project"),
    _text("owner"),
    _text("group"),
    _text("parent"),
    _count("priority"),
    Column("position", NUMBER, nullable=False),
    Column("devices", Json, nullable=False),
    _text("reason"),
    Column("paused", Boolean, nullable=False, default=False),
    _text("framework"),
    _text("network"),
    Column("created", NUMBER, nullable=False),
    Column("started", NUMBER),
    Column("ended", NUMBER),
    _count("attempt"),
    _count("epoch"),
    _count("max_epoch"),
    _count("global_step"),
    _count("total_steps"),
    _text("stage"),
    Column("remaining_s", NUMBER),
    Column("steps_per_s", NUMBER),
    Column("data_wait_share", NUMBER),
    _text("health"),
    Column("exit_code", BIG),
    Column("pid", BIG),
    _text("host"),
    Column("worker", Json),  # NULL for jobs that an earlier release started
    Column("placement", Json),
    _count("events_offset"),
    Column("tags", Json, nullable=False),
    Index("jobs_by_state", "state", "priority", "position"),
    Index("jobs_by_created", "created", "id"),
    Index("jobs_by_position", "position"),
    Index("jobs_by_project", "project"),
    Index("jobs_by_group", "group"),
    Index("jobs_by_kind", "state", "kind", "group", "ended"),  # holds all that counting needs
)

job_contents: Final = Table(
    "job_contents",
    metadata,
    _job_key(primary_key=True, autoincrement=False),
    Column("spec", Json, nullable=False),
    Column("needs", Json, nullable=False),
    Column("depends_on", Json, nullable=False),
    Column("error", Json),
    _text("notes"),
    Column("facts", Json, nullable=False),
)

job_texts: Final = Table(
    "job_texts",
    metadata,
    _job_key(primary_key=True, autoincrement=False),
    _text("text"),
)

job_tags: Final = Table(
    "job_tags",
    metadata,
    _job_key(primary_key=True, autoincrement=False),
    Column("tag", CleanText, primary_key=True),
    Index("job_tags_by_tag", "tag", "job_key"),
)

dependencies: Final = Table(
    "job_dependencies",
    metadata,
    _job_key(primary_key=True, autoincrement=False),
    Column("needed_id", CleanText, primary_key=True),  # no foreign key: what a job waits for may be deleted
    Index("job_dependencies_by_needed", "needed_id"),
)

spec_values: Final = Table(
    "spec_values",
    metadata,
    Column("name", CleanText, primary_key=True),
    _job_key(primary_key=True, autoincrement=False),
    Column("number", NUMBER),
    Column("text", CleanText),
    Index("spec_values_by_job", "job_key"),
    sqlite_with_rowid=False,
)

curves: Final = Table(
    "curves",
    metadata,
    Column("key", KEY, primary_key=True, autoincrement=True),
    _job_key(),
    Column("tag", CleanText, nullable=False),
    Column("last", NUMBER),
    Column("minimum", NUMBER),
    Column("maximum", NUMBER),
    _count("count"),
    _count("last_step"),
    Index("curves_by_job", "job_key"),
    Index("curves_by_tag", "tag", "job_key", "last"),  # holds all that sorting and conditions need
)

points: Final = Table(
    "points",
    metadata,
    Column("curve_key", KEY, ForeignKey("curves.key", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("step", BIG, primary_key=True, autoincrement=False),
    Column("value", NUMBER),
    Column("epoch", BIG, nullable=False),
    Column("time", NUMBER, nullable=False),
    sqlite_with_rowid=False,
)

attempts: Final = Table(
    "attempts",
    metadata,
    _job_key(primary_key=True, autoincrement=False),
    Column("number", BIG, primary_key=True, autoincrement=False),
    Column("started", NUMBER, nullable=False),
    Column("ended", NUMBER),
    _text("outcome"),
    Column("exit_code", BIG),
    _text("reason"),
    Column("pid", BIG),
    _text("host"),
    _count("first_step"),
    _count("last_step"),
)

checkpoints: Final = Table(
    "checkpoints",
    metadata,
    _job_key(primary_key=True, autoincrement=False),
    Column("name", CleanText, primary_key=True),
    _count("step"),
    _count("epoch"),
    _text("reason"),
    _count("size_bytes"),
    Column("created", NUMBER, nullable=False),
    Column("scalars", Json, nullable=False),
)

messages: Final = Table(
    "messages",
    metadata,
    Column("key", KEY, primary_key=True, autoincrement=True),
    _job_key(),
    Column("time", NUMBER, nullable=False),
    _text("level"),
    _text("text"),
    _count("step"),
    Index("messages_by_job", "job_key", "key"),
)

users: Final = Table(
    "users",
    metadata,
    Column("id", KEY, primary_key=True, autoincrement=True),
    Column("name", CleanText, nullable=False, unique=True),
    _text("role"),
    _text("password_hash"),
    Column("disabled", Boolean, nullable=False, default=False),
    Column("created", NUMBER, nullable=False),
    Column("last_seen", NUMBER),
)


def _user_id() -> Column[int]:
    return Column("user_id", KEY, ForeignKey("users.id", ondelete="CASCADE"), nullable=False)


sessions: Final = Table(
    "sessions",
    metadata,
    Column("digest", CleanText, primary_key=True),
    _user_id(),
    Column("created", NUMBER, nullable=False),
    Column("expires", NUMBER, nullable=False),
    Column("last_used", NUMBER, nullable=False),
    Index("sessions_by_user", "user_id"),
    Index("sessions_by_expiry", "expires"),
)

tokens: Final = Table(
    "tokens",
    metadata,
    Column("id", KEY, primary_key=True, autoincrement=True),
    Column("digest", CleanText, nullable=False, unique=True),
    _user_id(),
    _text("name"),
    _text("scope"),
    Column("created", NUMBER, nullable=False),
    Column("expires", NUMBER),
    Column("last_used", NUMBER),
    Column("revoked", Boolean, nullable=False, default=False),
    Index("tokens_by_user", "user_id"),
)

projects: Final = Table(
    "projects",
    metadata,
    Column("id", KEY, primary_key=True, autoincrement=True),
    Column("name", CleanText, nullable=False, unique=True),
    Column("created", NUMBER, nullable=False),
)

audit: Final = Table(
    "audit",
    metadata,
    Column("key", KEY, primary_key=True, autoincrement=True),
    Column("time", NUMBER, nullable=False),
    _text("who"),
    _text("action"),
    _text("target"),
    Column("details", Json, nullable=False),
    Index("audit_by_time", "time"),
    Index("audit_by_target", "target", "time"),
)

settings: Final = Table(
    "settings",
    metadata,
    Column("name", CleanText, primary_key=True),
    Column("value", Json, nullable=False),
)

saved_items: Final = Table(
    "saved_items",
    metadata,
    Column("id", KEY, primary_key=True, autoincrement=True),
    _text("owner"),
    _text("kind"),
    _text("name"),
    Column("content", Json),
    Column("changed", NUMBER, nullable=False),
    Index("saved_items_by_name", "owner", "kind", "name", unique=True),
)
