"""Keyboard shortcuts of every page, and the setting that turns single-key shortcuts off (WCAG 2.1.4)."""

from __future__ import annotations

from typing import Final

from fastapi import Request

__all__ = ["GLOBAL_KEYS", "KEYS_COOKIE", "has_single_keys"]

KEYS_COOKIE: Final = "ziggurat_keys"
"""Cookie: ``off`` if single-key shortcuts are off."""

GLOBAL_KEYS: Final = (
    (("Ctrl K", "⌘ K"), "Open the command palette"),
    (("/",), "Search on this page"),
    (("?",), "Show the keys of this page"),
    (("J", "K"), "Next and previous row"),
    (("X",), "Select the row"),
    (("C",), "Compare the selected rows"),
    (("Esc",), "Close what is open"),
)
"""Keys and their actions; the first one also works if single-key shortcuts are off."""


def has_single_keys(request: Request) -> bool:
    """Return whether single-key shortcuts are on in the browser of a request."""
    return request.cookies.get(KEYS_COOKIE) != "off"
