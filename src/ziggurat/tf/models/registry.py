"""Registry of layers: what a function gets by being a layer, and the names under which ``LinearWrap`` finds it.

A layer is called with its name first, ``Conv2D("conv0", image, 32, 3)``. It builds under the variable scope of that
name, takes default arguments of ``argscope``, and its result is the tensor ``conv0/output``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError, UsageError
from ziggurat.tf.argument_scopes import arguments_in_scope, mark_argscope
from ziggurat.tf.shape_log import ShapeLog

__all__ = [
    "VariableHolder",
    "get_registered_layer",
    "layer_register",
    "older_arguments",
    "older_order",
    "register_alias",
]

_OLDER = "__older_arguments__"
_OLDER_ORDER = "__older_order__"
_RESERVED = ("tf",)

_layers: dict[str, Callable[..., Any]] = {}
_conflicts: dict[str, list[str]] = {}

Renaming = str | tuple[str, Callable[[Any], Any]]
"""The name of an argument today, or that name and what turns the older value into today's."""


class VariableHolder:
    """The variables of a layer, as attributes: ``conv.variables.W``.

    Args:
        kwargs: name → variable.
    """

    def __init__(self, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)

    def __getattr__(self, name: str) -> Any:
        """Raise an error that lists what there is."""
        raise AttributeError(f"The layer has no variable `{name}`; it has {', '.join(vars(self)) or 'none'}.")

    def all(self) -> list[Any]:
        """Return each variable once, in the order in which they were given."""
        return list({id(variable): variable for variable in vars(self).values()}.values())

    def __repr__(self) -> str:
        return f"VariableHolder({', '.join(vars(self))})"


def layer_register(
    log_shape: bool = False, use_scope: bool | None = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that makes a function a layer.

    The function takes what goes in as its first argument: a tensor, a variable, or a list of them. Its other arguments
    come from ``argscope``, from keywords and from positions, and the later of these win. It may set ``variables`` of
    the tensor that it returns.

    Args:
        log_shape: say the shapes of what goes in and comes out, once for each name in a graph.
        use_scope: whether the layer has a name as its first argument: True, it must; False, it has none; None, either.
    """

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(func)

        @functools.wraps(func)
        def layer(*args: Any, **kwargs: Any) -> Any:
            name, args = _name_first(func.__name__, args, use_scope)
            _check_inputs(func.__name__, args)
            args, kwargs = _ordered(func, args, kwargs)
            arguments = _merged(func, signature, args, kwargs)
            if name is None:
                return func(*args, **arguments)
            with tf.variable_scope(name) as scope:
                log = ShapeLog(scope.name, wanted=log_shape)
                log.inputs(args[0])
                outputs = _as_output(func(*args, **arguments), scope.original_name_scope)
                log.outputs(outputs)
                return outputs

        layer.use_scope = use_scope  # pyright: ignore[reportAttributeAccessIssue]
        layer.symbolic_function = func  # pyright: ignore[reportAttributeAccessIssue] - without scope and name
        mark_argscope(layer)
        _register(func, layer)
        return layer

    return decorator


def older_arguments(**renamings: Renaming) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that lets a layer take arguments by older names; it stands below ``layer_register``.

    Args:
        renamings: older name → name today, or (name today, conversion of the value).
    """

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        setattr(func, _OLDER, renamings)
        return func

    return decorator


def older_order(*names: str, is_older: Callable[[Sequence[Any]], bool]) -> Callable[..., Any]:
    """Return a decorator that lets a layer take arguments in an older order; it stands below ``layer_register``.

    Args:
        names: of the arguments behind the first two, in that order.
        is_older: tells from the values behind the first two whether they are in that order.
    """

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        setattr(func, _OLDER_ORDER, (names, is_older))
        return func

    return decorate


def _ordered(
    func: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments with those in an older order by name."""
    names, is_older = getattr(func, _OLDER_ORDER, ((), None))
    behind = args[2:]
    if is_older is None or not behind or len(behind) > len(names) or not is_older(behind):
        return args, keywords
    return args[:2], {**dict(zip(names, behind, strict=False)), **keywords}


def get_registered_layer(name: str) -> Callable[..., Any] | None:
    """Return the layer of a name; None where there is none.

    Raises:
        ConfigurationError: where two different functions were registered under that name.
    """
    if name in _conflicts:
        raise ConfigurationError(
            f"Several layers are registered as `{name}`: {' and '.join(_conflicts[name])}.",
            advice="Give one of the functions another name.",
        )
    return _layers.get(name)


def register_alias(name: str, layer: Callable[..., Any]) -> None:
    """Let ``LinearWrap`` find a registered layer by another name too."""
    _layers[name] = layer


def _register(func: Callable[..., Any], layer: Callable[..., Any]) -> None:
    name = func.__name__
    if name in _RESERVED:
        raise ConfigurationError(
            f"`{name}` means the functions of TensorFlow in `LinearWrap`.",
            received=f"a layer `{name}`",
            advice="Give the function another name.",
        )
    known = _layers.get(name)
    # The same code read again, as in a notebook, replaces the layer.
    if known is not None and _place(known) != _place(func):
        _conflicts[name] = [_place(known), _place(func)]
        return
    _layers[name] = layer


def _place(function: Any) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _name_first(layer: str, args: tuple[Any, ...], use_scope: bool | None) -> tuple[str | None, tuple[Any, ...]]:
    """Return the name of the layer, and the arguments behind it."""
    has_name = bool(args) and isinstance(args[0], str)
    if use_scope and not has_name:
        raise UsageError(
            f"`{layer}` got {'a ' + type(args[0]).__name__ if args else 'no argument'} where its first "
            "argument, the name, is expected.",
            advice=f"Write `{layer}('name', tensor, ...)`.",
        )
    if use_scope is False and has_name:
        raise UsageError(
            f"`{layer}` has no name, and `{args[0]}` is given as one.",
            advice=f"Write `{layer}(tensor, ...)`, or register it with `use_scope=None`.",
        )
    return (args[0], args[1:]) if has_name else (None, args)


def _check_inputs(layer: str, args: tuple[Any, ...]) -> None:
    first = args[0] if args else None
    each = first[0] if isinstance(first, list | tuple) and first else first
    if not tf.is_tensor(each) and not isinstance(each, tf.Variable):
        raise UsageError(
            f"What goes into `{layer}` is a tensor, or a list of tensors.",
            received=repr(first),
            advice="Give the tensor behind the name of the layer.",
        )


def _merged(
    func: Callable[..., Any], signature: inspect.Signature, args: tuple[Any, ...], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments that are not given by position: those of the scope and, before them, the keywords."""
    renamings: Mapping[str, Renaming] = getattr(func, _OLDER, {})
    scope = _renamed(func.__name__, renamings, arguments_in_scope(func.__name__))
    arguments = {**scope, **_renamed(func.__name__, renamings, keywords)}
    for given in signature.bind_partial(*args).arguments:
        arguments.pop(given, None)
    return arguments


def _renamed(layer: str, renamings: Mapping[str, Renaming], arguments: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        renaming = renamings.get(name, name)
        new, convert = (renaming, None) if isinstance(renaming, str) else renaming
        if new in found or (new != name and new in arguments):
            raise UsageError(
                f"`{name}`, an older name of `{new}`, is given to `{layer}` beside it.", advice=f"Leave out `{name}`."
            )
        found[new] = value if convert is None else convert(value)
    return found


def _as_output(outputs: Any, name_scope: str) -> Any:
    """Return a tensor as ``<layer>/output``; anything else as it is."""
    wanted = f"{name_scope}output"
    if not isinstance(outputs, tf.Tensor) or outputs.op.name == wanted:
        return outputs
    with tf.name_scope(name_scope):
        named = tf.identity(outputs, name="output")
    if hasattr(outputs, "variables"):
        named.variables = outputs.variables
    return named
