"""Default arguments of layers for a part of a program: ``with argscope(Conv2D, activation=tf.nn.relu):``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any, Final

from ziggurat.errors import ConfigurationError, UsageError
from ziggurat.tf.shape_log import ShapeLog

__all__ = [
    "argscope",
    "arguments_in_scope",
    "enable_argscope_for_function",
    "enable_argscope_for_module",
    "get_arg_scope",
    "mark_argscope",
    "takes_argscope",
]

_MARK: Final = "__argscope_enabled__"
_NOTHING: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})

_scope: ContextVar[Mapping[str, Mapping[str, Any]]] = ContextVar("ziggurat_argscope", default=_NOTHING)


@contextmanager
def argscope(layers: Callable[..., Any] | Sequence[Callable[..., Any]], **kwargs: Any) -> Iterator[None]:
    """Give layers default arguments inside; the scope ends with the block, also where that raises.

    An inner scope wins over an outer one, a keyword of the call over both, and a positional argument over all. Each
    thread has scopes of its own.

    Args:
        layers: a layer, or a list of layers: functions of ``layer_register`` or ``enable_argscope_for_function``.
        kwargs: their arguments.

    Raises:
        ConfigurationError: where one of them is an ordinary function.
    """
    chosen: list[Any] = list(layers) if isinstance(layers, list | tuple) else [layers]
    for layer in chosen:
        if not takes_argscope(layer):
            raise ConfigurationError(
                "`argscope` is for layers.",
                received=getattr(layer, "__name__", repr(layer)),
                advice="Decorate the function with `layer_register()`, or pass it to `enable_argscope_for_function`.",
            )
    found = dict(_scope.get())
    for layer in chosen:
        found[layer.__name__] = {**found.get(layer.__name__, {}), **kwargs}
    token = _scope.set(found)
    try:
        yield
    finally:
        _scope.reset(token)


def get_arg_scope() -> dict[str, dict[str, Any]]:
    """Return the default arguments in force: name of a layer → its arguments. It is a copy."""
    return {name: dict(arguments) for name, arguments in _scope.get().items()}


def arguments_in_scope(name: str) -> dict[str, Any]:
    """Return the default arguments in force for the layer of a name. It is a copy."""
    return dict(_scope.get().get(name, {}))


def takes_argscope(function: Any) -> bool:
    """Return whether a function takes default arguments of ``argscope``."""
    return bool(getattr(function, _MARK, False))


def mark_argscope(function: Callable[..., Any]) -> None:
    """Note that a function takes default arguments of ``argscope``."""
    setattr(function, _MARK, True)


def enable_argscope_for_function(func: Callable[..., Any], log_shape: bool = True) -> Callable[..., Any]:
    """Return a function that does the same and takes default arguments of ``argscope``.

    Args:
        func: any function; its first argument is what goes in.
        log_shape: say the shapes of what goes in and comes out, once for each ``name=`` in a graph.
    """
    if not callable(func):
        raise UsageError(f"{func!r} is not a function, and `argscope` is for functions.", advice="Give a function.")
    if takes_argscope(func):
        return func

    @functools.wraps(func)
    def enabled(*args: Any, **kwargs: Any) -> Any:
        arguments = {**arguments_in_scope(func.__name__), **kwargs}
        log = ShapeLog(str(arguments.get("name") or func.__name__), wanted=log_shape)
        log.inputs(args[0] if args else None)
        outputs = func(*args, **arguments)
        log.outputs(outputs)
        return outputs

    mark_argscope(enabled)
    return enabled


def enable_argscope_for_module(module: ModuleType, log_shape: bool = True) -> None:
    """Let all public functions of a module take default arguments of ``argscope``: they are replaced in the module.

    Args:
        module: any module.
        log_shape: as in ``enable_argscope_for_function``.
    """
    for name in dir(module):
        found = None if name.startswith("_") else getattr(module, name)
        if isinstance(found, FunctionType):
            setattr(module, name, enable_argscope_for_function(found, log_shape))
