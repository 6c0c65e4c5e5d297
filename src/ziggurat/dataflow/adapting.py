"""Owns the way from a class in Tensorpack's style (``__iter__``, ``get_data``, ``size``) to a stage of this library."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["adapt"]


def adapt(cls: Any) -> None:
    """Turn what a user's class defines into what the base class calls: ``iterate`` and ``__len__``.

    ``__iter__`` and ``get_data`` then stay those of the base class, which counts, seeds and resumes.
    """
    own = cls.__dict__
    generator = _generator_of(own)
    if generator is not None:
        cls.iterate = _as_iterate(cls, generator)
        for name in ("__iter__", "get_data"):
            if name in own:
                delattr(cls, name)
        if "resumes_by_replay" not in own:
            cls.resumes_by_replay = True
    if "size" in own and "__len__" not in own:
        cls.__len__ = own["size"]


def _generator_of(own: Any) -> Callable[[Any], Any] | None:
    """Return the function that yields; where both names are defined, one of them often only calls the other."""
    written = [own[name] for name in ("__iter__", "get_data") if name in own]
    generators = [function for function in written if inspect.isgeneratorfunction(function)]
    return next(iter(generators + written), None)


def _as_iterate(cls: type, generator: Callable[[Any], Any]) -> Callable[[Any], Iterator[Any]]:
    """Return ``iterate()`` for ``cls``; while the user's code runs, ``super().__iter__()`` means the class above."""

    def iterate(self: Any) -> Iterator[Any]:
        inside = self._life.inside
        inside.append(cls)
        try:
            items = iter(generator(self))
        finally:
            inside.pop()
        while True:
            inside.append(cls)
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                inside.pop()
            yield item

    return iterate
