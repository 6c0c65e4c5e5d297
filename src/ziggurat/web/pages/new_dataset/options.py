"""Format options as form fields: their texts, and the values parsed from the texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ziggurat.web.pages.new_dataset.texts import text_of

__all__ = ["given_options", "option_text", "usual_options"]


def usual_options(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return name → default of the options of a format."""
    return {option["name"]: option["default"] for option in found["options"]}


def option_text(value: Any) -> str:
    """Return the value of an option as a person would type it; a list of plain words needs no brackets."""
    if isinstance(value, list) and all(_is_plain(part) for part in value):
        return ", ".join(value)
    return "" if value == {} else text_of(value)


def given_options(found: Mapping[str, Any], texts: Mapping[str, str], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from what would hold anyway.

    Args:
        found: the format.
        texts: name of an option → text.
        usual: name → value that holds where nobody says another.
    """
    given = {}
    for option in found["options"]:
        name = option["name"]
        text = texts.get(name, "")
        if text.strip() == option_text(usual[name]).strip():
            continue
        value = _value(option, text.strip())
        if value != usual[name]:
            given[name] = value
    return given


def _is_plain(part: Any) -> bool:
    return isinstance(part, str) and part != "" and part == part.strip() and "," not in part and part[0] not in "[{"


def _value(option: Mapping[str, Any], text: str) -> Any:
    """Return what a text means; what it cannot mean stays a text, which the importer refuses by name."""
    kind = option["type"]
    if kind == "str":
        return text
    if not text:
        return {"list": [], "dict": {}}.get(kind, option["default"])
    if kind == "list" and not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text
