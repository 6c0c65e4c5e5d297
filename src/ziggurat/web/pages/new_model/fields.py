"""Fields of the new-model form: the fields of the training spec, each with its text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from ziggurat.specs import FieldDescription, TrainSpec, comma_question, describe_fields

__all__ = ["FormField", "field_id", "model_fields", "text_of", "value_below", "value_of"]

_OWN: Final = ("name", "backend", "network", "pretrained", "data", "data.source", "devices")
"""Fields that the form asks for in its own way."""

_NUMBERS: Final = ("integer", "number")


@dataclass(frozen=True, kw_only=True)
class FormField:
    """A field of the form.

    Args:
        id: of its element, also its name in what is sent.
        path: of the spec's field, such as ``schedule.gamma``.
        variant: of the compound field for which it exists, such as ``step``; empty for all.
        kind: as in ``FieldDescription``; a choice among compounds is a ``choice``.
        title: its label.
        hint: one sentence on what it does, with the usual range.
        unit: of the number; empty for counts.
        choices: of a ``choice``; the empty one leaves it out.
        default: the text that stands in it at first.
    """

    id: str
    path: str
    variant: str
    kind: str
    title: str
    hint: str
    unit: str
    choices: tuple[str, ...]
    default: str

    @property
    def owner(self) -> str:
        """The compound field that it is a part of, such as ``schedule``; empty at the top."""
        return self.path.rpartition(".")[0]

    @property
    def options(self) -> list[tuple[str, str]]:
        """Value and text of each choice."""
        return [(choice, choice.replace("_", " ")) for choice in self.choices]

    @property
    def is_number(self) -> bool:
        """Whether several values of it make a sweep."""
        return self.kind in _NUMBERS

    @property
    def label(self) -> str:
        """Its label with the unit."""
        return f"{self.title} ({self.unit})" if self.unit and self.unit not in self.title.lower() else self.title


@cache
def model_fields() -> dict[str, FormField]:
    """Return id → field, in the order of the spec; parts that all variants share come once."""
    found: dict[str, FormField] = {}
    described = [each for each in describe_fields(TrainSpec) if not _is_own(each)]
    variants = {each.path: set(each.choices) for each in described if each.kind == "object" and each.choices}
    for each in described:
        owner = each.path.rpartition(".")[0]
        same = [other.variant for other in described if other.path == each.path and other.default == each.default]
        is_shared = bool(each.variant) and set(same) == variants.get(owner)
        for field in _form_fields(each, "" if is_shared else each.variant):
            found.setdefault(field.id, field)
    return found


def field_id(path: str, variant: str = "") -> str:
    """Return the id of a field: ``schedule-step-gamma`` for ``schedule.gamma`` of the variant ``step``."""
    *owner, last = path.split(".")
    return "-".join([*owner, variant, last] if variant else [*owner, last])


def text_of(field: FormField, value: Any) -> str:
    """Return how a value stands in a field."""
    if value is None:
        return "null" if field.default and field.kind in _NUMBERS else ""
    if isinstance(value, bool):
        return "true" if value else ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _list_text(field, value)
    return str(value)


def value_of(field: FormField, text: str) -> Any:
    """Return what a text means, or a tuple of several values; what is no such value stays text, for the spec to say so.

    A comma that may be a decimal one is no such value: ``0,01`` is not a sweep of 0 and 1.

    Args:
        field: it stands in.
        text: not empty.
    """
    if comma_question(text, field.kind):
        return text
    if field.kind in _NUMBERS:
        inner = text.removeprefix("[").removesuffix("]") if text.startswith("[") else text
        values = tuple(_json_or_text(part.strip()) for part in inner.split(",") if part.strip())
        return values if len(values) > 1 else _json_or_text(text)
    if field.kind == "boolean":
        return text == "true"
    if field.kind == "list" and not text.startswith("["):
        return [_json_or_text(part.strip()) for part in text.split(",") if part.strip()]
    if field.kind in ("list", "object") or (field.kind == "choice" and text.isdigit()):
        return _json_or_text(text)
    return text


def value_below(content: Any, path: str) -> Any:
    """Return the value at a path of a spec; None where there is none."""
    for part in path.split("."):
        content = content.get(part) if isinstance(content, Mapping) else None
    return content


def _is_own(described: FieldDescription) -> bool:
    return described.path in _OWN or described.path.startswith("network.")


def _form_fields(described: FieldDescription, variant: str) -> list[FormField]:
    """Return the field, or none for a compound whose parts are fields themselves."""
    kind, default = described.kind, described.default
    if kind == "object" and described.choices:
        kind, default = "choice", default[described.tag]
    elif kind == "object" and not described.path.endswith("options"):
        return []
    field = FormField(
        id=field_id(described.path, variant),
        path=described.path,
        variant=variant,
        kind=kind,
        title=described.title,
        hint=described.help.replace("`", ""),  # marks of code, which a hint shows as they are
        unit=described.unit,
        choices=described.choices,
        default="",
    )
    return [FormField(**{**field.__dict__, "default": text_of(field, default)})]


def _list_text(field: FormField, values: Sequence[Any]) -> str:
    plain = [each["name"] if _is_bare_plugin(each) else each for each in values]
    if any(isinstance(each, Mapping | list) for each in plain):
        return json.dumps(plain, ensure_ascii=False)
    if field.path == "preprocessing.size" and len(plain) == 2:
        return f"{plain[0]}x{plain[1]}"
    return ", ".join(text_of(field, each) for each in plain)


def _is_bare_plugin(value: Any) -> bool:
    return isinstance(value, Mapping) and "name" in value and not value.get("options")


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
