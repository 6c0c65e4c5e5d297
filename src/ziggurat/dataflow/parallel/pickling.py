"""Pickling for worker processes: functions and classes, and lists of datapoints column by column.

Lambdas, nested functions, and everything that a script or a notebook defines (module ``__main__``) have no name that
another process could import. They are pickled by value: code, closure, and the globals that they mention. So a worker
never runs the user's script again, a script needs no ``if __name__ == "__main__"`` for this library, and lambdas
work.

Classes are pickled by cloudpickle. Functions are not: cloudpickle copies the module globals that a nested function
mentions, and gives functions that share a variable of their closure a copy each (docs/explanation/decisions).

The bytes pass only through private file descriptors between a process and its own workers.

Lists of datapoints are pickled column by column where they are alike: pickling sixty small arrays costs sixty times as
much as one; stacked, they cost little more than one.
"""

from __future__ import annotations

import builtins
import dis
import importlib
import io
import marshal
import pickle
import secrets
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cloudpickle
import numpy as np

__all__ = ["Points", "dump"]

_Reduced = Any

_STACKED_AT_MOST_BYTES = 4096
_WORTH_IT = 4


def dump(
    value: Any, buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None, *, upwards: bool = False
) -> bytes:
    """Return ``value`` as bytes that ``pickle.loads`` reads in another process of this program.

    Args:
        value: anything picklable, or a function or class that only exists here.
        buffer_callback: takes the memory of arrays instead of the bytes (pickle's protocol 5); arrays that are not
            contiguous are made so first.
        upwards: the reader is the process that started this one, so it knows the classes that came from it.
    """
    target = io.BytesIO()
    pickler = _Pickler(target, protocol=5, buffer_callback=buffer_callback)
    pickler.upwards = upwards
    pickler.dump(value)
    return target.getvalue()


class _Pickler(cloudpickle.Pickler):
    upwards = False

    def reducer_override(self, obj: Any) -> _Reduced:
        kind = type(obj)
        if kind is np.ndarray:
            if obj.flags.forc or obj.dtype.hasobject:
                return NotImplemented
            # Only contiguous memory can travel as a buffer of its own.
            return np.ascontiguousarray(obj).__reduce_ex__(5)
        if kind is types.FunctionType:
            return NotImplemented if _has_address(obj) else _function(obj)
        if isinstance(obj, type):
            return self._class(obj)
        if kind is types.CellType:
            return _cell(obj)
        if kind is io.TextIOWrapper:  # cloudpickle would read the file to its end and send the text
            return obj.__reduce_ex__(5)
        return NotImplemented  # and so to cloudpickle's table of types

    def _class(self, cls: type) -> _Reduced:
        if self.upwards and cls in _received:
            return same_class, (_tokens[cls],)
        if _has_address(cls):
            return NotImplemented
        home = sys.modules.get(cls.__module__)
        if home is not None and cls.__module__ != "__main__" and not _is_module(cls.__module__):
            cloudpickle.register_pickle_by_value(home)  # such as `__mp_main__`, which a worker could not import
        reduced = super().reducer_override(cls)
        if reduced is NotImplemented or len(reduced) == 2:  # it has a name elsewhere
            return reduced
        token = _tokens.setdefault(cls, secrets.token_hex(8))
        _classes[token] = cls
        make, arguments, state, *_, fill = reduced
        return make_class, (token, make, arguments), (fill, state), None, None, fill_class


# ---- on the side of the sender


def _function(function: types.FunctionType) -> _Reduced:
    code, home, space = function.__code__, function.__module__ or "__main__", function.__globals__
    names = {} if _is_module(home) else {name: space[name] for name in _globals_of(code) if name in space}
    state = {
        "globals": names,
        "modules": [part for value in names.values() for part in _parts_of(value, code)],
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__annotations__": dict(function.__annotations__),
        "__qualname__": function.__qualname__,
        "__doc__": function.__doc__,
        "__dict__": function.__dict__,
    }
    # A function comes before its globals, which may refer to it again.
    arguments = (marshal.dumps(code), home, function.__name__, function.__closure__)
    return make_function, arguments, state, None, None, fill_function


def _globals_of(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_of(constant)


def _parts_of(package: Any, code: types.CodeType) -> Iterator[types.ModuleType]:
    """Yield the imported modules below a package that code may mean: ``import PIL.Image`` binds only ``PIL``."""
    if not isinstance(package, types.ModuleType) or not hasattr(package, "__path__"):
        return
    prefix, names = f"{package.__name__}.", _names_of(code)
    for name, module in list(sys.modules.items()):
        if name.startswith(prefix) and module is not None and names.issuperset(name.removeprefix(prefix).split(".")):
            yield module


def _names_of(code: types.CodeType) -> set[str]:
    inner = (_names_of(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*inner)


def _has_address(thing: Any) -> bool:
    """Tell whether another process can import ``thing``, a function or a class, by its module and name."""
    found: Any = sys.modules.get(thing.__module__ or "")
    if not _is_module(thing.__module__):
        return False
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is thing


def _is_module(name: str | None) -> bool:
    module = sys.modules.get(name or "")
    return module is not None and name != "__main__" and (name == "builtins" or module.__spec__ is not None)


def _cell(cell: types.CellType) -> _Reduced:
    try:
        content = (cell.cell_contents,)
    except ValueError:  # a variable that has no value yet
        content = ()
    return types.CellType, (), content, None, None, fill_cell


# ---- on the side of the receiver, which finds these by name

_spaces: dict[str, dict[str, Any]] = {}
_tokens: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
_classes: weakref.WeakValueDictionary[str, type] = weakref.WeakValueDictionary()
_received: weakref.WeakSet[type] = weakref.WeakSet()
_filled: weakref.WeakSet[type] = weakref.WeakSet()


def make_function(code: bytes, module: str, name: str, closure: Any) -> types.FunctionType:
    """Return a function without its defaults and globals, which follow."""
    try:
        space = None if module == "__main__" else vars(importlib.import_module(module))
    except ImportError:
        space = None
    if space is None:
        space = _spaces.setdefault(module, {"__name__": module, "__builtins__": builtins})
    return types.FunctionType(marshal.loads(code), space, name, None, closure)


def fill_function(function: types.FunctionType, state: dict[str, Any]) -> None:
    """Give a function its globals, defaults and attributes; the modules that it needs are imported by now."""
    function.__globals__.update(state.pop("globals"))
    function.__dict__.update(state.pop("__dict__"))
    function.__module__ = function.__globals__["__name__"]
    del state["modules"]
    for name, value in state.items():
        setattr(function, name, value)


def fill_cell(cell: types.CellType, content: tuple[Any, ...]) -> None:
    """Give a closure's variable its value."""
    if content:
        cell.cell_contents = content[0]


def same_class(token: str) -> type:
    """Return the class that went down under ``token``."""
    return _classes[token]


def make_class(token: str, make: Callable[..., type], arguments: tuple[Any, ...]) -> type:
    """Return a class without its attributes, which follow; always the same one for the same token."""
    if token in _classes:
        return _classes[token]
    cls = make(*arguments)
    _tokens[cls] = token
    _classes[token] = cls
    _received.add(cls)
    return cls


def fill_class(cls: type, filling: tuple[Callable[[type, Any], Any], Any]) -> None:
    """Give a class its attributes, once: a second copy of it must not undo what happened to them meanwhile."""
    if cls in _received and cls not in _filled:
        _filled.add(cls)
        fill, state = filling
        fill(cls, state)


class Points(list[Any]):
    """A list of datapoints; pickled, it becomes a plain list again, whose small arrays are rows of larger ones."""

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self[0]) if len(self) >= _WORTH_IT else None
        if kind not in (list, tuple) or any(type(point) is not kind or len(point) != len(self[0]) for point in self):
            return list, (list(self),)
        return restore, (kind is tuple, [_stacked(column) for column in zip(*self, strict=True)], len(self))


def restore(are_tuples: bool, columns: Sequence[Any], count: int) -> list[Any]:
    """Return the datapoints of the columns."""
    rows = zip(*columns, strict=True) if columns else (() for _ in range(count))
    return list(rows) if are_tuples else [list(row) for row in rows]


def _stacked(column: Sequence[Any]) -> Any:
    """Return one array in place of many that are alike, or a list of the values."""
    first = column[0]
    if type(first) is not np.ndarray or first.dtype.hasobject or not 0 < first.nbytes <= _STACKED_AT_MOST_BYTES:
        return list(column)
    if not first.ndim:  # a row of its stack would be a scalar
        return list(column)
    dtype, shape = first.dtype, first.shape
    if any(type(each) is not np.ndarray or each.dtype != dtype or each.shape != shape for each in column):
        return list(column)
    return np.concatenate(column).reshape(len(column), *shape)
