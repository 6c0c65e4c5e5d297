"""Monitors as Tensorpack's programs write them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from ziggurat import callbacks
from ziggurat.callbacks import JSONWriter, Monitor, Monitors, ScalarPrinter
from ziggurat.compat.tensorpack.older import OlderNames
from ziggurat.engine.monitor import Image, Scalar

__all__ = [
    "JSONWriter",
    "MonitorBase",
    "Monitors",
    "ScalarPrinter",
    "TFEventWriter",
    "TFSummaryWriter",
    "TrainingMonitor",
]


class TFEventWriter(OlderNames, callbacks.TFEventWriter):
    """``ziggurat.callbacks.TFEventWriter``; ``flush_secs`` is another name of ``every_s``."""

    older = {"max_queue": "", "flush_secs": "every_s", "split_files": ""}


TFSummaryWriter = TFEventWriter
"""Older name of ``TFEventWriter``."""

_TAKES: Final = {"process_scalar": Scalar, "process_image": Image}


class MonitorBase(Monitor):
    """A sink of numbers and images.

    A subclass defines ``process_scalar(self, name, val)`` and ``process_image(self, name, val)``, with ``val`` of
    (N, H, W, C), and the hooks of callbacks.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, kind in _TAKES.items():
            if name in vars(cls):
                setattr(cls, name, _with_one_argument(vars(cls)[name], kind))


TrainingMonitor = MonitorBase
"""Older name of ``MonitorBase``."""


def _with_one_argument(method: Callable[..., Any], kind: type) -> Callable[..., Any]:
    """Return a method that takes (name, value), and also the object that the engine hands over."""

    @functools.wraps(method)
    def take(self: Any, item: Any, *value: Any) -> Any:
        if not isinstance(item, kind):
            return method(self, item, *value)
        if isinstance(item, Scalar):
            return method(self, item.tag, item.value)
        assert isinstance(item, Image)
        return method(self, item.tag, item.pixels[None])

    return take
