"""Stages that select components, map a user's function over datapoints, or run one before the data."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ziggurat.dataflow.base import Bulk, DataFlow, Datapoint, ProxyDataFlow, Reader
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.dataflow.random import RandomStream
from ziggurat.errors import UsageError

__all__ = ["MapData", "MapDataComponent", "ProcessOnce", "SelectComponent", "component_of", "shallow_copy", "takes_rng"]


class SelectComponent(ProxyDataFlow):
    """Only some components of each datapoint, as a list, in the order given.

    Args:
        ds: a flow of lists, tuples or dicts.
        idxs: numbers, or keys of dicts.
    """

    def __init__(self, ds: DataFlow, idxs: Sequence[int | str]) -> None:
        super().__init__(ds)
        self.idxs = list(idxs)
        self._share: Any = None

    def iterate(self) -> Iterator[list[Any]]:
        """Yield the chosen components."""
        share = self._share
        for point in self.ds:
            yield self.select(point) if share is None or share.mine else share.NOT_MINE

    def bulk(self) -> Bulk | None:
        """Read many at a time."""
        return _SelectBulk(self, self.ds._ziggurat_read()) if self._share is None else None

    def take_share(self, share: Any) -> bool:
        """Compute only what ``share`` says is mine, see ``ziggurat.dataflow.parallel.flow_program``."""
        self._share = share
        return share.offer(self.ds)

    def select(self, point: Datapoint) -> list[Any]:
        """Return the chosen components of one datapoint or batch."""
        return [component_of(point, index) for index in self.idxs]


class _SelectBulk(Bulk):
    def __init__(self, flow: SelectComponent, reader: Reader) -> None:
        self._flow = flow
        self._reader = reader
        # Two components of a batch never share memory, as they would if one were chosen twice.
        self.stacks = reader.stacks and len(set(flow.idxs)) == len(flow.idxs)
        self.fresh = True

    def points(self, count: int) -> list[Any]:
        return [self._flow.select(point) for point in self._reader.take(count)]

    def batch(self, count: int) -> tuple[int, list[Any]]:
        taken, batch = self._reader.take_batch(count)
        return taken, self._flow.select(batch)

    def close(self) -> None:
        self._reader.close()


def component_of(point: Datapoint, index: int | str) -> Any:
    """Return one component.

    Raises:
        UsageError: where there is none with that number or key.
    """
    try:
        return point[index]
    except (LookupError, TypeError) as error:
        count = f"{len(point)} components" if hasattr(point, "__len__") else "no components"
        has = f"the keys {', '.join(map(repr, point))}" if isinstance(point, dict) else count
        raise UsageError(
            f"There is no component {index!r} in the datapoints.",
            received=f"a {type(point).__name__} with {has}",
            advice="Components have numbers from 0, or the keys of a dict.",
        ) from error


def with_component(point: Datapoint, index: Any, value: Any) -> Datapoint:
    """Return a copy of the datapoint (a list, or a dict) with another component at ``index``."""
    changed: Any = dict(point) if isinstance(point, dict) else list(point)
    changed[index] = value
    return changed


def shallow_copy(point: Datapoint) -> Datapoint:
    """Return a datapoint whose components can be replaced without changing ``point``."""
    kind = type(point)
    if kind is list or kind is dict:
        return point.copy()
    return point if kind is tuple else copy.copy(point)


class MapData(ProxyDataFlow):
    """``func(datapoint)`` in place of each datapoint.

    Args:
        ds: the flow to map.
        func: gets a shallow copy of the datapoint and returns another one, or None to drop it. With an argument named
            ``rng`` it gets a ``numpy.random.RandomState``, whose numbers depend on the seed and the datapoint only.
        on_error: what happens when it raises: ``"raise"``, ``"skip"``, ``"log"``, or an ``ErrorPolicy``.

    The length is that of ``ds``: an upper bound where datapoints are dropped.
    """

    _looked_at: tuple[Any, bool] = (None, False)

    def __init__(
        self, ds: DataFlow, func: Callable[..., Datapoint | None], *, on_error: OnError | ErrorPolicy = "raise"
    ) -> None:
        super().__init__(ds)
        self.func = func
        self.policy = ErrorPolicy.of(on_error)
        self._share: Any = None

    def apply(self, point: Datapoint) -> Datapoint | None:
        """Return what becomes of one datapoint, where the function takes no random numbers."""
        return self.func(point.copy() if type(point) is list else shallow_copy(point))

    def apply_random(self, point: Datapoint, rng: np.random.RandomState) -> Datapoint | None:
        """Return what becomes of one datapoint, where it takes them."""
        return self.func(shallow_copy(point), rng=rng)

    def iterate(self) -> Iterator[Datapoint]:
        """Yield the mapped datapoints."""
        ds = self.ds
        stream = self.map_stream()
        share = self._share
        for point in ds:
            if share is not None and not share.mine:
                yield share.NOT_MINE
                continue
            try:
                if stream is None:
                    mapped = self.apply(point)
                else:
                    mapped = self.apply_random(point, stream.seek(ds._ziggurat_pass_index, ds._ziggurat_delivered - 1))
            except Exception as error:
                self._ziggurat_policy.handle(error, key=ds._ziggurat_delivered - 1)
                mapped = None
            if mapped is not None:
                yield mapped
            elif share is not None:
                share.dropped()

    def bulk(self) -> Bulk | None:
        """Map many at a time."""
        return _MapBulk(self, self.ds._ziggurat_read()) if self._share is None else None

    def take_share(self, share: Any) -> None:
        """Compute only what ``share`` says is mine, see ``ziggurat.dataflow.parallel.flow_program``."""
        self._share = share
        share.offer(self.ds)

    def map_stream(self) -> RandomStream | None:
        """Return the random numbers of the function; None where it takes none."""
        if self._looked_at[0] is not self.func:  # looking at its arguments takes longer than a small batch
            self._looked_at = (self.func, takes_rng(self.func))
        return self._ziggurat_stream("map") if self._looked_at[1] else None


class MapDataComponent(MapData):
    """``func(component)`` in place of one component of each datapoint; None drops the datapoint.

    Args:
        ds: a flow of lists, tuples (which become lists) or dicts.
        func: see ``MapData``.
        index: number of the component, or key of a dict.
        on_error: see ``MapData``.
    """

    def __init__(
        self,
        ds: DataFlow,
        func: Callable[..., Any],
        index: int | str = 0,
        *,
        on_error: OnError | ErrorPolicy = "raise",
    ) -> None:
        super().__init__(ds, func, on_error=on_error)
        self.index = index

    def apply(self, point: Datapoint) -> Datapoint | None:
        """Return the datapoint with the mapped component."""
        return self._replaced(point, self.func(component_of(point, self.index)))

    def apply_random(self, point: Datapoint, rng: np.random.RandomState) -> Datapoint | None:
        """Return the same, where the function takes random numbers."""
        return self._replaced(point, self.func(component_of(point, self.index), rng=rng))

    def _replaced(self, point: Datapoint, mapped: Any) -> Datapoint | None:
        return None if mapped is None else with_component(point, self.index, mapped)


class _MapBulk(Bulk):
    """Maps the rest of a pass many datapoints at a time."""

    def __init__(self, flow: MapData, reader: Reader) -> None:
        self._flow = flow
        self._reader = reader
        self._stream = flow.map_stream()
        copies = type(flow).apply is not MapData.apply or not reader.fresh
        self._apply = flow.apply if copies else flow.func

    def points(self, count: int) -> list[Datapoint]:
        kept: list[Datapoint] = []
        while (wanted := count - len(kept)) > 0:
            first = self._flow.ds._ziggurat_delivered
            points = self._reader.take(wanted)
            kept += self._map(points, first)
            if len(points) < wanted:
                break
        return kept

    def close(self) -> None:
        self._reader.close()

    def _map(self, points: list[Datapoint], first: int) -> list[Datapoint]:
        flow, stream = self._flow, self._stream
        apply, pass_index = self._apply, flow.ds._ziggurat_pass_index
        kept = []
        for index, point in enumerate(points, first):
            try:
                mapped = apply(point) if stream is None else flow.apply_random(point, stream.seek(pass_index, index))
            except Exception as error:
                flow._ziggurat_policy.handle(error, key=index)
                continue
            if mapped is not None:
                kept.append(mapped)
        return kept


def takes_rng(func: Callable[..., Any]) -> bool:
    """Tell whether a map function has an unbound argument named ``rng``."""
    if isinstance(func, functools.partial) and "rng" in func.keywords:
        return False
    try:
        parameter = inspect.signature(func).parameters.get("rng")
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False
    return parameter is not None and parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)


class ProcessOnce(ProxyDataFlow):
    """Calls a function before the first datapoint, in the process that reads the flow; passes the data on.

    For settings that belong to a process, such as the number of threads of OpenCV in each worker::

        ds = ProcessOnce(ds, functools.partial(cv2.setNumThreads, 1))

    Args:
        ds: a flow.
        func: called without arguments.
        every_pass: call it at the start of every pass (a resumed one too) instead of once in each process.
    """

    def __init__(self, ds: DataFlow, func: Callable[[], object], *, every_pass: bool = False) -> None:
        super().__init__(ds)
        self.func = func
        self.every_pass = every_pass

    def prepare(self) -> None:
        """Call the function in a new process."""
        if not self.every_pass:
            self.func()

    def iterate(self) -> Iterator[Datapoint]:
        """Yield what the flow yields."""
        if self.every_pass:
            self.func()
        yield from self.ds
