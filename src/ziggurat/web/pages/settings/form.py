"""Form of the studio's numeric limits and folders: field contents, and parsing of the submitted values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ziggurat.errors import ConfigurationError
from ziggurat.formatting import as_bytes, as_duration
from ziggurat.workspace.studio.machine import Limit

__all__ = ["LimitField", "limit_fields", "typed_limits", "typed_roots"]

_TITLES: Final = {
    "cpu_slots": ("CPU jobs at a time", "", 1),
    "dataset_slots": ("Datasets created at a time", "", 1),
    "memory_bytes": ("Memory for jobs", "GB", 10**9),
    "disk_reserve_bytes": ("Disk that stays free", "GB", 10**9),
    "uploads_kept_s": ("Uploads are kept", "days", 24 * 3600),
}
"""Name → title, unit that people type, and how many of the studio's units that is."""


@dataclass(frozen=True, kw_only=True)
class LimitField:
    """A field of the form.

    Args:
        name: of the number.
        title: what people read.
        unit: that they type; empty for a count.
        text: that stands in the field; empty where the default holds.
        default: the default, in words.
        hint: what it does and what is usual.
    """

    name: str
    title: str
    unit: str
    text: str
    default: str
    hint: str


def limit_fields(limits: list[Limit], typed: Mapping[str, str] | None = None) -> list[LimitField]:
    """Return the fields, with what was typed where a form was not taken."""
    return [_field(each, None if typed is None else typed.get(each.name, "")) for each in limits]


def typed_limits(limits: list[Limit], typed: Mapping[str, str]) -> tuple[dict[str, int | None], dict[str, str]]:
    """Return the numbers that were typed, and what is wrong with the others; an empty field stands for the default."""
    values: dict[str, int | None] = {}
    problems: dict[str, str] = {}
    for each in limits:
        text = typed.get(each.name, "").strip().replace(",", ".")
        title, unit, factor = _TITLES[each.name]
        try:
            values[each.name] = _number(text, factor) if text else None
        except ConfigurationError as error:
            problems[each.name] = str(error)
            continue
        value = values[each.name]
        if value is not None and value < each.least:
            least = _short(each.least / factor)
            problems[each.name] = f"{title}: at least {least}{' ' + unit if unit else ''}. Received: {text}."
    return values, problems


def typed_roots(text: str) -> list[str]:
    """Return the folders that were typed, one a line."""
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def _field(limit: Limit, typed: str | None) -> LimitField:
    title, unit, factor = _TITLES[limit.name]
    text = _short(limit.value / factor) if limit.is_chosen else ""
    words = {"GB": as_bytes, "days": as_duration}.get(unit, lambda value: str(round(value)))(limit.default)
    return LimitField(
        name=limit.name,
        title=f"{title} ({unit})" if unit else title,
        unit=unit,
        text=text if typed is None else typed,
        default=words,
        hint=limit.help,
    )


def _number(text: str, factor: int) -> int:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (factor == 1 and value != int(value)) or abs(value * factor) > 2**53:
        kind = "a whole number" if factor == 1 else "a number"
        raise ConfigurationError(f"This is {kind}, or empty for what is usual.", received=text[:40])
    return round(value * factor)


def _short(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.12g}"
