"""Samples that a training never sees: it keeps the order of its data, and leaves out a batch that is not full."""

from __future__ import annotations

from typing import Any, Final

from ziggurat.dataflow import IndexedFlow
from ziggurat.formatting import as_count, plural
from ziggurat.specs import TrainSpec
from ziggurat.worker.pipeline import JobData

__all__ = ["unseen_samples"]

_NAMED: Final = 5


def unseen_samples(spec: TrainSpec, data: JobData) -> str:
    """Return a warning that names the samples that no epoch has; empty if there are none, or it cannot be known.

    With ``shuffle``, others are left out in each epoch. Pairs that a task draws, and classes that are seen more often,
    have no fixed place in the order.

    Args:
        spec: of the training.
        data: its batches.
    """
    flow: Any = None if data.source is None else data.source.splits["train"]
    is_fitted = spec.fine_tuning is not None and spec.fine_tuning.fit_head  # to all samples
    if spec.shuffle or is_fitted or flow is None or spec.oversample_below or _draws_rows(data, flow):
        return ""
    count, batch = len(flow), spec.batch_size * spec.gradient_accumulation_steps
    steps = spec.epochs * (spec.steps_per_epoch or count // batch)
    seen = min(steps, count // batch) * batch
    if seen == count:
        return ""
    keys = _keys(flow, seen, count)
    which = f": {', '.join(keys)}" if 0 < len(keys) <= _NAMED else f": {keys[0]} to {keys[-1]}" if keys else ""
    why = (
        f"a batch of {as_count(batch)} that is not full is left out"
        if seen == count // batch * batch
        else f"the training has only {plural(steps, 'step')}"
    )
    is_one = count - seen == 1
    return (
        f"The last {'sample' if is_one else plural(count - seen, 'sample')} of {as_count(count)} "
        f"{'is' if is_one else 'are'} never trained on{which}. `shuffle` is off, and {why}: set `shuffle`, or a batch "
        "size that divides the number of samples."
    )


def _draws_rows(data: JobData, flow: Any) -> bool:
    """Return whether a task draws its samples from those of the split, as that of pairs does."""
    context = data.context
    return context.task.rows(context.schema, flow, lambda: [0] * len(flow), shuffle=False, seed=0) is not None


def _keys(flow: Any, first: int, end: int) -> list[str]:
    """Return the keys of rows, only those of the first and the last where there are many; empty if they have none."""
    if not isinstance(flow, IndexedFlow) or not hasattr(flow, "key"):
        return []
    rows = range(first, end) if end - first <= _NAMED else [*range(first, first + _NAMED), end - 1]
    return [str(flow.key(row)) for row in rows]
