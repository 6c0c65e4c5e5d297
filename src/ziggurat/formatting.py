"""Values as people read them on pages and in a shell: sizes, durations, times, counts, shares."""

from __future__ import annotations

import math
import time
from typing import Any

__all__ = [
    "as_bytes",
    "as_count",
    "as_duration",
    "as_number",
    "as_percent",
    "as_time",
    "as_time_iso",
    "plural",
]


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
    """Return a duration such as ``2 h 05 min``."""
    if duration_s is None or not math.isfinite(duration_s):
        return "–"
    whole = max(0, round(duration_s))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def as_time(moment_s: float | None) -> str:
    """Return a moment in the server's time zone; a browser shows it in its own."""
    return "–" if moment_s is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(moment_s))


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
        return str(int(value))
    return f"{value:.{digits}g}"


def as_count(value: int | None) -> str:
    """Return a whole number with thin spaces between thousands."""
    return "–" if value is None else f"{value:,}".replace(",", "\u202f")


def as_percent(value: float | None, digits: int = 1) -> str:
    """Return a share in [0, 1] as percent."""
    return "–" if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f}\u202f%"


def plural(count: int, one: str, many: str = "") -> str:
    """Return a count with its word: ``1 sample``, ``20 samples``."""
    return f"{as_count(count)} {one if count == 1 else many or one + 's'}"
