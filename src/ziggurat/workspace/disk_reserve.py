"""Disk space that stays free, so that trainings and edits can still write."""

from __future__ import annotations

__all__ = ["disk_reserve_bytes"]

_GIBIBYTE = 1 << 30


def disk_reserve_bytes(total_bytes: int) -> int:
    """Return the free space below which no job is started: 2 % of the disk, and at least 1 GiB."""
    return max(_GIBIBYTE, total_bytes // 50)
