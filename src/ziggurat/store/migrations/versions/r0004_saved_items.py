"""Revision 0004: saved views, presets and drafts of users; an index that counts of jobs are read from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["depends_on", "down_revision", "revision", "upgrade"]

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table and the index; nothing of before is changed."""
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    texts = [sa.Column(name, sa.Text(), nullable=False) for name in ("owner", "kind", "name")]
    op.create_table(
        "saved_items",
        sa.Column("id", key, primary_key=True, autoincrement=True),
        *texts,
        sa.Column("content", sa.Text()),
        sa.Column("changed", sa.Double(), nullable=False),
    )
    op.create_index("saved_items_by_name", "saved_items", ["owner", "kind", "name"], unique=True)
    op.create_index("jobs_by_kind", "jobs", ["state", "kind", "group", "ended"])
