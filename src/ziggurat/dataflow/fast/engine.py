"""Interface of a decoding engine: decodes boxes of JPEG files, reduced, resized and mirrored, into a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

__all__ = ["PLAN_FIELDS", "Engine", "EngineReport", "EngineUnavailableError"]

PLAN_FIELDS = ("slot", "x", "y", "width", "height", "denominator", "flip")
"""Columns of a plan, (N, 7) int32: place in the batch, box in the full image, reduction, whether mirrored."""


class EngineUnavailableError(Exception):
    """An engine cannot be used here; the message says why."""


@dataclass(frozen=True)
class EngineReport:
    """Which engine decodes.

    Args:
        name: "native", "turbojpeg" or "opencv".
        version: of the JPEG library behind it.
        passed_over: better engines that cannot be used here, with the reason.
    """

    name: str
    version: str
    passed_over: dict[str, str] = field(default_factory=dict)


class Engine(Protocol):
    """Decodes; one object serves any number of threads."""

    name: str
    version: str

    def decode(self, files: Sequence[bytes], plans: np.ndarray, out: np.ndarray) -> list[str]:
        """Decode the box of each file, reduced by its denominator, resize it bilinearly, and write it into its slot.

        Args:
            files: complete JPEG files of 8 bits, with 1 or 3 components.
            plans: (N, 7) int32, C-contiguous; columns as ``PLAN_FIELDS``. x and y are multiples of the denominator.
            out: (slots, H, W, 3) uint8, RGB, C-contiguous.

        Returns:
            For each file why it was not decoded; empty where it was.
        """
        ...
