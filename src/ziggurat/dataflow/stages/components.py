"""Access to components of datapoints by number or name, and copies that are safe to change."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from ziggurat.dataflow.base import DataFlow, Datapoint, ProxyDataFlow
from ziggurat.dataflow.reading import Bulk, Reader
from ziggurat.errors import UsageError

__all__ = ["SelectComponent", "component_of", "shallow_copy", "with_component"]


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
        """Compute only what ``share`` says is mine, see ``ziggurat.dataflow.parallel.share``."""
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
        has = f"the keys {', '.join(map(repr, point))}" if isinstance(point, dict) else _count(point)
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


def _count(point: Any) -> str:
    return f"{len(point)} components" if hasattr(point, "__len__") else "no components"
