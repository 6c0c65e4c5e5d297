"""Rendering of signatures, types, defaults and field tables."""

from __future__ import annotations

import dataclasses
import inspect
import re
from enum import Enum
from typing import Any

from tools.reference.markdown import cell, docstring, documented_arguments, table

__all__ = ["code", "dataclass_table", "default_text", "signature_text", "type_text"]


def signature_text(thing: Any) -> str:
    """Return ``(a, b: int = 3) -> str``; empty for protocols and for what has no signature."""
    if getattr(thing, "_is_protocol", False):
        return ""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    empty = inspect.Parameter.empty
    parameters = [
        each.replace(
            default=empty if each.default is empty else _Written(default_text(each.default)),
            annotation=empty if each.annotation is empty else _Written(type_text(each.annotation)),
        )
        for each in signature.parameters.values()
    ]
    result = signature.return_annotation
    result = empty if result is empty or isinstance(thing, type) else _Written(type_text(result))
    return str(signature.replace(parameters=parameters, return_annotation=result))


def default_text(value: Any) -> str:
    """Return how a default is written, the same in every run: no addresses."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, type) or callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    text = repr(value)
    return "…" if " at 0x" in text else text


def type_text(annotation: Any) -> str:
    """Return how a type is written: without the names of modules."""
    if annotation is None or annotation is type(None):
        return "None"
    return _short(annotation.strip("'\"") if isinstance(annotation, str) else inspect.formatannotation(annotation))


def dataclass_table(cls: Any) -> str:
    """Return the table of a dataclass's own and inherited fields; what they mean stands in the docstrings."""
    said: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        said.update(documented_arguments(docstring(owner)))
    rows = [
        (f"`{field.name}`", code(type_text(field.type)), _dataclass_default(field), cell(said.get(field.name, "")))
        for field in dataclasses.fields(cls)
    ]
    return table(("field", "type", "default", "meaning"), rows)


def code(text: str) -> str:
    """Return a text as code that may stand in a table; empty stays empty."""
    return "`" + text.replace("|", "\\|") + "`" if text else ""


class _Written:
    """Stands in a signature for what was already written."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _short(text: str) -> str:
    text = re.sub(r"\b(?:[a-z_][\w]*\.)+(?=[A-Za-z_])", "", text)
    return re.sub(r"ForwardRef\('(\w+)'\)", r"\1", text)


def _dataclass_default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return code(f"{default_text(field.default_factory)}()")
    return "" if field.default is dataclasses.MISSING else code(default_text(field.default))
