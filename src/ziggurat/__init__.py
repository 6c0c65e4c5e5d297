"""Ziggurat: a web studio and a Python engine for training deep networks.

The package itself imports nothing, so that ``import ziggurat`` costs no time. ``ziggurat.log`` and
``ziggurat.log_image`` give any program curves and images, and are loaded when they are used first. Import what you need
from its doors: ``ziggurat.dataflow`` (data loading), ``ziggurat.callbacks`` (callbacks and monitors),
``ziggurat.testing`` (conformance suites).
"""

TYPE_CHECKING = False  # `typing` itself would be imported
if TYPE_CHECKING:
    from typing import Any

    from ziggurat.program_log import log, log_image

__all__ = ["__version__", "log", "log_image"]

__version__ = "0.2.0.dev0"


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module 'ziggurat' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module("ziggurat.program_log"), name)
    return found
