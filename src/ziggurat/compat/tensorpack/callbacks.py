"""Callbacks of older Tensorpack that Ziggurat has no others for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat import callbacks
from ziggurat.compat.tensorpack.older import OlderNames
from ziggurat.tf import logger
from ziggurat.tf.graph_callbacks import TensorPrinter

__all__ = [
    "BinaryClassificationStats",
    "CallbackFactory",
    "MovingAverageSummary",
    "PeakMemoryTracker",
    "ProxyCallback",
    "ScheduledHyperParamSetter",
    "SimpleMovingAverage",
    "StepTensorPrinter",
]


class MovingAverageSummary(OlderNames, callbacks.MovingAverageSummary):
    """``ziggurat.callbacks.MovingAverageSummary``, of what ``add_moving_summary`` was given."""

    older = {"collection": "", "train_op": ""}


class SimpleMovingAverage(OlderNames, callbacks.SimpleMovingAverage):
    """``ziggurat.callbacks.SimpleMovingAverage``; ``tensors`` is another name of ``names``."""

    older = {"tensors": "names"}


class PeakMemoryTracker(callbacks.GPUMemoryTracker):
    """``ziggurat.callbacks.GPUMemoryTracker``, whose GPUs may also be told by names.

    Args:
        devices: numbers of GPUs, or names such as ``/gpu:0``.
    """

    def __init__(self, devices: Sequence[int | str] = (0,)) -> None:
        super().__init__([int(str(each).rpartition(":")[2]) for each in devices])


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


class BinaryClassificationStats(callbacks.BinaryClassificationStats):
    """``ziggurat.callbacks.BinaryClassificationStats``, for decisions of any shape: each element is one."""

    def on_values(self, values: Mapping[str, Any], batch: Any) -> None:
        """Count the decisions of a batch."""
        super().on_values({name: np.ravel(values[name]) for name in self.names()}, batch)


class ScheduledHyperParamSetter(callbacks.ScheduledHyperParamSetter):
    """``ziggurat.callbacks.ScheduledHyperParamSetter``, which warns where the schedule holds from the start on.

    Args:
        param: a parameter, or the name of one of the program.
        schedule: (epoch, value) pairs in any order; the first one of an epoch counts.
        arguments: further arguments of that class, by place.
        options: likewise, by name.
    """

    def __init__(self, param: Any, schedule: Sequence[tuple[float, float]], *arguments: Any, **options: Any) -> None:
        values: dict[int, float] = {}
        for point, value in schedule:
            values.setdefault(int(point), value)
        super().__init__(param, sorted(values.items()), *arguments, **options)

    def set_at_start(self) -> None:
        """Set the value that holds at the start."""
        before = self.param.get_value()
        super().set_at_start()
        after = self.param.get_value()
        if before != after:
            logger.warning(
                "`%s` is %g from the start on, as its schedule says; it was %g.",
                self.param.readable_name,
                after,
                before,
            )


StepTensorPrinter = TensorPrinter
"""Older name of ``TensorPrinter``."""
