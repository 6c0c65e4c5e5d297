"""Owns revision 0002: what a finished data set holds (kind, counts, classes) stands beside its job."""

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
