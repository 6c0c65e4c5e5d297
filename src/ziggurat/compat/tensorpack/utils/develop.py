"""Helpers for libraries that were written with Tensorpack: what is missing, what is old."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ziggurat.tf import logger

__all__ = ["HIDE_DOC", "building_rtfd", "create_dummy_class", "create_dummy_func", "deprecated", "log_deprecated"]

_said: Counter[str] = Counter()


def create_dummy_class(klass: str, dependency: str) -> type:
    """Return a class whose construction raises ``ImportError``.

    Args:
        klass: its name.
        dependency: the package that is missing.
    """

    def refuse(self: Any, *_arguments: Any, **_options: Any) -> None:
        raise ImportError(f"`{klass}` needs `{dependency}`, which is not installed.")

    return type(klass, (), {"__init__": refuse})


def create_dummy_func(func: str, dependency: str | Sequence[str]) -> Callable[..., Any]:
    """Return a function that raises ``ImportError``.

    Args:
        func: its name.
        dependency: the packages that are missing.
    """
    names = dependency if isinstance(dependency, str) else ", ".join(dependency)

    def refuse(*_arguments: Any, **_options: Any) -> None:
        raise ImportError(f"`{func}` needs `{names}`, which is not installed.")

    refuse.__name__ = func
    return refuse


def building_rtfd() -> bool:
    """Return whether documentation is being built: never."""
    return False


def log_deprecated(name: str = "", text: str = "", eos: str = "", max_num_warnings: int | None = None) -> None:
    """Warn that something is old.

    Args:
        name: of what is old.
        text: what to do instead.
        eos: the day it was to end, as ``YYYY-MM-DD``.
        max_num_warnings: how often to say so; always where it is None.
    """
    ends = f" since {eos}" if eos else ""
    message = f"{name} is deprecated{ends}. {text}" if name else text
    _said[message] += 1
    if max_num_warnings is None or _said[message] <= max_num_warnings:
        logger.warning("%s", message)


def deprecated(
    text: str = "", eos: str = "", max_num_warnings: int | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that warns with each call; the arguments are those of ``log_deprecated``."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def warned(*arguments: Any, **options: Any) -> Any:
            log_deprecated(function.__name__, text, eos, max_num_warnings)
            return function(*arguments, **options)

        return warned

    return decorate


def HIDE_DOC(func: Any) -> Any:  # noqa: N802 - Tensorpack's name
    """Return the function as it is."""
    return func
