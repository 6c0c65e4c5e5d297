"""Optimizers around optimizers: numbers against NumPy and against one larger batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_trainings import samples, train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.errors import ConfigurationError
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.config import newest_run_state
from ziggurat.tf.graph_callbacks import MovingAverageWeights
from ziggurat.tf.loading import DictRestore
from ziggurat.tf.optimizers import (
    AccumGradOptimizer,
    PostProcessOptimizer,
    ProxyOptimizer,
    VariableAssignmentOptimizer,
)
from ziggurat.tf.savers import ModelSaver
from ziggurat.tf.varmanip import load_checkpoint_vars

KINDS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.5),
    "momentum": lambda: tf.train.MomentumOptimizer(0.5, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
}


def trained(optimizer: Any, batch: int, steps: int, **arguments: Any) -> dict[str, np.ndarray]:
    flow = BatchData(DataFromList(samples(64), shuffle=False), batch)
    return variables(train([], epochs=1, steps=steps, data=flow, get_optimizer=optimizer, **arguments))


@pytest.mark.parametrize("kind", KINDS)
def test_accumulated_mean_equals_a_larger_batch(kind: str) -> None:
    parts = trained(lambda: AccumGradOptimizer(KINDS[kind](), 4), 8, 8)
    whole = trained(KINDS[kind], 32, 2)

    for name in ("linear/W", "linear/b"):
        assert np.allclose(parts[name], whole[name], atol=1e-6), name
    assert set(parts) - set(whole) == {"AccumGrad/counter", "linear/W/AccumGrad", "linear/b/AccumGrad"}
    assert set(whole) <= set(parts)
    assert parts["global_step"] == 8
    assert parts["AccumGrad/counter"] == 0
    assert not parts["linear/W/AccumGrad"].any()


def test_accumulated_sum_is_of_a_larger_rate() -> None:
    parts = trained(lambda: AccumGradOptimizer(tf.train.GradientDescentOptimizer(0.125), 4, reduce="sum"), 8, 4)
    whole = trained(KINDS["sgd"], 32, 1)

    assert np.allclose(parts["linear/W"], whole["linear/W"], atol=1e-6)


def test_nothing_changes_between_updates() -> None:
    values = trained(lambda: AccumGradOptimizer(KINDS["adam"](), 4), 8, 3)
    assert not values["linear/W"].any()
    assert values["AccumGrad/counter"] == 3
    assert values["linear/W/AccumGrad"].any()
    same = trained(lambda: AccumGradOptimizer(KINDS["sgd"](), 1), 8, 3)
    assert np.array_equal(same["linear/W"], trained(KINDS["sgd"], 8, 3)["linear/W"])
    with pytest.raises(ConfigurationError, match="niter"):
        AccumGradOptimizer(KINDS["sgd"](), 0)


def test_rows_of_embeddings_are_accumulated() -> None:
    def table(x: Any, label: Any) -> Any:
        rows = tf.get_variable("table", [3, 2], initializer=tf.ones_initializer())
        return tf.reduce_mean(tf.square(tf.gather(rows, label)), name="cost")

    parts = trained(lambda: AccumGradOptimizer(KINDS["sgd"](), 4), 8, 4, get_cost=table)
    assert np.allclose(parts["table"], trained(KINDS["sgd"], 32, 1, get_cost=table)["table"], atol=1e-6)


def test_resume_between_updates_is_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "_folder", None)

    class Stops(Callback):
        def _trigger_step(self) -> None:
            if self.global_step == 6:
                self.trainer.request_stop()

    optimizer = lambda: AccumGradOptimizer(KINDS["adam"](), 4)  # noqa: E731
    whole = variables(train([], epochs=1, steps=16, get_optimizer=optimizer))
    train([Stops(), ModelSaver()], folder=tmp_path, epochs=1, steps=16, get_optimizer=optimizer)
    state = newest_run_state(tmp_path)
    assert state is not None
    assert state.arrays["AccumGrad/counter"] == 2
    parts = variables(train([ModelSaver()], folder=tmp_path, epochs=1, steps=16, get_optimizer=optimizer, state=state))

    for name, array in whole.items():
        assert array.tobytes() == parts[name].tobytes(), name


def test_values_are_assigned_behind_the_update() -> None:
    clip = lambda variable: tf.clip_by_value(variable, -0.01, 0.01) if variable.op.name == "linear/W" else None  # noqa: E731
    values = trained(lambda: VariableAssignmentOptimizer(KINDS["sgd"](), clip), 8, 1)
    free = trained(KINDS["sgd"], 8, 1)

    assert np.allclose(values["linear/W"], np.clip(free["linear/W"], -0.01, 0.01))
    assert np.array_equal(values["linear/b"], free["linear/b"])


def test_operations_run_behind_the_update() -> None:
    def noting(variable: Any) -> Any:
        copy = tf.get_variable(f"{variable.op.name}/copy", variable.shape, trainable=False)
        return copy.assign(variable)

    values = trained(lambda: PostProcessOptimizer(KINDS["sgd"](), noting, colocate=False), 8, 2)
    assert np.array_equal(values["linear/W/copy"], values["linear/W"])
    assert values["linear/W"].any()


def test_moving_averages_of_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "_folder", None)
    seen: list[np.ndarray] = []

    class Notes(Callback):
        def _trigger_step(self) -> None:
            seen.append(self.trainer.sess.run("linear/W/Read/ReadVariableOp:0"))

    first = np.ones((4, 3), np.float32)
    callbacks = [ModelSaver(), MovingAverageWeights(0.75), Notes()]
    start = DictRestore({"linear/W": first})
    values = variables(train(callbacks, folder=tmp_path, epochs=1, steps=5, session_init=start))

    expected = first.astype(np.float64)
    for step, weights in enumerate(seen):
        decay = min(0.75, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * weights
    assert np.allclose(values["ziggurat/averages/linear/W"], expected, atol=1e-6)
    for place in (tmp_path / "checkpoints", tmp_path / "model-5"):
        assert np.allclose(load_checkpoint_vars(str(place))["linear/W"], expected, atol=1e-6)
    with pytest.raises(ConfigurationError, match="decay"):
        MovingAverageWeights(1.0)


def test_moving_averages_resume_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "_folder", None)
    callbacks = lambda: [MovingAverageWeights(0.9), ModelSaver()]  # noqa: E731
    whole = variables(train(callbacks(), folder=tmp_path / "whole", epochs=2))
    train(callbacks(), folder=tmp_path / "parts", epochs=1)
    state = newest_run_state(tmp_path / "parts")
    parts = variables(train(callbacks(), folder=tmp_path / "parts", epochs=2, state=state))

    assert all(array.tobytes() == parts[name].tobytes() for name, array in whole.items())


def test_proxies_show_what_is_inside() -> None:
    with tf.Graph().as_default():
        variable = tf.get_variable("v", [2])
        proxy = ProxyOptimizer(KINDS["momentum"]())
        proxy.minimize(tf.reduce_sum(variable))
        assert proxy.get_slot_names() == ["momentum"]
        assert proxy.get_slot(variable, "momentum").op.name == "v/Momentum"
        assert [each.op.name for each in proxy.variables()] == ["v/Momentum"]
    with pytest.raises(ConfigurationError, match="Optimizer"):
        ProxyOptimizer(0.1)
