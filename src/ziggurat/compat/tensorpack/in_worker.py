"""What a program finds in the worker processes of its data flows; importing this module installs it.

The import hook, and the names that NumPy had for code that is not installed.
"""

import sys
from typing import Any

import numpy as np

from ziggurat.compat.tensorpack import hook
from ziggurat.compat.tf1.numpy_names import NUMPY_NAMES

__all__: list[str] = []

_newer: Any = vars(np)["__getattr__"]


def _older(name: str) -> Any:
    # Libraries ask whether a name is there, and must not be told so.
    if name in NUMPY_NAMES and "-packages" not in sys._getframe(1).f_code.co_filename:
        return NUMPY_NAMES[name][1]
    return _newer(name)


hook.install()
np.__getattr__ = _older
