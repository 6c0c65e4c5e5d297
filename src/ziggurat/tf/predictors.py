"""Predictors: functions from arrays to arrays, over a tower of a training or over a graph of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.calls import prepared_call
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import StateError, UsageError
from ziggurat.tf.inputs.base import FedArray

__all__ = ["OnlinePredictor", "PredictorBase", "value_tensor"]


class PredictorBase(ABC):
    """Base of predictors: called with one array an input, it returns a list of arrays, one an output."""

    return_input: bool = False
    """Whether a call returns (inputs, outputs)."""

    def __call__(self, *dp: Any) -> Any:
        """Predict one batch, with its components as arguments."""
        outputs = self._do_call(dp)
        return (dp, outputs) if self.return_input else outputs

    @abstractmethod
    def _do_call(self, dp: Sequence[Any]) -> list[np.ndarray]:
        """Return one array an output."""


class OnlinePredictor(PredictorBase):
    """Predicts with tensors of a graph that has a session.

    Args:
        input_tensors: what is fed.
        output_tensors: what is returned.
        return_input: whether a call returns (inputs, outputs).
        sess: the session; the trainer's or the default one, at the first call, where it is None.
        owner: a trainer whose session it is, or what closes the given session when it is garbage-collected.
    """

    def __init__(
        self,
        input_tensors: Sequence[Any],
        output_tensors: Sequence[Any],
        return_input: bool = False,
        sess: Any = None,
        owner: Any = None,
    ) -> None:
        self.return_input = return_input
        self.input_tensors = list(input_tensors)
        self.output_tensors = [value_tensor(each) for each in output_tensors]
        self.sess = sess
        self._owner = owner
        self._inputs = [FedArray(each) for each in self.input_tensors]
        self._call: Callable[..., Sequence[Any]] | None = None

    def _do_call(self, dp: Sequence[Any]) -> list[np.ndarray]:
        if len(dp) != len(self.input_tensors):
            raise UsageError(
                f"{len(dp)} input(s) are given, and this predictor takes {len(self.input_tensors)}.",
                advice=f"Call it with {', '.join(each.op.name for each in self.input_tensors)}.",
            )
        call = self._call or self._prepared()
        return list(call(*[each.array(part) for each, part in zip(self._inputs, dp, strict=True)]))

    def _prepared(self) -> Callable[..., Sequence[Any]]:
        if self.sess is None and self._owner is not None:
            self.sess = self._owner.sess
        if self.sess is None:
            self.sess = tf.get_default_session()
        if self.sess is None:
            raise StateError(
                "The predictor has no session, and there is no default session.",
                advice="Give it one, or call it while the training runs.",
            )
        self._call = prepared_call(self.sess, self.input_tensors, self.output_tensors)
        return self._call


def value_tensor(each: Any) -> Any:
    """Return a tensor as it is, and of a variable its value; the graph may be final.

    Args:
        each: a tensor, or a variable of the graph.
    """
    if isinstance(each, tf.Tensor) and each.dtype != tf.resource:
        return each
    return each.graph.get_tensor_by_name(f"{each.op.name}/Read/ReadVariableOp:0")
