"""Conversions between flows and datasets of Hugging Face's ``datasets``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.sources import DataFromIterable, as_component
from ziggurat.errors import DatapointError, MissingDependencyError, UsageError

__all__ = ["from_huggingface", "to_huggingface"]


def from_huggingface(dataset: Any, columns: Sequence[str] | None = None, *, shuffle: bool = False) -> DataFlow:
    """Return a flow of the rows of a ``datasets.Dataset`` or ``datasets.IterableDataset``.

    Args:
        dataset: one split. Images come as (H, W, 3) uint8 RGB, gray ones as (H, W, 1).
        columns: names of the columns that become the components of a list; where None, datapoints are dicts.
        shuffle: a new random order in every pass; only for a ``datasets.Dataset``.

    Raises:
        UsageError: where ``shuffle`` is asked for an ``IterableDataset``, or there is no such column.
    """
    known = getattr(dataset, "column_names", None)
    if isinstance(known, dict):
        raise UsageError(
            f"The data has several splits, {', '.join(known)}, and a flow is made of one.",
            advice='Write `dataset["train"]`.',
        )
    missing = [name for name in columns or () if known and name not in known]
    if missing:
        raise UsageError(f"There is no column {', '.join(missing)}; the columns are {', '.join(known or ())}.")
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return _FromTable(dataset, columns, shuffle=shuffle)
    if shuffle:
        raise UsageError(
            f"The {type(dataset).__name__} cannot be shuffled: only the rows of a `datasets.Dataset` have numbers.",
            advice="Call its own `shuffle()`, or use `LocallyShuffleData`.",
        )
    return _FromStream(dataset, columns)


def to_huggingface(df: DataFlow, columns: Sequence[str] | None = None) -> Any:
    """Return a ``datasets.IterableDataset`` of the datapoints of ``df``; nothing is written to a disk.

    Args:
        df: the flow. Each iteration of the dataset is its next pass.
        columns: names of the components; not needed where datapoints are dicts.

    Raises:
        MissingDependencyError: where ``datasets`` is not installed.
        DatapointError: while it is iterated, where a datapoint is no dict and ``columns`` do not fit.
    """
    try:
        from datasets import IterableDataset
    except ImportError as error:
        raise MissingDependencyError("datasets", extra="huggingface", purpose="datasets of Hugging Face") from error
    names = None if columns is None else tuple(columns)
    return IterableDataset.from_generator(_rows, gen_kwargs={"df": df, "columns": names})


def _rows(df: DataFlow, columns: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    for number, point in enumerate(df):
        if isinstance(point, dict):
            yield point
        elif columns is not None and len(point) == len(columns):
            yield dict(zip(columns, point, strict=True))
        else:
            raise DatapointError(
                number,
                f"it has {len(point)} components, for the columns {columns}.",
                advice="Give `columns` with a name for each component.",
            )


def _as_datapoint(row: dict[str, Any], columns: Sequence[str] | None) -> Datapoint:
    if columns is None:
        return {name: as_component(value) for name, value in row.items()}
    return [as_component(row[name]) for name in columns]


class _FromTable(IndexedFlow):
    def __init__(self, dataset: Any, columns: Sequence[str] | None, *, shuffle: bool) -> None:
        super().__init__(shuffle=shuffle)
        self.dataset = dataset
        self.columns = columns

    def __len__(self) -> int:
        return len(self.dataset)

    def datapoint(self, index: int) -> Datapoint:
        return _as_datapoint(self.dataset[index], self.columns)


class _FromStream(DataFromIterable):
    def __init__(self, dataset: Any, columns: Sequence[str] | None) -> None:
        super().__init__(dataset)
        self.columns = columns

    def iterate(self) -> Iterator[Datapoint]:
        for row in super().iterate():
            yield _as_datapoint(row, self.columns)
