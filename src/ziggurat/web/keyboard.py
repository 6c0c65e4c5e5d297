"""Keyboard shortcuts of every page, and the choice of a browser to do without single keys (WCAG 2.1.4)."""

from __future__ import annotations

from typing import Final

from fastapi import Request

__all__ = ["GLOBAL_KEYS", "KEYS_COOKIE", "has_single_keys"]

KEYS_COOKIE: Final = "ziggurat_keys"
"""Cookie of a browser: ``off`` where single keys do nothing."""

GLOBAL_KEYS: Final = (
    (("Ctrl K", "⌘ K"), "Open the command palette"),
    (("/",), "Search on this page"),
    (("?",), "Show the keys of this page"),
    (("J", "K"), "Next and previous row"),
    (("X",), "Select the row"),
    (("C",), "Compare the selected rows"),
    (("Esc",), "Close what is open"),
)
"""Keys and what they do; the first one also acts where single keys are off."""


def has_single_keys(request: Request) -> bool:
    """Return whether single keys act in the browser that asks."""
    return request.cookies.get(KEYS_COOKIE) != "off"
