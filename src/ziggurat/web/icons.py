"""Icons of the pages: inline SVG of 16 x 16 units, drawn as lines in the color of the text."""

from __future__ import annotations

from functools import cache
from typing import Final

from markupsafe import Markup

__all__ = ["ICONS", "icon"]

_RING: Final = '<circle cx="8" cy="8" r="6"/>'


def _lines(path: str) -> str:
    return f'<path d="{path}"/>'


ICONS: Final = {
    "alert": _lines("M8 2.5 14.5 13.5h-13zM8 6.5v3.2M8 11.6v.1"),
    "arrow-down": _lines("M8 3v10M4 9l4 4 4-4"),
    "arrow-up": _lines("M8 13V3M4 7l4-4 4 4"),
    "bell": _lines("M4 11V7a4 4 0 0 1 8 0v4l1.2 1.5H2.8zM6.8 14.3h2.4"),
    "box": '<rect x="3" y="4" width="10" height="8"/><g class="filled"><rect x="1.8" y="2.8" width="2.4" height="2.4"/>'
    '<rect x="11.8" y="10.8" width="2.4" height="2.4"/></g>',
    "bolt": _lines("M9 1.8 3.5 9H8l-1 5.2L12.5 7H8z"),
    "check": _lines("m3.5 8.5 3 3 6-7"),
    "check-circle": _RING + _lines("m5.4 8.2 1.8 1.8 3.4-3.9"),
    "chevron-down": _lines("m4 6 4 4 4-4"),
    "chevron-left": _lines("M10 4 6 8l4 4"),
    "chevron-right": _lines("m6 4 4 4-4 4"),
    "clock": _RING + _lines("M8 4.8V8l2.2 1.5"),
    "close": _lines("m4 4 8 8M12 4l-8 8"),
    "columns": '<rect x="2.5" y="3" width="11" height="10" rx="1"/>' + _lines("M6.2 3v10M9.8 3v10"),
    "compare": _lines("M3 13V7M6.3 13V3M9.7 13V9M13 13V5"),
    "copy": '<rect x="5.5" y="5.5" width="8" height="8" rx="1"/>' + _lines("M10.5 3.5v-1h-8v8h1"),
    "download": _lines("M8 3v7M5 7l3 3 3-3M3 11.5V13h10v-1.5"),
    "edit": _lines("m10.5 3 2.5 2.5L5.5 13H3v-2.5z"),
    "expand": _lines("M9.5 2.5h4v4M6.5 13.5h-4v-4M13.5 2.5 9 7M2.5 13.5 7 9"),
    "external": _lines("M9 3h4v4M13 3 7.5 8.5M11 9.5V13H3V5h3.5"),
    "filter": _lines("M2.5 3.5h11l-4.3 5v4l-2.4-1.2V8.5z"),
    "folder": _lines("M2 4.5c0-.6.4-1 1-1h3L7.5 5H13c.6 0 1 .4 1 1v6c0 .6-.4 1-1 1H3c-.6 0-1-.4-1-1z"),
    "gear": '<circle cx="8" cy="8" r="4.5"/><circle cx="8" cy="8" r="1.7"/>'
    + _lines("M8 1.7v1.8M8 12.5v1.8M1.7 8h1.8M12.5 8h1.8M3.5 3.5l1.3 1.3M11.2 11.2l1.3 1.3M12.5 3.5l-1.3 1.3"
    "M4.8 11.2l-1.3 1.3"),
    "grid": '<rect x="2.5" y="2.5" width="4.5" height="4.5" rx=".8"/>'
    '<rect x="9" y="2.5" width="4.5" height="4.5" rx=".8"/>'
    '<rect x="2.5" y="9" width="4.5" height="4.5" rx=".8"/><rect x="9" y="9" width="4.5" height="4.5" rx=".8"/>',
    "image": '<rect x="2" y="3" width="12" height="10" rx="1.5"/><circle cx="5.5" cy="6.3" r="1"/>'
    + _lines("M2.5 11.5 6 8.5l2.5 2L11 8l2.7 2.5"),
    "info": _RING + _lines("M8 7.4v3.4M8 5.1v.1"),
    "lasso": '<ellipse cx="8.5" cy="6.5" rx="5.5" ry="3.8"/>' + _lines("M4.3 9c-1 .6-1.2 1.9-.2 2.5 1 .6.9 1.6-.1 2.2"),
    "list": _lines("M2.5 4h.1M2.5 8h.1M2.5 12h.1M5.5 4h8M5.5 8h8M5.5 12h8"),
    "lock": '<rect x="3.5" y="7" width="9" height="6.5" rx="1"/>' + _lines("M5.5 7V5a2.5 2.5 0 0 1 5 0v2"),
    "menu": _lines("M2.5 4h11M2.5 8h11M2.5 12h11"),
    "more": '<g class="filled"><circle cx="3.5" cy="8" r="1.2"/><circle cx="8" cy="8" r="1.2"/>'
    '<circle cx="12.5" cy="8" r="1.2"/></g>',
    "server": '<rect x="2.5" y="2.8" width="11" height="4.4" rx="1"/>'
    + '<rect x="2.5" y="8.8" width="11" height="4.4" rx="1"/>'
    + _lines("M5 5h.1M5 11h.1"),
    "pause": _lines("M5.5 4v8M10.5 4v8"),
    "pause-circle": _RING + _lines("M6.5 6v4M9.5 6v4"),
    "play": _lines("M5 3.5v9L12.5 8z"),
    "plus": _lines("M8 3v10M3 8h10"),
    "question": '<circle cx="8" cy="8" r="6" stroke-dasharray="2.2 1.6"/>'
    + _lines("M6.4 6.3a1.7 1.7 0 1 1 2.4 1.6c-.6.3-.8.6-.8 1.2M8 11.1v.1"),
    "help": _RING + _lines("M6.4 6.3a1.7 1.7 0 1 1 2.4 1.6c-.6.3-.8.6-.8 1.2M8 11.1v.1"),
    "queue-ring": '<circle cx="8" cy="8" r="6" stroke-dasharray="2.4 2.3"/>',
    "minus": _lines("M3 8h10"),
    "move": _lines("M8 2v12M2 8h12M6.2 3.8 8 2l1.8 1.8M6.2 12.2 8 14l1.8-1.8")
    + _lines("M3.8 6.2 2 8l1.8 1.8M12.2 6.2 14 8l-1.8 1.8"),
    "rectangle": '<rect x="2.5" y="3.5" width="11" height="9" rx="1" stroke-dasharray="2.4 1.8"/>',
    "redo": _lines("M10.5 4 13 6.5 10.5 9M13 6.5H6.5a3.5 3.5 0 0 0 0 7H9"),
    "refresh": _lines("M13 8a5 5 0 1 1-1.5-3.6L13 6M13 3v3h-3"),
    "search": '<circle cx="7" cy="7" r="4.5"/>' + _lines("M10.5 10.5 14 14"),
    "sparkle": _lines("M8 2v3.5M8 10.5V14M2 8h3.5M10.5 8H14M4 4l1.5 1.5M10.5 10.5 12 12M12 4l-1.5 1.5M5.5 10.5 4 12"),
    "spinner": '<circle cx="8" cy="8" r="6" opacity=".35"/><circle cx="8" cy="8" r="1.3" class="filled"/>'
    '<path class="turns" d="M8 2a6 6 0 0 1 6 6"/>',
    "star": _lines("m8 2.2 1.8 3.7 4 .6-2.9 2.8.7 4L8 11.4l-3.6 1.9.7-4L2.2 6.5l4-.6z"),
    "stop": '<rect x="4" y="4" width="8" height="8" rx="1"/>',
    "stop-circle": _RING + '<rect x="6.2" y="6.2" width="3.6" height="3.6" rx=".5" class="filled"/>',
    "sun": '<circle cx="8" cy="8" r="2.8"/>'
    + _lines("M8 1.7v1.5M8 12.8v1.5M1.7 8h1.5M12.8 8h1.5M3.5 3.5l1.1 1.1M11.4 11.4l1.1 1.1M12.5 3.5l-1.1 1.1"
    "M4.6 11.4l-1.1 1.1"),
    "table": '<rect x="2" y="3" width="12" height="10" rx="1.5"/>' + _lines("M2 6.5h12M6.5 6.5V13"),
    "text": _lines("M3 4h10M3 8h10M3 12h6"),
    "trash": _lines("M3 4.5h10M6 4.5V3h4v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5"),
    "undo": _lines("M5.5 4 3 6.5 5.5 9M3 6.5h6.5a3.5 3.5 0 0 1 0 7H7"),
    "upload": _lines("M8 10V3M5 6l3-3 3 3M3 11.5V13h10v-1.5"),
    "user": '<circle cx="8" cy="5.5" r="2.7"/>' + _lines("M2.8 13.5c.6-2.7 2.6-4 5.2-4s4.6 1.3 5.2 4"),
    "x-circle": _RING + _lines("m6 6 4 4M10 6l-4 4"),
}  # fmt: skip
"""Name → content of the SVG element."""


@cache
def icon(name: str, classes: str = "") -> Markup:
    """Return an icon that is hidden from screen readers, because text next to it has the same meaning.

    Args:
        name: one of ``ICONS``.
        classes: further classes, such as ``small``.
    """
    space = " " if classes else ""
    return Markup('<svg class="icon{}{}" viewBox="0 0 16 16" aria-hidden="true">{}</svg>').format(
        space, classes, Markup(ICONS[name])
    )
