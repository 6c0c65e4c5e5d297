"""Revision 0003: folders of jobs are relative to the workspace.

A database does not know its workspace, which may have been moved since it was last opened. So the paths are changed
where that is known, by ``ziggurat.store.relocation``; this revision keeps older releases out, which need absolute ones.
"""

from __future__ import annotations

__all__ = ["depends_on", "down_revision", "revision", "upgrade"]

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change nothing; see above."""
