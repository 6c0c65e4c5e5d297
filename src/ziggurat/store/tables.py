"""Tables of the store, as the newest migration leaves them.

Narrow tables hold the columns by which a list of 10,000 jobs is filtered and sorted. What only a single displayed job
needs (its spec, its error) is separate, in ``job_contents``. Tables with many rows refer to a job by the integer
``jobs.key``, not by its id.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Boolean, Column, ForeignKey, Index, MetaData, Table

from ziggurat.store.columns import BIG, KEY, NUMBER, CleanText, Json

__all__ = [
    "attempts",
    "audit",
    "checkpoints",
    "curves",
    "dependencies",
    "job_contents",
    "job_tags",
    "job_texts",
    "jobs",
    "messages",
    "metadata",
    "points",
    "projects",
    "sessions",
    "settings",
    "spec_values",
    "tokens",
    "users",
]

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
    _count("events_offset"),
    Column("tags", Json, nullable=False),
    Index("jobs_by_state", "state", "priority", "position"),
    Index("jobs_by_created", "created", "id"),
    Index("jobs_by_position", "position"),
    Index("jobs_by_project", "project"),
    Index("jobs_by_group", "group"),
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
