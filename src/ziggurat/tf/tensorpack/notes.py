"""What is different from Tensorpack, and why some of its names are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["LEFT_OUT", "NOTES"]
NOTES: Final[Mapping[str, str]] = {}
LEFT_OUT: Final[Mapping[str, str]] = {}
