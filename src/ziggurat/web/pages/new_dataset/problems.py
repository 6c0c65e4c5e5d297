"""Assignment of an error to the dataset form field that it concerns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ziggurat.errors import UnknownNameError, ZigguratError
from ziggurat.web.pages.new_dataset.labels import TITLES
from ziggurat.web.pages.new_dataset.texts import FIELDS

__all__ = ["field_problems", "problem_text"]


def field_problems(error: ZigguratError, texts: Mapping[str, str]) -> dict[str, str]:
    """Return name of a field → what is wrong with it; the name is empty where the error belongs to no field.

    Args:
        error: that was raised.
        texts: name → text of the form's fields.
    """
    found = error.details.get("problems")
    if isinstance(found, list) and found:
        return {_shown_field(each["field"]): _sentence(each) for each in found}
    return {_field_of(error, texts): problem_text(error)}


def problem_text(error: ZigguratError) -> str:
    """Return an error in one line, for the place beside a field."""
    advice = "Choose one of the formats below." if error.details.get("options") else error.advice
    nearest = "; ".join(error.details.get("obstacles", ()))
    nearest = f"{nearest.rstrip('.')}." if nearest else ""
    return " ".join(part for part in (error.rule, nearest, advice) if part).replace("`", "")


def _field_of(error: ZigguratError, texts: Mapping[str, str]) -> str:
    named = error.details.get("field")
    if isinstance(named, str) and named:
        return _shown_field(named)
    kind = str(error.details.get("kind", ""))
    if isinstance(error, UnknownNameError) and kind.startswith("importer"):
        return "format"
    received = (error.received or "").strip("`")
    if received:
        same = next((name for name, text in texts.items() if text.strip() == received), "")
        if same:
            return same
    for word in re.findall(r"`([^`]+)`", f"{kind} {error.rule} {error.received or ''}"):
        for name in (f"options.{word}", word, f"splits.{word}"):
            if name in FIELDS or name in texts:
                return name
    return "source" if "source" in error.rule else ""


def _shown_field(path: str) -> str:
    """Return the field of the form for a path of the spec; ``size.0`` is shown with ``size``."""
    parts = path.split(".")
    while parts:
        name = ".".join(parts)
        if name in FIELDS or name.startswith(("options.", "splits.lists.")):
            return name
        parts.pop()
    return ""


def _sentence(problem: Mapping[str, Any]) -> str:
    path = problem["field"]
    known = FIELDS.get(path)
    title = TITLES.get(path, known.title if known else path)
    rule = str(problem["rule"]).replace(f"`{path}`", title, 1)
    advice = str(problem.get("advice", ""))
    shown = "" if known is not None and advice.startswith(f"{known.title}:") else f" {advice}"
    text = f"{rule}.{shown}".rstrip().replace("`", "")
    return text.replace("val_share", "the validation share")
