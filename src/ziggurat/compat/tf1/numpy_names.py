"""Names that NumPy had, for scripts and for the workers of their data flows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["NUMPY_NAMES"]

NUMPY_NAMES: Final[dict[str, tuple[str, Any]]] = {
    "Inf": ("np.inf", np.inf),
    "Infinity": ("np.inf", np.inf),
    "NaN": ("np.nan", np.nan),
    "alltrue": ("np.all", np.all),
    "asscalar": ("array.item", lambda array: array.item()),
    "bool": ("bool", bool),
    "complex": ("complex", complex),
    "complex_": ("np.complex128", np.complex128),
    "cumproduct": ("np.cumprod", np.cumprod),
    "float": ("float", float),
    "float_": ("np.float64", np.float64),
    "in1d": ("np.isin", np.isin),
    "int": ("int", int),
    "long": ("int", int),
    "mat": ("np.asmatrix", np.asmatrix),
    "object": ("object", object),
    "product": ("np.prod", np.prod),
    "row_stack": ("np.vstack", np.vstack),
    "sometrue": ("np.any", np.any),
    "str": ("str", str),
    "string_": ("np.bytes_", np.bytes_),
    "trapz": ("np.trapezoid", np.trapezoid),
    "unicode": ("str", str),
    "unicode_": ("np.str_", np.str_),
}
"""Name that NumPy no longer has → name of today, and its value."""
