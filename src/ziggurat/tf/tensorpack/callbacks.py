"""Callbacks of older Tensorpack that Ziggurat has no others for."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Sequence
from typing import Any

from ziggurat import callbacks
from ziggurat.callbacks import ProcessTensors
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.tensorpack.older import OlderNames
from ziggurat.tf.tensorpack.utils.concurrency import start_proc_mask_signal

__all__ = [
    "CallbackFactory",
    "MovingAverageSummary",
    "ProxyCallback",
    "SimpleMovingAverage",
    "StartProcOrThread",
    "StepTensorPrinter",
    "TensorPrinter",
]


class MovingAverageSummary(OlderNames, callbacks.MovingAverageSummary):
    """``ziggurat.callbacks.MovingAverageSummary``, of what ``add_moving_summary`` was given."""

    older = {"collection": "", "train_op": ""}


class SimpleMovingAverage(OlderNames, callbacks.SimpleMovingAverage):
    """``ziggurat.callbacks.SimpleMovingAverage``; ``tensors`` is another name of ``names``."""

    older = {"tensors": "names"}


class ProxyCallback(OlderNames, callbacks.ProxyCallback):
    """``ziggurat.callbacks.ProxyCallback``; the callback inside is ``cb``."""

    older = {"cb": "callback"}

    @property
    def cb(self) -> callbacks.Callback:
        """The callback inside."""
        return self.callback


class CallbackFactory(OlderNames, callbacks.CallbackFactory):
    """``ziggurat.callbacks.CallbackFactory``; ``trigger_epoch`` is another name of ``trigger``."""

    older = {"trigger_epoch": "trigger"}


class StartProcOrThread(Callback):
    """Starts processes and threads before the training, and ends them behind it.

    Args:
        startable: an object with ``start()``, or several.
        stop_at_last: whether to stop what can be stopped, and end processes, behind the training.
    """

    chief_only = False

    def __init__(self, startable: Any, stop_at_last: bool = True) -> None:
        self._parts = list(startable) if isinstance(startable, list | tuple) else [startable]
        self._ends_them = stop_at_last

    def _before_train(self) -> None:
        for part in self._parts:
            logger.info("%s is started.", getattr(part, "name", type(part).__name__))
        start_proc_mask_signal(self._parts)

    def _after_train(self) -> None:
        if not self._ends_them:
            return
        for part in self._parts:
            if isinstance(part, multiprocessing.process.BaseProcess):
                part.terminate()
            elif isinstance(part, threading.Thread) and hasattr(part, "stop"):
                part.stop()


class TensorPrinter(ProcessTensors):
    """Logs values of every step.

    Args:
        names: of the tensors.
    """

    def __init__(self, names: Sequence[str]) -> None:
        def log(*values: Any) -> None:
            for name, value in zip(names, values, strict=True):
                logger.info("%s: %s", name, value)

        super().__init__(names, log)


StepTensorPrinter = TensorPrinter
"""Older name of ``TensorPrinter``."""
