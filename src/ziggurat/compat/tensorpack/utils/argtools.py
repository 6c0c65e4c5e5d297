"""Decorators that map and remember arguments, and shapes as lists."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError, StateError
from ziggurat.tf import logger

__all__ = [
    "call_only_once",
    "get_data_format",
    "graph_memoized",
    "log_once",
    "map_arg",
    "memoized",
    "memoized_ignoreargs",
    "memoized_method",
    "shape2d",
    "shape4d",
]

_LAYOUTS: Final = {"NCHW": "channels_first", "NHWC": "channels_last"}

memoized = functools.cache
"""Remember the results of a function by its arguments, which are hashable."""


def map_arg(**maps: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that passes some arguments through functions first.

    Args:
        maps: name of an argument → function of its value.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def mapped(*arguments: Any, **options: Any) -> Any:
            bound = signature.bind_partial(*arguments, **options)
            for name, change in maps.items():
                if name in bound.arguments:
                    bound.arguments[name] = change(bound.arguments[name])
            return function(*bound.args, **bound.kwargs)

        return mapped

    return decorate


def graph_memoized(func: Callable[..., Any]) -> Callable[..., Any]:
    """Remember the results of a function by the default graph and its arguments; a graph that is gone is forgotten."""
    results: weakref.WeakKeyDictionary[Any, dict[Any, Any]] = weakref.WeakKeyDictionary()

    @functools.wraps(func)
    def remembered(*arguments: Any, **options: Any) -> Any:
        known = results.setdefault(tf.get_default_graph(), {})
        key = (arguments, tuple(sorted(options.items())))
        if key not in known:
            known[key] = func(*arguments, **options)
        return known[key]

    return remembered


def memoized_ignoreargs(func: Callable[..., Any]) -> Callable[..., Any]:
    """Remember the first result of a function, whatever the arguments of later calls are."""
    results: list[Any] = []

    @functools.wraps(func)
    def remembered(*arguments: Any, **options: Any) -> Any:
        if not results:
            results.append(func(*arguments, **options))
        return results[0]

    return remembered


def memoized_method(func: Callable[..., Any]) -> Callable[..., Any]:
    """Remember the results of a method in its object, by the arguments."""
    place = f"_remembered_{func.__name__}"

    @functools.wraps(func)
    def remembered(self: Any, *arguments: Any, **options: Any) -> Any:
        known = self.__dict__.setdefault(place, {})
        key = (arguments, tuple(sorted(options.items())))
        if key not in known:
            known[key] = func(self, *arguments, **options)
        return known[key]

    return remembered


def call_only_once(func: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method be called once for each object.

    Raises:
        StateError: with the second call.
    """
    place = f"_called_{func.__name__}"

    @functools.wraps(func)
    def once(self: Any, *arguments: Any, **options: Any) -> Any:
        if self.__dict__.get(place):
            raise StateError(
                f"`{type(self).__name__}.{func.__name__}` was called a second time; it is called once for each object.",
                advice="Make another object.",
            )
        self.__dict__[place] = True
        return func(self, *arguments, **options)

    return once


@functools.cache
def log_once(message: str, func: str = "info") -> None:
    """Log a message the first time that it comes.

    Args:
        message: the message.
        func: name of a function of the logger: ``info``, ``warn``, ``error``.
    """
    getattr(logger, func)("%s", message)


def shape2d(a: int | Sequence[int]) -> list[int]:
    """Return two sizes; a single number stands for both.

    Raises:
        ConfigurationError: where there is another number of sizes.
    """
    if isinstance(a, list | tuple):
        if len(a) == 2:
            return list(a)
    elif hasattr(a, "__index__"):
        return [a, a]  # pyright: ignore[reportReturnType]
    raise ConfigurationError(
        "A shape of two dimensions is a number or two of them.", received=repr(a), advice="Write 3 or (3, 5)."
    )


def get_data_format(data_format: str, keras_mode: bool = True) -> str:
    """Return the name of a layout of images.

    Args:
        data_format: ``NCHW``, ``NHWC``, ``channels_first`` or ``channels_last``.
        keras_mode: whether to return the longer name.

    Raises:
        ConfigurationError: for any other layout.
    """
    names = _LAYOUTS if keras_mode else {long: short for short, long in _LAYOUTS.items()}
    found = names.get(data_format, data_format)
    if found not in names.values():
        raise ConfigurationError(
            "A layout of images has channels first or last.",
            received=repr(data_format),
            advice="Write channels_first or channels_last.",
        )
    return found


def shape4d(a: int | Sequence[int], data_format: str = "NHWC") -> list[int]:
    """Return two sizes as four, with 1 for the samples and the channels.

    Args:
        a: a number, or height and width.
        data_format: layout, as ``get_data_format`` takes it.
    """
    if get_data_format(data_format, keras_mode=False) == "NHWC":
        return [1, *shape2d(a), 1]
    return [1, 1, *shape2d(a)]
