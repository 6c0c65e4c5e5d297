"""Assignment to part of a spec field, also where the spec uses the field's short form or omits the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ziggurat.specs.describe import FieldDescription

__all__ = ["assign"]


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
