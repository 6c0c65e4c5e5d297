"""Readers of well-known datasets from a given folder; nothing is downloaded unless requested.

Each name is imported on first use: the datasets of small images need neither OpenCV nor Pillow.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ziggurat.dataflow.dataset.cifar import Cifar10, Cifar100
    from ziggurat.dataflow.dataset.digits import SklearnDigits, SVHNDigit
    from ziggurat.dataflow.dataset.files import set_data_folder
    from ziggurat.dataflow.dataset.ilsvrc import ILSVRC12, ILSVRC12Files, ILSVRCMeta
    from ziggurat.dataflow.dataset.mnist import FashionMnist, Mnist

__all__ = [
    "ILSVRC12",
    "Cifar10",
    "Cifar100",
    "FashionMnist",
    "ILSVRC12Files",
    "ILSVRCMeta",
    "Mnist",
    "SVHNDigit",
    "SklearnDigits",
    "set_data_folder",
]

_MODULE_OF = {
    "Cifar10": "cifar",
    "Cifar100": "cifar",
    "FashionMnist": "mnist",
    "ILSVRC12": "ilsvrc",
    "ILSVRC12Files": "ilsvrc",
    "ILSVRCMeta": "ilsvrc",
    "Mnist": "mnist",
    "SVHNDigit": "digits",
    "SklearnDigits": "digits",
    "set_data_folder": "files",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has: {', '.join(__all__)}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
