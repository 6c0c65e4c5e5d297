"""Facts on a batch that a training read: the rows of its samples, as the order is a function of seed and pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ziggurat.dataflow.base import DataFlow
from ziggurat.engine.callbacks.batches import batch_size
from ziggurat.errors import DataError
from ziggurat.tasks.base import Task
from ziggurat.worker.pipeline import DataOptions, JobData, Pipeline

__all__ = ["BatchFacts"]


@dataclass(frozen=True)
class BatchFacts:
    """Describes the last batch; ``BlackBox`` calls it once, when a loss is not finite.

    Args:
        data: batches of the job.
        options: what the job asks of its data.
    """

    data: JobData
    options: DataOptions

    def __call__(self, batch: Any, position: Any) -> dict[str, Any]:
        """Return facts on a batch as JSON values.

        Args:
            batch: as the training got it.
            position: of the data behind the batch, see ``BatchCycle.state``.

        Returns:
            ``split`` and ``rows``, the row of each sample in it, or None; ``inputs``, the kind of the data; and
            ``classes``, the number of classes if the target of a sample is one class number, else None.
        """
        context = self.data.context
        target = context.target
        is_class = target is not None and target.is_class_number and not target.shape
        classes = target.classes if target is not None and is_class else None
        return {
            "split": "train",
            "rows": self.rows(batch, position),
            "inputs": context.schema.kind,
            "classes": classes,
        }

    def rows(self, batch: Any, position: Any) -> list[int] | None:
        """Return the row of each sample of a batch in the training split.

        Returns:
            None where they cannot be known for sure: samples were left out because of errors, a task makes samples of
            several rows, or the data says no position.
        """
        source, state = self.data.source, position.get("source") if isinstance(position, Mapping) else None
        if source is None or not isinstance(state, Mapping) or "skip" in position:
            return None
        task, count = self.data.context.task, self.options.batch_size
        passed, delivered = int(state["pass"]), int(state["delivered"])
        if type(task).rows is not Task.rows or passed < 0 or delivered < 1 or any(map(_has_gaps, _states(state))):
            return None
        try:
            if batch_size(batch) != count:
                return None
        except DataError:
            return None
        stages = Pipeline(source, self.options, self.data.context).training(by_row=True)
        if len(stages.rows) != len(_leaf(self.data.train)):
            return None
        order = stages.order(passed)[(delivered - 1) * count : delivered * count]
        return [int(row) for row in order] if len(order) == count else None


def _leaf(flow: DataFlow) -> DataFlow:
    while children := flow.children():
        flow = children[0]
    return flow


def _states(state: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield state
    for child in state.get("children") or ():
        yield from _states(child)


def _has_gaps(state: Mapping[str, Any]) -> bool:
    """Return whether a stage left samples out: those behind them have moved up in the order."""
    return bool(state.get("errors"))
