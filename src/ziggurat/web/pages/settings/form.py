"""Contents of the settings page: fields of the numeric limits, their parsing, and the settings of the process."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.errors import ConfigurationError
from ziggurat.settings import SettingDescription, Settings
from ziggurat.workspace.studio.machine import Limit

__all__ = ["LimitField", "StartUpSetting", "limit_fields", "start_up_setting", "typed_limits"]

_TITLES: Final = {
    "cpu_slots": ("CPU jobs at a time", "", 1),
    "dataset_slots": ("Dataset jobs at a time", "", 1),
    "memory_bytes": ("Memory for jobs", "GB", 10**9),
    "disk_reserve_bytes": ("Disk space kept free", "GB", 10**9),
    "uploads_kept_s": ("Lifetime of uploads", "days", 24 * 3600),
}
"""Name → title, unit that is typed, and how many of the studio's units that is."""

_HINTS: Final = {
    "cpu_slots": "Jobs without a GPU that run at the same time; default: half of the cores.",
    "dataset_slots": "Default 1: two on one disk slow each other down.",
    "memory_bytes": "Memory of all running jobs together; default: 90 % of this machine.",
    "disk_reserve_bytes": "With less free space no job starts; default: 2 % of the disk, 1 to 5 GiB.",
    "uploads_kept_s": "Uploads that became no dataset are deleted after this time; default: a week.",
}


@dataclass(frozen=True, kw_only=True)
class LimitField:
    """A field of the form.

    Args:
        name: of the number.
        title: what people read.
        unit: that they type; empty for a count.
        text: that stands in the field; empty where the default holds.
        default: the default, in its unit.
        hint: what it does and what is usual.
    """

    name: str
    title: str
    unit: str
    text: str
    default: str
    hint: str


@dataclass(frozen=True, kw_only=True)
class StartUpSetting:
    """A setting that is read when the server starts.

    Args:
        name: its key in the settings file.
        value: in force; stars for a secret.
        default: value without flag, variable and file.
        source: where the value comes from.
        is_default: whether it is the default.
        help: one sentence.
        variable: its environment variable.
    """

    name: str
    value: str
    default: str
    source: str
    is_default: bool
    help: str
    variable: str


def limit_fields(limits: list[Limit], typed: Mapping[str, str] | None = None) -> list[LimitField]:
    """Return the fields, with what was typed where a form was not taken."""
    return [_field(each, None if typed is None else typed.get(each.name, "")) for each in limits]


def typed_limits(limits: list[Limit], typed: Mapping[str, str]) -> tuple[dict[str, int | None], dict[str, str]]:
    """Return the numbers that were typed, and what is wrong with the others; an empty field stands for the default."""
    values: dict[str, int | None] = {}
    problems: dict[str, str] = {}
    for each in limits:
        text = typed.get(each.name, "").strip()
        title, unit, factor = _TITLES[each.name]
        try:
            values[each.name] = _number(text, factor) if text else None
        except ConfigurationError as error:
            problems[each.name] = str(error)
            continue
        value = values[each.name]
        if value is not None and value < each.least:
            least = _short(each.least / factor)
            problems[each.name] = f"{title}: at least {least}{' ' + unit if unit else ''} (received: {text})."
    return values, problems


def start_up_setting(about: SettingDescription, held: Settings) -> StartUpSetting:
    """Return a setting of the server process with the value that is in force."""
    origin = held.origins.get(about.name, "default")
    if origin == "default":
        source = "Default"
    elif origin.startswith("--"):
        source = f"Flag {origin}"
    elif origin.startswith("/"):
        source = f"File {origin}"
    else:
        source = f"Environment {origin}"
    return StartUpSetting(
        name=about.name,
        value=_setting_text(getattr(held, about.name)),
        default=_setting_text(about.default),
        source=source,
        is_default=origin == "default",
        help=about.help,
        variable=about.variable,
    )


def _setting_text(value: Any) -> str:
    return {"True": "yes", "False": "no", "": "–", "None": "–"}.get(str(value), str(value))


def _field(limit: Limit, typed: str | None) -> LimitField:
    title, unit, factor = _TITLES[limit.name]
    text = _short(limit.value / factor) if limit.is_chosen else ""
    return LimitField(
        name=limit.name,
        title=f"{title} ({unit})" if unit else title,
        unit=unit,
        text=text if typed is None else typed,
        default=f"{limit.default / factor:.1f}".removesuffix(".0"),
        hint=_HINTS[limit.name],
    )


def _number(text: str, factor: int) -> int:
    if re.fullmatch(r"\d+(,\d{3})+", text):  # a thousand to some, and one to others
        raise ConfigurationError("Type this number without a comma, such as 1000 or 0.5.", received=text[:40])
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (factor == 1 and value != int(value)) or abs(value * factor) > 2**53:
        kind = "a whole number" if factor == 1 else "a number"
        raise ConfigurationError(f"This must be {kind}, or empty for the default.", received=text[:40])
    return round(value * factor)


def _short(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.12g}"
