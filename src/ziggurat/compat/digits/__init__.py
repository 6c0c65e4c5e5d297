"""DIGITS-compatible routes and JSON, so that scripts written for DIGITS keep working."""

from typing import Final

__all__ = ["ROUTERS"]

ROUTERS: Final[tuple[str, ...]] = (
    "ziggurat.compat.digits.routes:router",
    "ziggurat.compat.digits.inference:router",
)
"""Where the application finds the routers; they come before those of the pages."""
