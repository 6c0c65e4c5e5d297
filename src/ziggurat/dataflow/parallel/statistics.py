"""Aggregation of stage statistics over several workers that each run a copy of a flow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ziggurat.dataflow.base import StageErrors, StageStats

__all__ = ["merged_errors", "merged_stats"]


def merged_stats(of_workers: Iterable[Sequence[StageStats]]) -> list[StageStats]:
    """Return one row a stage: times are added up over the workers, each of which passes through the whole pass."""
    merged: list[StageStats] = []
    for rows in zip(*of_workers):
        first = rows[0]
        merged.append(
            StageStats(
                first.stage,
                first.path,
                max(row.datapoints for row in rows),
                sum(row.total_s for row in rows),
                sum(row.own_s for row in rows),
            )
        )
    return merged


def merged_errors(of_workers: Iterable[Sequence[StageErrors]]) -> list[StageErrors]:
    """Return one row a stage: that of the worker who dropped most. Where any is dropped, every worker sees them all."""
    most: dict[tuple[int, ...], StageErrors] = {}
    for rows in of_workers:
        for row in rows:
            known = most.get(row.path)
            if known is None or row.counts.total > known.counts.total:
                most[row.path] = row
    return list(most.values())
