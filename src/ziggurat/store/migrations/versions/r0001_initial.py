"""Revision 0001: jobs, their results, accounts, and the studio's own settings."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

__all__ = ["depends_on", "down_revision", "revision", "upgrade"]

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables of the first schema."""
    _make_jobs()
    _make_job_parts()
    _make_curves()
    _make_outcomes()
    _make_people()
    _make_studio()


def _make_jobs() -> None:
    op.create_table(
        "jobs",
        _own_key(),
        _unique("id"),
        *_texts("kind", "name", "state", "folder", "project", "owner", "group", "parent"),
        _count("priority"),
        _number("position"),
        _text("devices"),
        _text("reason"),
        sa.Column("paused", sa.Boolean(), nullable=False),
        *_texts("framework", "network"),
        _number("created"),
        _number("started", nullable=True),
        _number("ended", nullable=True),
        *_counts("attempt", "epoch", "max_epoch", "global_step", "total_steps"),
        _text("stage"),
        *(_number(name, nullable=True) for name in ("remaining_s", "steps_per_s", "data_wait_share")),
        _text("health"),
        _count("exit_code", nullable=True),
        _count("pid", nullable=True),
        _text("host"),
        _count("events_offset"),
        _text("tags"),
    )
    op.create_index("jobs_by_state", "jobs", ["state", "priority", "position"])
    op.create_index("jobs_by_created", "jobs", ["created", "id"])
    op.create_index("jobs_by_position", "jobs", ["position"])
    op.create_index("jobs_by_project", "jobs", ["project"])
    op.create_index("jobs_by_group", "jobs", ["group"])


def _make_job_parts() -> None:
    op.create_table(
        "job_contents",
        _job_key(primary_key=True),
        *_texts("spec", "needs", "depends_on"),
        sa.Column("error", sa.Text()),
        _text("notes"),
    )
    op.create_table("job_texts", _job_key(primary_key=True), _text("text"))
    op.create_table("job_tags", _job_key(primary_key=True), _text("tag", primary_key=True))
    op.create_index("job_tags_by_tag", "job_tags", ["tag", "job_key"])
    op.create_table("job_dependencies", _job_key(primary_key=True), _text("needed_id", primary_key=True))
    op.create_index("job_dependencies_by_needed", "job_dependencies", ["needed_id"])
    op.create_table(
        "spec_values",
        _text("name", primary_key=True),
        _job_key(primary_key=True),
        _number("number", nullable=True),
        sa.Column("text", sa.Text()),
        sqlite_with_rowid=False,
    )
    op.create_index("spec_values_by_job", "spec_values", ["job_key"])


def _make_curves() -> None:
    op.create_table(
        "curves",
        _own_key(),
        _job_key(),
        _text("tag"),
        *(_number(name, nullable=True) for name in ("last", "minimum", "maximum")),
        *_counts("count", "last_step"),
    )
    op.create_index("curves_by_job", "curves", ["job_key"])
    op.create_index("curves_by_tag", "curves", ["tag", "job_key", "last"])
    op.create_table(
        "points",
        sa.Column(
            "curve_key", _KEY, sa.ForeignKey("curves.key", ondelete="CASCADE"), primary_key=True, autoincrement=False
        ),
        sa.Column("step", sa.BigInteger(), primary_key=True, autoincrement=False),
        _number("value", nullable=True),
        _count("epoch"),
        _number("time"),
        sqlite_with_rowid=False,
    )


def _make_outcomes() -> None:
    op.create_table(
        "attempts",
        _job_key(primary_key=True),
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        _number("started"),
        _number("ended", nullable=True),
        _text("outcome"),
        _count("exit_code", nullable=True),
        _text("reason"),
        _count("pid", nullable=True),
        _text("host"),
        *_counts("first_step", "last_step"),
    )
    op.create_table(
        "checkpoints",
        _job_key(primary_key=True),
        _text("name", primary_key=True),
        *_counts("step", "epoch"),
        _text("reason"),
        _count("size_bytes"),
        _number("created"),
        _text("scalars"),
    )
    op.create_table("messages", _own_key(), _job_key(), _number("time"), *_texts("level", "text"), _count("step"))
    op.create_index("messages_by_job", "messages", ["job_key", "key"])


def _make_people() -> None:
    op.create_table(
        "users",
        _own_key("id"),
        _unique("name"),
        *_texts("role", "password_hash"),
        sa.Column("disabled", sa.Boolean(), nullable=False),
        _number("created"),
        _number("last_seen", nullable=True),
    )
    op.create_table(
        "sessions",
        _text("digest", primary_key=True),
        sa.Column("user_id", _KEY, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
        *(_number(name) for name in ("created", "expires", "last_used")),
    )
    op.create_index("sessions_by_user", "sessions", ["user_id"])
    op.create_index("sessions_by_expiry", "sessions", ["expires"])
    op.create_table(
        "tokens",
        _own_key("id"),
        _unique("digest"),
        sa.Column("user_id", _KEY, sa.ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
        *_texts("name", "scope"),
        _number("created"),
        _number("expires", nullable=True),
        _number("last_used", nullable=True),
        sa.Column("revoked", sa.Boolean(), nullable=False),
    )
    op.create_index("tokens_by_user", "tokens", ["user_id"])


def _make_studio() -> None:
    op.create_table("projects", _own_key("id"), _unique("name"), _number("created"))
    op.create_table("audit", _own_key(), _number("time"), *_texts("who", "action", "target", "details"))
    op.create_index("audit_by_time", "audit", ["time"])
    op.create_index("audit_by_target", "audit", ["target", "time"])
    op.create_table("settings", _text("name", primary_key=True), _text("value"))


def _own_key(name: str = "key") -> sa.Column[Any]:
    return sa.Column(name, _KEY, primary_key=True, autoincrement=True)


def _job_key(*, primary_key: bool = False) -> sa.Column[Any]:
    place = sa.ForeignKey("jobs.key", ondelete="CASCADE")
    return sa.Column("job_key", _KEY, place, nullable=False, primary_key=primary_key, autoincrement=False)


def _text(name: str, *, primary_key: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False, primary_key=primary_key)


def _texts(*names: str) -> list[sa.Column[Any]]:
    return [_text(name) for name in names]


def _unique(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.Text(), nullable=False, unique=True)


def _number(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.Double(), nullable=nullable)


def _count(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def _counts(*names: str) -> list[sa.Column[Any]]:
    return [_count(name) for name in names]
