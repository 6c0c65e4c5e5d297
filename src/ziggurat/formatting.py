"""Values as people read them on pages and in a shell: sizes, durations, times, counts, shares."""

from __future__ import annotations

import math
import re
import time
from typing import Any, Final

__all__ = [
    "as_ago",
    "as_bytes",
    "as_clock",
    "as_count",
    "as_duration",
    "as_heading",
    "as_job_kind",
    "as_number",
    "as_percent",
    "as_rough_duration",
    "as_time",
    "as_time_iso",
    "plural",
]

_LONG_EXPONENT: Final = re.compile(r"e\+?(-?)0*")
"""Start of an exponent as Python writes it, ``e-05``; charts and people write ``e-5``."""


def as_bytes(value: float | None) -> str:
    """Return a size such as ``1.4 GB``; powers of 1000."""
    if value is None:
        return "–"
    size = float(value)
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if abs(size) < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "bytes" or abs(size) >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return ""


def as_duration(duration_s: float | None) -> str:
    """Return a duration such as ``2 h 05 min`` or ``0.4 s``."""
    if duration_s is None or not math.isfinite(duration_s):
        return "–"
    if 0.05 <= duration_s < 0.95:
        return f"{duration_s:.1f} s"
    whole = max(0, round(duration_s))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def as_job_kind(kind: str) -> str:
    """Return what people call a kind of job, such as ``map`` for ``embed``."""
    return {"train": "training", "evaluate": "evaluation", "infer": "prediction", "embed": "map"}.get(kind, kind)


def as_rough_duration(duration_s: float) -> str:
    """Return a guessed duration such as ``about 3 min``, with no more digits than a guess has."""
    units = ((45, 1, "s"), (5700, 60, "min"), (172_800, 3600, "h"), (math.inf, 86400, "d"))
    unit_s, unit = next((unit_s, unit) for limit_s, unit_s, unit in units if duration_s < limit_s)
    count = duration_s / unit_s
    step = 10 if unit == "s" else 1 if count < 10 else 5
    return f"about {as_count(max(step, step * round(count / step)))} {unit}"


def as_time(moment_s: float | None) -> str:
    """Return a moment in the server's time zone; a browser shows it in its own."""
    return "–" if moment_s is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment_s))


def as_clock(moment_s: float | None) -> str:
    """Return the time of day of a moment in the server's zone, with the date where it is not today: ``16:42``."""
    if moment_s is None:
        return "–"
    moment = time.localtime(moment_s)
    is_today = time.strftime("%Y-%m-%d", moment) == time.strftime("%Y-%m-%d")
    return time.strftime("%H:%M" if is_today else "%Y-%m-%d %H:%M", moment)


def as_ago(moment_s: float | None, now_s: float | None = None) -> str:
    """Return how long ago a moment was: ``4 min ago``, ``yesterday``; older than a month, its date.

    Args:
        moment_s: seconds since 1970; None for a dash.
        now_s: the same; None for the present.
    """
    if moment_s is None:
        return "–"
    passed_s = (time.time() if now_s is None else now_s) - moment_s
    if passed_s < 60:
        return "just now"
    for limit_s, unit_s, unit in ((3600, 60, "min"), (86400, 3600, "h")):
        if passed_s < limit_s:
            return f"{int(passed_s // unit_s)} {unit} ago"
    days = int(passed_s // 86400)
    if days <= 30:
        return "yesterday" if days == 1 else f"{days} days ago"
    return time.strftime("%Y-%m-%d", time.localtime(moment_s))


def as_time_iso(moment_s: float | None) -> str:
    """Return a moment as HTML's ``datetime`` wants it."""
    return "" if moment_s is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment_s))


def as_number(value: Any, digits: int = 4) -> str:
    """Return a number with so many significant digits; other values as they are."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return as_count(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    if value == int(value) and abs(value) < 1e6:
        return as_count(int(value))
    if 1000 <= abs(value) < 1e6:
        return as_count(round(value))
    return _LONG_EXPONENT.sub(r"e\1", f"{value:.{digits}g}")


_SPLITS: Final = {"train": "Training", "val": "Validation", "test": "Test"}


def as_split(name: str) -> str:
    """Return the name of a split for people: ``Validation`` for ``val``; other names as they are."""
    return _SPLITS.get(name, name)


def as_count(value: int | None) -> str:
    """Return a whole number with commas between thousands: ``12,500``."""
    return "–" if value is None else f"{value:,}"


def as_percent(value: float | None, digits: int = 1) -> str:
    """Return a share in [0, 1] as percent."""
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f}\u202f%"


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with its word: ``1 sample``, ``20 samples``."""
    return f"{as_count(count)} {one if count == 1 else many or one + 's'}"


def as_heading(text: str) -> str:
    """Return a text with a capital at its beginning; names with one inside, such as mAP, stay as they are.

    >>> as_heading("mean IoU"), as_heading("mAP 50:95")
    ('Mean IoU', 'mAP 50:95')
    """
    is_name = text[1:2] != text[1:2].lower()
    return text if is_name else text[:1].upper() + text[1:]
