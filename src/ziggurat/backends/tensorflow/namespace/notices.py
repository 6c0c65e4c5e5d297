"""Notices to the author of a network file: what it uses that is old, and what stands for it here."""

from __future__ import annotations

import logging
import sys
from types import FrameType
from typing import Final

__all__ = ["FILE_NAME", "notify"]

FILE_NAME: Final = "network"
"""``__name__`` of a network file while it runs."""

_TOLD: Final = "__notices__"
_logger = logging.getLogger(__name__)


def notify(text: str) -> None:
    """Log a notice with the line of the network file that is being executed, once for each network.

    Args:
        text: a sentence.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != FILE_NAME:
        frame = frame.f_back
    if frame is None:
        return
    told: set[str] = frame.f_globals.setdefault(_TOLD, set())
    if text not in told:
        told.add(text)
        _logger.warning("%s, line %d: %s", frame.f_code.co_filename, frame.f_lineno, text)
