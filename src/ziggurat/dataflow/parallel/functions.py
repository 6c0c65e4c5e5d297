"""Pickling of functions and classes for worker processes: by name where a module has them, otherwise by value.

Lambdas, nested functions, and everything that a script or a notebook defines (module ``__main__``) have no name that
another process could import. They are pickled by value: code, closure, and the globals that they mention. So a worker
never runs the user's script again, a script needs no ``if __name__ == "__main__"`` for this library, and lambdas
work.

The bytes pass only through private file descriptors between a process and its own workers.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import enum
import importlib
import io
import marshal
import pickle
import secrets
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["dump", "fill_cell", "fill_class", "fill_function", "make_class", "make_enum", "make_function", "same_class"]

_Reduced = Any


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


class _Pickler(pickle.Pickler):
    upwards = False

    def reducer_override(self, obj: Any) -> _Reduced:
        kind = type(obj)
        if kind is np.ndarray:
            if obj.flags.forc or obj.dtype.hasobject:
                return NotImplemented
            return np.ascontiguousarray(obj).__reduce_ex__(5)
        if kind is types.FunctionType:
            return NotImplemented if _has_address(obj) else _function(obj)
        if isinstance(obj, type):
            if self.upwards and obj in _received:
                return same_class, (_tokens[obj],)
            return NotImplemented if _has_address(obj) else _class(obj)
        reduce = _REDUCERS.get(kind)
        return NotImplemented if reduce is None else reduce(obj)


# ---- on the side of the sender


def _function(function: types.FunctionType) -> _Reduced:
    code, home, space = function.__code__, function.__module__ or "__main__", function.__globals__
    state = {
        "globals": {} if _is_module(home) else {name: space[name] for name in _globals_of(code) if name in space},
        "__defaults__": function.__defaults__,
        "__kwdefaults__": function.__kwdefaults__,
        "__annotations__": dict(function.__annotations__),
        "__qualname__": function.__qualname__,
        "__doc__": function.__doc__,
        "__dict__": function.__dict__,
    }
    arguments = (marshal.dumps(code), home, function.__name__, function.__closure__)
    return make_function, arguments, state, None, None, fill_function


def _class(cls: type) -> _Reduced:
    if cls.__module__ == "builtins":  # the types of functions, cells and the like, which only `types` names
        return next(((getattr, (types, name)) for name in types.__all__ if getattr(types, name) is cls), NotImplemented)
    token = _tokens.setdefault(cls, secrets.token_hex(8))
    _classes[token] = cls
    own = {name: value for name, value in vars(cls).items() if _is_carried(name, value)}
    address = (cls.__name__, cls.__qualname__, cls.__module__)
    if issubclass(cls, enum.Enum):
        members = {member.name: member.value for member in cls}
        own = {k: v for k, v in own.items() if isinstance(v, types.FunctionType | property) and k[0] != "_"}
        return make_enum, (token, address, cls.__bases__, members), own, None, None, fill_class
    arguments = (token, address, cls.__bases__, type(cls), vars(cls).get("__slots__"))
    return make_class, arguments, own, None, None, fill_class


def _is_carried(name: str, value: Any) -> bool:
    made_by_type = isinstance(value, types.GetSetDescriptorType | types.MemberDescriptorType)
    return not made_by_type and name not in ("_abc_impl", "__slots__", "__module__", "__qualname__")


def _globals_of(code: types.CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _globals_of(constant)


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


_REDUCERS: dict[type, Callable[[Any], _Reduced]] = {
    types.CellType: _cell,
    types.ModuleType: lambda module: (importlib.import_module, (module.__name__,)),
    types.MappingProxyType: lambda proxy: (types.MappingProxyType, (dict(proxy),)),
    property: lambda each: (property, (each.fget, each.fset, each.fdel, each.__doc__)),
    staticmethod: lambda each: (staticmethod, (each.__func__,)),
    classmethod: lambda each: (classmethod, (each.__func__,)),
    # Marks that the module `dataclasses` compares by identity.
    type(dataclasses.MISSING): lambda _: (getattr, (dataclasses, "MISSING")),
    type(dataclasses.KW_ONLY): lambda _: (getattr, (dataclasses, "KW_ONLY")),
    type(getattr(dataclasses, "_FIELD", None)): lambda mark: (getattr, (dataclasses, mark.name)),
}


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
    """Give a function its globals, defaults and attributes."""
    function.__globals__.update(state.pop("globals"))
    function.__dict__.update(state.pop("__dict__"))
    function.__module__ = function.__globals__["__name__"]
    for name, value in state.items():
        setattr(function, name, value)


def fill_cell(cell: types.CellType, content: tuple[Any, ...]) -> None:
    """Give a closure's variable its value."""
    if content:
        cell.cell_contents = content[0]


def same_class(token: str) -> type:
    """Return the class that went down under ``token``."""
    return _classes[token]


def make_class(token: str, address: tuple[str, str, str], bases: tuple[type, ...], kind: Any, slots: Any) -> type:
    """Return a class without its attributes, which follow; always the same one for the same token."""
    if token in _classes:
        return _classes[token]
    space = {"__qualname__": address[1], "__module__": address[2]}
    return _remember(token, kind(address[0], bases, space if slots is None else {**space, "__slots__": slots}))


def make_enum(token: str, address: tuple[str, str, str], bases: tuple[type, ...], members: dict[str, Any]) -> type:
    """Return an enumeration with its members; always the same one for the same token."""
    if token in _classes:
        return _classes[token]

    def body(space: Any) -> None:
        space["__qualname__"], space["__module__"] = address[1:]
        for name, value in members.items():
            space[name] = value

    return _remember(token, types.new_class(address[0], bases, {}, body))


def fill_class(cls: type, own: dict[str, Any]) -> None:
    """Give a class its attributes, once."""
    if cls in _received and cls not in _filled:
        _filled.add(cls)
        for name, value in own.items():
            setattr(cls, name, value)


def _remember(token: str, cls: type) -> type:
    _tokens[cls] = token
    _classes[token] = cls
    _received.add(cls)
    return cls
