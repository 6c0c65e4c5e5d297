"""Descriptions of spec fields for all faces, and assignment to a field, or to a part of one, by its path."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ziggurat.specs.base import SpecModel

__all__ = [
    "FieldDescription",
    "assign",
    "describe_fields",
]


@dataclass(frozen=True)
class FieldDescription:
    """One field of a spec, as every face shows it.

    Args:
        path: names from the top, joined by dots, such as ``schedule.gamma``.
        variant: the choice for which the field exists, such as ``step``; empty for all.
        kind: ``text``, ``integer``, ``number``, ``boolean``, ``choice``, ``list`` or ``object``.
        title: its label.
        help: one sentence on what it does, with the usual range.
        group: heading under which it is shown.
        unit: unit of the number; empty for counts.
        required: whether it must be given.
        default: its value otherwise, as a JSON value.
        choices: the values that a ``choice`` may have, or the variants of an ``object``.
        tag: part of an ``object`` that tells its variant, such as ``policy``.
        short_form: part of an ``object`` that a bare text stands for; empty where there is none.
        minimum: smallest value, where there is one.
        maximum: largest value, where there is one.
    """

    path: str
    variant: str
    kind: str
    title: str
    help: str
    group: str
    unit: str
    required: bool
    default: Any
    choices: tuple[str, ...]
    tag: str
    short_form: str
    minimum: float | None
    maximum: float | None

    @property
    def is_top(self) -> bool:
        """Whether it stands at the top of the spec."""
        return "." not in self.path

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**asdict(self), "choices": list(self.choices)}


@functools.cache
def describe_fields(model: type[SpecModel]) -> tuple[FieldDescription, ...]:
    """Return every field that a person can set, parts below their whole, in the order of declaration."""
    return tuple(_describe(model, "", ""))


def _describe(model: type[BaseModel], prefix: str, variant: str) -> Iterator[FieldDescription]:
    for name, info in model.model_fields.items():
        if info.title is None:  # `kind`, `version` and the tags of unions are not set by hand
            continue
        core = _core(info.annotation)
        yield _description(f"{prefix}{name}", variant, info, core)
        for part in _models(core):
            yield from _describe(part, f"{prefix}{name}.", _tag(part)[1])


def _description(path: str, variant: str, info: FieldInfo, core: Any) -> FieldDescription:
    extra: Any = info.json_schema_extra
    return FieldDescription(
        path=path,
        variant=variant,
        kind=_kind(core),
        title=info.title or "",
        help=info.description or "",
        group=extra["group"],
        unit=extra["unit"],
        required=info.is_required(),
        default=None if info.is_required() else _jsonable(info.get_default(call_default_factory=True)),
        choices=_choices(core),
        tag=next((_tag(model)[0] for model in _models(core)), ""),
        short_form=extra["short_form"],
        minimum=_bound(info, "ge", "gt"),
        maximum=_bound(info, "le", "lt"),
    )


def _core(annotation: Any) -> Any:
    """Return the type without ``Annotated`` and without ``| None``."""
    if get_origin(annotation) is Annotated:
        return _core(get_args(annotation)[0])
    if get_origin(annotation) in (types.UnionType, Union):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        return _core(parts[0]) if len(parts) == 1 else annotation
    return annotation


def _models(core: Any) -> list[type[BaseModel]]:
    candidates = get_args(core) if get_origin(core) in (types.UnionType, Union) else (core,)
    return [part for part in candidates if isinstance(part, type) and issubclass(part, BaseModel)]


def _kind(core: Any) -> str:
    if _models(core) or get_origin(core) is dict:
        return "object"
    if get_origin(core) is Literal:
        return "choice"
    if get_origin(core) is list:
        return "list"
    return {int: "integer", float: "number", bool: "boolean"}.get(core, "text")


def _choices(core: Any) -> tuple[str, ...]:
    if get_origin(core) is Literal:
        return tuple(str(choice) for choice in get_args(core))
    models = _models(core)
    return tuple(_tag(model)[1] for model in models) if len(models) > 1 else ()


def _bound(info: FieldInfo, *names: str) -> float | None:
    found = (getattr(rule, name, None) for rule in info.metadata for name in names)
    return next((bound for bound in found if bound is not None), None)


def _tag(model: type[BaseModel]) -> tuple[str, str]:
    """Return name and value of the field that tells a variant from its siblings; empty for a part without any."""
    for name, info in model.model_fields.items():
        if info.title is None and get_origin(info.annotation) is Literal:
            return name, str(get_args(info.annotation)[0])
    return "", ""


def _jsonable(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list):
        return [_jsonable(part) for part in value]
    return value


def assign(content: dict[str, Any], path: str, value: Any, fields: Mapping[str, FieldDescription]) -> None:
    """Set a field, or a part of one, in the content of a spec.

    Args:
        content: decoded spec; it is changed, the objects in it are not.
        path: names from the top, joined by dots, such as ``schedule.gamma``.
        value: of the field.
        fields: of the spec, by path.
    """
    first, *rest = path.split(".")
    if not rest:
        content[first] = value
        return
    content[first] = target = _as_object(fields.get(first), content.get(first))
    for name in rest[:-1]:
        below = target.get(name)
        target[name] = target = dict(below) if isinstance(below, dict) else {}
    target[rest[-1]] = value


def _as_object(whole: FieldDescription | None, value: Any) -> dict[str, Any]:
    """Return a compound field as an object that parts can be set in: short forms spelt out, a default by its tag."""
    if isinstance(value, dict):
        return dict(value)
    if whole is None or whole.kind != "object":
        return {}
    if value is None:
        # No more of the default than its tag: its other parts follow from that, and another tag may be set after this.
        return {whole.tag: whole.default[whole.tag]} if whole.tag and whole.default else {}
    return {whole.short_form: value} if whole.short_form else {}
