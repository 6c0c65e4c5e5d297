"""Owns DIGITS's routes in DIGITS's shapes, so that scripts that were written for it go on working."""

from typing import Final

__all__ = ["ROUTERS"]

ROUTERS: Final[tuple[str, ...]] = (
    "ziggurat.api.digits.browsing:router",
    "ziggurat.api.digits.changing:router",
    "ziggurat.api.digits.creating:router",
    "ziggurat.api.digits.inference:router",
)
"""Where the application finds the routers; they come before those of the pages."""
