"""Revision 0002: facts about a finished dataset (kind, counts, classes), stored next to its job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["depends_on", "down_revision", "revision", "upgrade"]

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; jobs of before know no facts until they are indexed again."""
    op.add_column("job_contents", sa.Column("facts", sa.Text(), nullable=False, server_default="{}"))
