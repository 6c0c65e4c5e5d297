"""Conversion of other libraries' values to datapoint components, without importing these libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from ziggurat.dataflow.base import Datapoint

__all__ = ["as_component", "as_datapoint"]


def as_datapoint(value: Any) -> Datapoint:
    """Return what another library yields as a datapoint: a dict stays one, all else becomes a list of components."""
    if isinstance(value, dict):
        return {key: as_component(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_component(item) for item in value]
    return [as_component(value)]


def as_component(value: Any) -> Any:
    """Return tensors as arrays, Pillow's images as (H, W, C) uint8, and anything else as it is."""
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor of PyTorch
        return value.detach().cpu().numpy()[()]  # a tensor without dimensions becomes a scalar
    if hasattr(value, "getbands") and hasattr(value, "convert"):  # an image of Pillow
        grey = value.mode in ("1", "L")
        pixels = np.array(value.convert("L" if grey else "RGB"))
        return pixels[:, :, None] if grey else pixels
    if isinstance(value, dict):
        return {key: as_component(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_component(item) for item in value]
    return value
