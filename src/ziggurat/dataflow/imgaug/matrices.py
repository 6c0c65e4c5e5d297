"""Matrices of affine warps.

A matrix here maps source coordinates to destination coordinates, in the pixel convention of ``images.py``. OpenCV
counts from pixel centers instead, so ``from_centres`` shifts a matrix by half a pixel on both sides for OpenCV.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ziggurat.dataflow.imgaug.images import Array

__all__ = ["about", "centre_of", "from_centres", "rotation_matrix", "shear_matrix", "shift_matrix"]


def rotation_matrix(degrees: float) -> Array:
    """Return the (2, 2) matrix that turns an image against the clock; its y axis points down."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[cosine, sine], [-sine, cosine]])


def shear_matrix(degrees: float) -> Array:
    """Return the (2, 2) matrix that leans the y axis."""
    return np.array([[1.0, math.sin(math.radians(degrees))], [0.0, math.cos(math.radians(degrees))]])


def shift_matrix(dx: float, dy: float) -> Array:
    """Return the (2, 3) matrix that shifts by (dx, dy) pixels."""
    return np.array([[1.0, 0.0, dx], [0.0, 1.0, dy]])


def about(linear: Array, centre: Array, shift: Sequence[float] = (0.0, 0.0)) -> Array:
    """Return the (2, 3) matrix that applies ``linear`` (2, 2) about ``centre`` (x, y), and then a shift."""
    return np.column_stack([linear, centre - linear @ centre + np.asarray(shift)])


def from_centres(matrix: Array) -> Array:
    """Return a (2, 3) matrix as OpenCV counts: from the center of the first pixel instead of its corner."""
    linear = matrix[:, :2]
    half = np.array([0.5, 0.5])
    return np.column_stack([linear, matrix[:, 2] + linear @ half - half])


def centre_of(img: Array) -> Array:
    """Return the center (x, y) of an image."""
    return np.array([img.shape[1] / 2, img.shape[0] / 2])
