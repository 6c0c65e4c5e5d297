"""Revision 0005: workers of jobs as their executor finds them again, and the nodes that jobs are on.

Process and machine of a worker stay where they were: a worker that an earlier release started is adopted by them.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["depends_on", "down_revision", "revision", "upgrade"]

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; they are empty for jobs of before."""
    op.add_column("jobs", sa.Column("worker", sa.Text()))
    op.add_column("jobs", sa.Column("placement", sa.Text()))
