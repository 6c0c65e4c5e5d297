"""Predictors over graphs of their own: after a training, on one device or several, fed by hand or by a source."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.calls import prepared_call
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.feed import BatchCycle, Feed
from ziggurat.errors import ConfigurationError, UsageError
from ziggurat.tf.inputs.base import InputSource, input_placeholder
from ziggurat.tf.predict_config import PredictConfig
from ziggurat.tf.predictors import OnlinePredictor, PredictorBase, value_tensor
from ziggurat.tf.tower import PredictTowerContext, TowerTensorHandle
from ziggurat.tf.trainers import device_name

__all__ = [
    "DataParallelOfflinePredictor",
    "FeedfreePredictor",
    "MultiTowerOfflinePredictor",
    "OfflinePredictor",
]


class OfflinePredictor(OnlinePredictor):
    """Predicts with a graph and a session of its own.

    Args:
        config: what it is made of.

    Raises:
        UnknownNameError: where the tower has no tensor of a name.
    """

    def __init__(self, config: PredictConfig) -> None:
        with config.graph() as self.graph:
            function = config.new_tower_func()
            placeholders = [input_placeholder(spec, reused=True) for spec in config.input_signature]
            with PredictTowerContext(""):
                function(*placeholders)
            tower = function.towers[0]
            inputs, outputs = tower.get_tensors(config.input_names), tower.get_tensors(config.output_names)
            session = config.new_session()
        super().__init__(inputs, outputs, config.return_input, session)
        self.close = _closing(self, session)
        """Closes the session; it is also closed when the predictor is garbage-collected."""


class MultiTowerOfflinePredictor(PredictorBase):
    """A tower on each of several devices, with shared variables; each is a predictor.

    A call predicts with the first one.

    Args:
        config: what it is made of.
        towers: numbers of GPUs, or names of devices.

    Raises:
        ConfigurationError: where there is no device.
    """

    def __init__(self, config: PredictConfig, towers: Sequence[int | str]) -> None:
        self.return_input = config.return_input
        with config.graph() as self.graph:
            built = _towers(config, towers, is_input_shared=True)
            ends = [(each.get_tensors(config.input_names), each.get_tensors(config.output_names)) for each in built]
            session = config.new_session()
        self.sess = session
        lifetime = _Lifetime()
        self._predictors = [
            OnlinePredictor(inputs, outputs, self.return_input, session, lifetime) for inputs, outputs in ends
        ]
        self.close = _closing(lifetime, session)
        """Closes the session; it is also closed when this and all its predictors are garbage-collected."""

    def get_predictor(self, n: int) -> OnlinePredictor:
        """Return the predictor of a tower; numbers go on from the first one behind the last.

        Args:
            n: its number.
        """
        return self._predictors[n % len(self._predictors)]

    def get_predictors(self) -> list[OnlinePredictor]:
        """Return the predictors of all towers."""
        return list(self._predictors)

    def _do_call(self, dp: Sequence[Any]) -> list[np.ndarray]:
        return self._predictors[0]._do_call(dp)


class DataParallelOfflinePredictor(OnlinePredictor):
    """One predictor over several devices: it takes the inputs of all towers, one tower after the other.

    It neither splits nor joins batches: with two towers of inputs (x, y) it is called as ``(x0, y0, x1, y1)`` and
    returns the outputs of the first tower, then those of the second.

    Args:
        config: what it is made of.
        towers: numbers of GPUs, or names of devices.

    Raises:
        ConfigurationError: where there is no device.
    """

    def __init__(self, config: PredictConfig, towers: Sequence[int | str]) -> None:
        with config.graph() as self.graph:
            built = _towers(config, towers, is_input_shared=False)
            inputs = [tensor for each in built for tensor in each.get_tensors(config.input_names)]
            outputs = [tensor for each in built for tensor in each.get_tensors(config.output_names)]
            session = config.new_session()
        super().__init__(inputs, outputs, config.return_input, session)
        self.close = _closing(self, session)
        """Closes the session; it is also closed when the predictor is garbage-collected."""


class FeedfreePredictor(PredictorBase):
    """Predicts batches of an input source: it is called without arguments.

    Args:
        config: what it is made of.
        input_source: where the batches come from; it is repeated without end where it is a data flow.

    Raises:
        ConfigurationError: where ``return_input`` is asked for.
    """

    def __init__(self, config: PredictConfig, input_source: InputSource) -> None:
        if config.return_input:
            raise ConfigurationError(
                "return_input=True is given to a predictor that reads its input itself, which returns no input.",
                advice="Name the inputs among `output_names`.",
            )
        self._input_source = input_source
        with config.graph() as self.graph:
            function = config.new_tower_func()
            input_source.setup(config.input_signature)
            inputs = input_source.get_input_tensors()
            with PredictTowerContext(""):
                function(*inputs)
            outputs = [value_tensor(each) for each in function.towers[0].get_tensors(config.output_names)]
            beside = list(input_source.step_operations())
            session = config.new_session()
            with session.as_default():
                input_source.reset_state()
        self.sess = session
        self._feed = input_source.connect(BatchCycle(input_source.batches()), session)
        self._predict = prepared_call(session, input_source.fed, outputs, beside)
        # Also before the interpreter ends: the feed's thread aborts the process where it is cut off inside of
        # TensorFlow.
        self._close = weakref.finalize(self, _close_fed, self._feed, session)

    def close(self) -> None:
        """Close the session and free the source; this also happens when the predictor is garbage-collected."""
        self._close()

    def _do_call(self, dp: Sequence[Any]) -> list[np.ndarray]:
        if dp:
            raise UsageError(
                "A predictor that reads its input itself takes no arguments.",
                received=f"{len(dp)}",
                advice="Call it as `predictor()`, or use an `OfflinePredictor`.",
            )
        return list(self._predict(*(self._feed.next() or ())))


def _towers(config: PredictConfig, devices: Sequence[int | str], *, is_input_shared: bool) -> list[TowerTensorHandle]:
    if not devices:
        raise ConfigurationError("There is no device for prediction: `towers` is empty.", advice="Name at least one.")
    function = config.new_tower_func()
    for number, device in enumerate(devices):
        is_first = number == 0
        placeholders = [input_placeholder(spec, reused=is_first or is_input_shared) for spec in config.input_signature]
        # The first one makes the variables.
        reuse = None if is_first else True
        with (
            tf.device(device_name(device)),
            tf.variable_scope(tf.get_variable_scope(), reuse=reuse),
            PredictTowerContext(f"tower{number}"),
        ):
            function(*placeholders)
    return list(function.towers)


def _close_fed(feed: Feed, session: Any) -> None:
    try:
        feed.close()
    finally:
        session.close()


class _Lifetime:
    """Held by everything that needs a session."""


def _closing(owner: Any, session: Any) -> Any:
    # At the latest before the interpreter takes its modules apart: a prepared call of an open session frees itself.
    return weakref.finalize(owner, session.close)
