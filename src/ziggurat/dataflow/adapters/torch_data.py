"""Conversions between flows and ``torch.utils.data``.

A ``DataLoader`` without workers is the simple case: the flow itself runs in parallel if it has parallel stages, and
its state is accessible. With workers, each worker runs the whole flow and keeps its share, so that no datapoint comes
twice; only ``map_func`` then runs once per datapoint.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.random import fresh_seed
from ziggurat.dataflow.sources import DataFromIterable, as_datapoint
from ziggurat.errors import DatapointError, MissingDependencyError, UsageError, ZigguratError

__all__ = ["WorkerDatapointError", "from_torch", "to_torch"]

_EPOCHS_KEPT = 16
_POLL_S = 0.001


def to_torch(df: DataFlow, *, map_func: Callable[[Datapoint], Any] | None = None) -> Any:
    """Return a ``torch.utils.data.IterableDataset`` that yields the datapoints of ``df``.

    Args:
        df: the flow. Each iteration of the dataset is its next pass.
        map_func: applied to each datapoint that is yielded; with workers, in the one that yields it.

    Returns:
        dataset: also has ``state()`` and ``load_state()`` (and the names ``state_dict``, ``load_state_dict`` that
            torchdata's ``StatefulDataLoader`` calls): it goes on exactly where it was, in the process that iterates.

    Use ``batch_size=None`` where the flow makes batches itself. In a ``DataLoader`` with workers, datapoint ``i`` of a
    pass comes from worker ``i`` modulo their number. The first epoch is the same for any number of workers, and so are
    all others with ``persistent_workers=True``. Without it the workers of each epoch are new: epoch ``e`` is then a
    first pass with a seed made of the flow's seed and ``e``.

    Raises:
        MissingDependencyError: where PyTorch is not installed.
    """
    _require_torch()
    return _make_dataset(df, map_func, None)


def from_torch(dataset: Any, *, shuffle: bool = False) -> DataFlow:
    """Return a flow of what a dataset of PyTorch yields, or a ``DataLoader``; tensors become arrays.

    Args:
        dataset: with ``len()`` and numbered items it can be shuffled, and is resumed at once; otherwise it is iterated,
            and resumed by iterating it again.
        shuffle: a new random order in every pass.

    Raises:
        UsageError: where ``shuffle`` is asked for a dataset without numbered items.
    """
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        return _FromMapDataset(dataset, shuffle=shuffle)
    if shuffle:
        raise UsageError(
            f"The {type(dataset).__name__} cannot be shuffled: its items have no numbers.",
            advice="Leave `shuffle` out, and use `LocallyShuffleData` behind it.",
        )
    return _FromIterableDataset(dataset)


class WorkerDatapointError(DatapointError):
    """A ``DatapointError`` as PyTorch carries it over from a worker: with the worker's traceback as its text."""

    code = "worker_datapoint"

    def __init__(self, message: str) -> None:
        ZigguratError.__init__(self, message)
        self.key = None
        self.reason = message


class _FromMapDataset(IndexedFlow):
    def __init__(self, dataset: Any, *, shuffle: bool) -> None:
        super().__init__(shuffle=shuffle)
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def datapoint(self, index: int) -> Datapoint:
        return as_datapoint(self.dataset[index])


class _FromIterableDataset(DataFromIterable):
    def iterate(self) -> Iterator[Datapoint]:
        for item in super().iterate():
            yield as_datapoint(item)


class _FlowDataset:
    """What the dataset does; PyTorch's base class is added when PyTorch is there."""

    def __init__(self, flow: DataFlow, map_func: Callable[[Datapoint], Any] | None, epochs: Any) -> None:
        if flow._ziggurat_state()["seed"] is None:
            flow._ziggurat_seed(fresh_seed())  # all workers must have the same one
        self.flow = flow
        self.map_func = map_func
        self._epochs = _new_epochs() if epochs is None else epochs
        self._fresh = flow._ziggurat_state()
        self._began_in_worker = False
        self._expected_workers: int | None = None

    def __iter__(self) -> Iterator[Any]:
        worker = _worker_info()
        number_of_workers = worker.num_workers if worker else 1
        if self._expected_workers not in (None, number_of_workers):
            raise UsageError(f"The state is of {self._expected_workers} workers, and there are {number_of_workers}.")
        if worker is None:
            return map(self._mapped, iter(self.flow))
        return _renamed_errors(self._share(worker))

    def state(self) -> dict[str, Any]:
        """Return where the dataset stands, as JSON values.

        Raises:
            UsageError: in the main process, where workers iterate.
        """
        worker = _worker_info()
        if worker is None and int(self._epochs[0]):
            raise UsageError(
                "The position of a dataset is known where it is iterated.",
                received="a call in the main process, while the workers of a DataLoader iterate",
                advice="Use `num_workers=0` with a flow that has parallel stages, or torchdata's `StatefulDataLoader`.",
            )
        return {"flow": self.flow._ziggurat_state(), "workers": worker.num_workers if worker else 1}

    def load_state(self, state: dict[str, Any]) -> None:
        """Let the next iteration go on where ``state()`` was called."""
        self.flow._ziggurat_load_state(state["flow"])
        self._expected_workers = state["workers"]
        self._began_in_worker = True

    state_dict = state
    load_state_dict = load_state

    def __reduce__(self) -> tuple[Any, ...]:
        return (_make_dataset, (self.flow, self.map_func, self._epochs))

    def _mapped(self, point: Datapoint) -> Any:
        return point if self.map_func is None else self.map_func(point)

    def _share(self, worker: Any) -> Iterator[Any]:
        """Yield the datapoints that are this worker's."""
        if not self._began_in_worker:
            self._began_in_worker = True
            epoch = self._epoch(worker)
            if epoch:
                self.flow._ziggurat_load_state({**self._fresh, "seed": _mixed(self._fresh["seed"], epoch)})
        for point in self.flow:
            if (self.flow._ziggurat_delivered - 1) % worker.num_workers == worker.id:
                yield self._mapped(point)

    def _epoch(self, worker: Any) -> int:
        """Return the number of the epoch that new workers begin; the first of them counts, the others wait for it.

        PyTorch gives the workers of one epoch seeds that differ by their numbers only.
        """
        epochs = self._epochs
        token = worker.seed - worker.id + 1
        if worker.id == 0:
            number = int(epochs[0])
            slot = 1 + 2 * (number % _EPOCHS_KEPT)
            epochs[slot + 1] = number
            epochs[slot] = token
            epochs[0] = number + 1
            return number
        while True:
            for slot in range(1, 1 + 2 * _EPOCHS_KEPT, 2):
                if int(epochs[slot]) == token:
                    return int(epochs[slot + 1])
            time.sleep(_POLL_S)


def _renamed_errors(items: Iterator[Any]) -> Iterator[Any]:
    """Raise a ``DatapointError`` as a class that PyTorch can make again from its text."""
    try:
        yield from items
    except DatapointError as error:
        raise WorkerDatapointError(str(error)) from error


def _make_dataset(flow: DataFlow, map_func: Callable[[Datapoint], Any] | None, epochs: Any) -> Any:
    return _dataset_class()(flow, map_func, epochs)


@lru_cache(maxsize=1)
def _dataset_class() -> Any:
    from torch.utils.data import IterableDataset

    return type("FlowDataset", (_FlowDataset, IterableDataset), {"__doc__": _FlowDataset.__doc__})


def _worker_info() -> Any:
    from torch.utils.data import get_worker_info

    return get_worker_info()


def _new_epochs() -> Any:
    """Return shared memory: the number of epochs that workers began, and pairs of token and number of the latest."""
    torch = _require_torch()
    return torch.zeros(1 + 2 * _EPOCHS_KEPT, dtype=torch.int64).share_memory_()


def _require_torch() -> ModuleType:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError("torch", extra="torch", purpose="datasets of PyTorch") from error
    return torch


def _mixed(seed: int, epoch: int) -> int:
    digest = hashlib.blake2b(repr((seed, "epoch", epoch)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
