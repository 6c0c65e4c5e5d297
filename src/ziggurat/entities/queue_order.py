"""Order of the queue in a file of the workspace, so that it outlives the database: folders of jobs do not tell it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ziggurat.atomic import atomic_write_text
from ziggurat.layout import QUEUE_FILE

__all__ = ["read_queue_order", "write_queue_order"]


def write_queue_order(workspace: Path, job_ids: Sequence[str]) -> None:
    """Replace the file.

    Args:
        workspace: its folder.
        job_ids: of the jobs in the queue, the first one first.

    Raises:
        StorageError: where it cannot be written; what was there stays.
    """
    atomic_write_text(workspace / QUEUE_FILE, json.dumps(list(job_ids), indent=1) + "\n", "The order of the queue")


def read_queue_order(workspace: Path) -> list[str]:
    """Return the ids in the file; none where there is none that can be read."""
    try:
        content = json.loads((workspace / QUEUE_FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    return [each for each in content if isinstance(each, str)] if isinstance(content, list) else []
