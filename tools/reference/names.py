"""Pages that list the public names of modules: signature, docstring, public methods."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Sequence
from typing import Any

from tools.reference.describe import signature_text
from tools.reference.markdown import docstring, first_sentence, render

__all__ = ["door_page", "modules_below", "modules_page"]


def door_page(title: str, door: str, intro: str) -> str:
    """Return the page of a door: every name of its ``__all__``, grouped by the module that defines it."""
    module = importlib.import_module(door)
    groups: dict[str, list[tuple[str, Any]]] = {}
    for name in module.__all__:
        thing = getattr(module, name)
        home = thing.__name__ if inspect.ismodule(thing) else getattr(thing, "__module__", door)
        groups.setdefault(home if home.startswith("ziggurat") else door, []).append((name, thing))
    parts = [f"# {title}", intro]
    for home in sorted(groups):
        named = [(name, thing) for name, thing in groups[home] if not inspect.ismodule(thing)]
        if named:
            parts += _group(importlib.import_module(home), named)
    return "\n\n".join(parts)


def modules_page(title: str, modules: Iterable[str], intro: str) -> str:
    """Return the page of modules and of those below them: what each defines in its ``__all__``."""
    parts = [f"# {title}", intro]
    for module in [each for name in modules for each in modules_below(name)]:
        own = [(each, getattr(module, each)) for each in getattr(module, "__all__", ())]
        own = [(each, thing) for each, thing in own if getattr(thing, "__module__", "") == module.__name__]
        if own:
            parts += _group(module, own)
    return "\n\n".join(parts)


def modules_below(package: str) -> list[Any]:
    """Return a module and, where it is a package, all modules in it."""
    root = importlib.import_module(package)
    names = [found.name for found in pkgutil.walk_packages(getattr(root, "__path__", []), f"{package}.")]
    return [root, *(importlib.import_module(name) for name in sorted(names))]


def _group(module: Any, named: Sequence[tuple[str, Any]]) -> list[str]:
    parts = [f"## `{module.__name__}`", render(docstring(module))]
    for name, thing in sorted(named, key=lambda pair: pair[0].lower()):
        parts += _thing(name, thing)
    return [part for part in parts if part]


def _thing(name: str, thing: Any) -> list[str]:
    if name != getattr(thing, "__name__", name):
        return [f"### `{name}`", f"Another name of `{thing.__name__}`."]
    if not isinstance(thing, type) and not inspect.isroutine(thing):
        return [f"### `{name}`", f"A value of type `{type(thing).__name__}`."]
    keyword = "class " if isinstance(thing, type) else ""
    parts = [f"### `{name}`", f"```text\n{keyword}{name}{signature_text(thing)}\n```", render(docstring(thing))]
    if isinstance(thing, type):
        methods = "\n".join(_methods(thing))
        parts.append(f"**Methods**\n\n{methods}" if methods else "")
    return parts


def _methods(cls: type) -> list[str]:
    """Return one line for each public method and property that the class adds to its bases."""
    lines: list[str] = []
    for name, value in vars(cls).items():
        if name.startswith("_") or any(name in vars(base) for base in cls.__mro__[1:]):
            continue
        function = getattr(value, "__func__", value)
        if inspect.isfunction(function):
            lines.append(f"- `{name}{signature_text(function).replace('(self, ', '(').replace('(self)', '()')}`")
        elif isinstance(value, property):
            lines.append(f"- `{name}`")
        else:
            continue
        said = first_sentence(docstring(value if isinstance(value, property) else function))
        lines[-1] += f": {said}" if said else ""
    return lines
