"""Execution of a converted network file in PyTorch, for its comparison with Caffe."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ziggurat.errors import NetworkCodeError

__all__ = ["run_network"]


def run_network(
    text: str, state: Mapping[str, np.ndarray], images: np.ndarray
) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """Return the outputs of a network file, and module → what it gave last.

    Args:
        text: of the network file.
        state: name → array, for all of its weights.
        images: (N, C, H, W) float32, 0 to 255, RGB.

    Raises:
        NetworkCodeError: where the file does not run, which is a fault of the import.
    """
    # By name: the door of the import is read where there is no PyTorch, too.
    converted = import_module("ziggurat.backends.torch.converted")
    try:
        found: tuple[list[Any], dict[str, Any]] = converted.run_converted(text, state, images)
    except NetworkCodeError as error:
        raise NetworkCodeError(
            "The network file that the import wrote must run.",
            received=str(error),
            advice="Report it with the `.prototxt`.",
        ) from error
    return found
