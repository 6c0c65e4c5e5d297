"""Results of evaluations for lists: read once from the folder of each, then kept in the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.store import Store
from ziggurat.workspace.studio.predictions import Predictions

__all__ = ["evaluation_results"]

_KINDS: Final = ("evaluate", "infer")
_KEPT: Final = ("split", "checkpoint", "step", "epoch", "count")


def evaluation_results(store: Store, jobs: Sequence[Job]) -> dict[str, dict[str, Any]]:
    """Return id → result of each evaluation that is done.

    Args:
        store: what is known.
        jobs: of any kind; those that are no evaluations are left out.

    Returns:
        ``split``, ``checkpoint``, ``step``, ``epoch``, ``count``; ``accuracy`` and ``top5`` of a classifier; the
        numbers among the metrics of another task, with the name of the one that counts as ``primary``; and means over
        all samples, such as ``loss``. Names are left out where there is no such value.
    """
    done = [job for job in jobs if job.kind in _KINDS and job.state == "done"]
    known = store.datasets.facts([job.id for job in done]) if done else {}
    for job in done:
        if not known.get(job.id):
            try:
                known[job.id] = _result(Predictions(JobFolder(Path(job.folder)).results))
                store.jobs.note(job.id, facts=known[job.id])
            except (ZigguratError, KeyError):  # its folder was damaged, or it is deleted at this moment
                continue
    return known


def _result(found: Predictions) -> dict[str, Any]:
    figures = {name: found.figures.get(name) for name in ("accuracy", "top5")}
    said = {name: found.summary.get(name) for name in _KEPT}
    means = {name: value for name, value in found.summary.get("scalars", {}).items() if name not in said}
    metrics = found.summary.get("metrics") or {}
    numbers = {name: value for name, value in metrics.items() if isinstance(value, int | float) and name not in said}
    # The metrics of a task come last: they stand above means of the same name over batches.
    primary = {} if found.is_classifier or not numbers else _primary(found, numbers)
    every = {**means, **said, **figures, **numbers, **primary}
    return {name: value for name, value in every.items() if value is not None}


def _primary(found: Predictions, numbers: dict[str, Any]) -> dict[str, str]:
    """Return the name of the metric that counts; none where the package that brings the task is not installed."""
    try:
        name = found.task.primary_metric.name
    except ZigguratError:
        return {}
    return {"primary": name} if name in numbers else {}
