"""Adoption of users' classes as stages: what of a class is ours to call, and what is its own.

A user's class has all plain names for itself (``seed``, ``children``, ``prepare``, …): this package calls a flow by
reserved names (``_ziggurat_children``) only, and each class gets those of the methods that it means for the package:

- A class of this package: each name of ``HOOKS``.
- A class in Tensorpack's style, which defines ``__iter__`` or ``get_data``: its generator, and nothing else.
- Another class that defines ``iterate()``, or ``datapoint()`` of an ``IndexedFlow``: each name of ``HOOKS``.

A user's class has the style of its bases, where these are users' classes that have one. A ``close()`` without arguments
is called in any style, when the pipeline is closed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["HOOKS", "OpenProperty", "adapt", "method_of", "reserved"]

HOOKS = (
    "iterate",
    "children",
    "prepare",
    "bulk",
    "stage_state",
    "load_stage_state",
    "children_state",
    "children_state_if_over",
    "load_state",
    "stats",
    "error_counts",
    "close",
    "take_share",
    "resumes_by_replay",
    "spans_passes",
)
"""What a class that knows this package may define, and is called by its reserved name."""

_PACKAGE = __name__.partition(".")[0]


class OpenProperty(property):
    """A property for which an object may have an attribute of its own."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the object's own attribute, or else what the property tells."""
        if instance is not None and self._name in vars(instance):
            return vars(instance)[self._name]
        return super().__get__(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)[self._name] = value

    def __delete__(self, instance: Any) -> None:
        vars(instance).pop(self._name)


def reserved(shown: Any) -> Any:
    """Return what an ``OpenProperty`` tells as a property that no object's own attribute hides."""
    return property(shown.fget)


def method_of(source: object, name: str) -> Any:
    """Return a method of a flow, whatever its class uses the name for, or of any other object; None without it."""
    return getattr(source, f"_ziggurat_{name}", None) or getattr(source, name, None)


def adapt(cls: Any) -> None:
    """Give a new class the reserved names of what it means for this package.

    ``__iter__`` and ``get_data`` stay those of the base class, which counts, seeds and resumes.
    """
    own = dict(vars(cls))
    generator = _generator_of(own)
    if generator is not None:
        cls._ziggurat_iterate = _as_iterate(cls, generator)
        cls._ziggurat_resumes_by_replay = True
        for name in ("__iter__", "get_data"):
            if name in own:
                delattr(cls, name)
    if "size" in own and "__len__" not in own:
        cls.__len__ = own["size"]
    if cls.__module__.partition(".")[0] != _PACKAGE:
        cls._ziggurat_is_stage = _is_stage(cls, own, generator is not None)
        if not cls._ziggurat_is_stage:
            if _can_close(own.get("close")):
                cls._ziggurat_close = _closing(cls, own["close"])
            return
    for name in HOOKS:
        if name in own:
            setattr(cls, f"_ziggurat_{name}", own[name])


def _is_stage(cls: Any, own: dict[str, Any], has_generator: bool) -> bool | None:
    """Tell whether a user's class is written for this package; None where it does not show."""
    if has_generator:
        return False
    if cls._ziggurat_is_stage is not None:
        return cls._ziggurat_is_stage
    written = (own.get(name) for name in ("iterate", "datapoint"))
    return True if any(map(inspect.isfunction, written)) else None


def _can_close(close: Any) -> bool:
    """Tell whether what a class calls ``close`` is a method without arguments."""
    return inspect.isfunction(close) and len(inspect.signature(close).parameters) == 1


def _closing(cls: type, close: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Return a user's ``close()`` that also closes what the flow reads, though it may not know of that."""

    def close_all(self: Any) -> None:
        close(self)
        above: Any = super(cls, self)
        above._ziggurat_close()

    return close_all


def _generator_of(own: Any) -> Callable[[Any], Any] | None:
    """Return the function that yields; where both names are defined, one of them often only calls the other."""
    written = [own[name] for name in ("__iter__", "get_data") if name in own]
    generators = [function for function in written if inspect.isgeneratorfunction(function)]
    return next(iter(generators + written), None)


def _as_iterate(cls: type, generator: Callable[[Any], Any]) -> Callable[[Any], Iterator[Any]]:
    """Return ``iterate()`` for ``cls``; while the user's code runs, ``super().__iter__()`` means the class above."""

    def iterate(self: Any) -> Iterator[Any]:
        inside = self._ziggurat_life.inside
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
