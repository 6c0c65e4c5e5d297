"""Baselines of a training that is done: computed once, within a limited time, and kept in its folder."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ziggurat.entities.baselines import JobBaseline, JobBaselines, read_baselines, write_baselines
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.errors import DatapointError, ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.specs import TrainSpec
from ziggurat.tasks import Task, TaskContext
from ziggurat.worker.build import data_options
from ziggurat.worker.pipeline import Pipeline
from ziggurat.worker.source import DataSource, ImportedSplit, open_source

__all__ = ["keep_baselines"]

_LOG: Final = logging.getLogger(__name__)

_LIMIT_S: Final = 60.0
"""A training of hours need not wait for it, and one of seconds is compared in less."""

_BATCH_SIZE: Final = 64
_MOST_LABELS: Final = 20_000
"""Of the training split: the most frequent class is known from fewer."""

_TRAIN: Final = "train"
_VAL: Final = "val"


def keep_baselines(
    spec: TrainSpec,
    folder: JobFolder,
    context: TaskContext,
    is_over: Callable[[], bool],
    *,
    limit_s: float = _LIMIT_S,
) -> None:
    """Compute the baselines of a task and keep them beside the value of the training; no error leaves it.

    What is there already is not computed again; the value of the training is that of its best checkpoint now.

    Args:
        spec: of the job.
        folder: of the job.
        context: of the job.
        is_over: whether the worker is to end.
        limit_s: after which the baselines are given up.
    """
    if type(context.task).baselines is Task.baselines:
        return
    try:
        known = read_baselines(folder)
        baselines, reason = known.baselines if known is not None else (), ""
        if not baselines:
            baselines, reason = _computed(spec, folder, context, is_over, limit_s)
        if baselines or reason:
            write_baselines(folder, _beside(folder, context, baselines, reason))
    except Exception as error:  # the training is done, whatever becomes of its baselines
        _LOG.warning("The baselines of this training are not kept: %s", error)


def _beside(folder: JobFolder, context: TaskContext, baselines: Sequence[JobBaseline], reason: str) -> JobBaselines:
    metric = context.task.primary_metric
    best = best_checkpoint(folder)
    value = None if best is None else best.checkpoint.values.get(f"validation_{metric.name}")
    return JobBaselines(
        metric=metric.name,
        mode=metric.mode,
        title=metric.title,
        value=value if value is not None and math.isfinite(value) else None,
        checkpoint="" if best is None else best.checkpoint.name,
        baselines=tuple(baselines),
        reason=reason,
    )


def _computed(
    spec: TrainSpec, folder: JobFolder, context: TaskContext, is_over: Callable[[], bool], limit_s: float
) -> tuple[Sequence[JobBaseline], str]:
    """Return the baselines, or why there are none."""
    end_s = time.monotonic() + limit_s
    found: list[JobBaseline] = []
    reasons: list[str] = []

    def is_late() -> bool:
        return is_over() or time.monotonic() > end_s

    def compute() -> None:
        try:
            found.extend(_of_task(spec, folder, context, is_late))
        except _LateError:
            pass
        except ZigguratError as error:
            reasons.append(str(error))
        except Exception as error:
            _LOG.warning("The baselines of this training cannot be computed.", exc_info=error)
            reasons.append(f"They cannot be computed: {type(error).__name__}: {error}.")

    # A fit cannot be broken off: the worker ends without waiting for a daemon.
    thread = threading.Thread(target=compute, name="baselines", daemon=True)
    thread.start()
    while thread.is_alive() and not is_late():
        thread.join(0.05)
    if found:
        return tuple(found), ""
    if is_over() and not reasons:
        return (), ""
    return (), reasons[0] if reasons else f"They took more than {limit_s:g} s."


def _of_task(
    spec: TrainSpec, folder: JobFolder, context: TaskContext, is_late: Callable[[], bool]
) -> Iterator[JobBaseline]:
    source = open_source(spec.data.source, spec.data.options, spec.seed, folder)
    if _VAL not in source.splits or not len(source.splits[_VAL]):
        raise ZigguratError("Baselines are measured on a validation split, which this data does not have.")
    options = replace(data_options(spec), batch_size=_BATCH_SIZE)
    pipeline = Pipeline(source, options, context)
    train = _Split(source, pipeline, _TRAIN, is_late, most_labels=_MOST_LABELS)
    val = _Split(source, pipeline, _VAL, is_late)
    for each in context.task.baselines(context, train, val):
        yield JobBaseline(name=each.name, title=each.title, scores=dict(each.scores), reason=each.reason)


class _LateError(Exception):
    """The time for baselines is over."""


class _Split:
    """A split as tasks read it for their baselines; see ``ziggurat.tasks.base.SplitData``.

    Args:
        source: of the job.
        pipeline: of it.
        split: its name.
        is_late: asked at each sample.
        most_labels: how many labels are read at most, spread over the split; None for all.
    """

    def __init__(
        self,
        source: DataSource,
        pipeline: Pipeline,
        split: str,
        is_late: Callable[[], bool],
        *,
        most_labels: int | None = None,
    ) -> None:
        self._flow: Any = source.splits[split]
        self._pipeline = pipeline
        self._split = split
        self._is_late = is_late
        self._most_labels = most_labels

    def labels(self) -> Iterator[Any]:
        """Yield the labels."""
        count = len(self._flow)
        most = min(count, self._most_labels or count)
        for row in np.linspace(0, count - 1, num=most, dtype=int).tolist():
            self._check()
            try:
                flow = self._flow
                yield (flow.unread(row) if isinstance(flow, ImportedSplit) else flow.datapoint(row))[-1]
            except DatapointError:
                continue

    def samples(self) -> Iterator[Sequence[np.ndarray]]:
        """Yield the arrays of each sample."""
        with self._pipeline.fitted(self._split) as flow:
            for each in flow:
                self._check()
                yield each

    def batches(self) -> Iterator[Sequence[np.ndarray]]:
        """Yield batches."""
        with self._pipeline.evaluation(self._split) as flow:
            for each in flow:
                self._check()
                yield each

    def _check(self) -> None:
        if self._is_late():
            raise _LateError
