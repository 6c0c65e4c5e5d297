"""Costs of variables: by name, and from the collection of regularization losses."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf.models import (
    FullyConnected,
    l1_regularizer,
    l2_regularizer,
    regularize_cost,
    regularize_cost_from_collection,
)
from ziggurat.tf.tower import TowerContext, TrainTowerContext


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


def variable(name: str, *values: float) -> Any:
    return tf.get_variable(name, initializer=tf.constant(values))


def run(*fetches: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches))


def test_regularize_cost_sums_over_matching_names() -> None:
    with TowerContext("", is_training=True):
        variable("fc0/W", 1.0, -2.0)
        variable("fc1/W", 3.0)
        variable("fc1/b", 100.0)
        cost = regularize_cost("fc.*/W", l2_regularizer(0.1))
        both = regularize_cost("W", l1_regularizer(2.0), name="l1")
        none = regularize_cost("conv", l2_regularizer(0.1))
    assert cost.op.name == "regularize_cost"
    np.testing.assert_allclose(run(cost, both, none), [0.1 * (1 + 4 + 9) / 2, 2 * 6, 0], rtol=1e-6)


def test_a_tower_that_predicts_has_no_such_cost() -> None:
    with TowerContext("", is_training=False):
        variable("W", 3.0)
        costs = [regularize_cost("W", l2_regularizer(1.0)), regularize_cost_from_collection()]
    assert run(*costs) == [0, 0]


def test_shared_variables_count_in_every_tower() -> None:
    costs = []
    for index in (0, 1):
        with TrainTowerContext(f"tower{index}", index=index, total=2):
            variable("W", 2.0)
            costs.append(regularize_cost("W", l2_regularizer(1.0)))
    assert run(*costs) == [2, 2]


def test_own_variables_count_in_their_tower() -> None:
    costs = []
    for index, value in ((0, 2.0), (1, 4.0)):
        with TrainTowerContext(f"tower{index}", vs_name="" if index == 0 else f"tower{index}", index=index, total=2):
            variable("W", value)
            costs.append(regularize_cost(".*W", l2_regularizer(1.0)))
    assert run(*costs) == [2, 8]


def test_losses_of_the_collection_are_summed() -> None:
    with TowerContext("", is_training=True):
        FullyConnected(
            "fc", tf.ones([1, 2]), 2, kernel_initializer=tf.ones_initializer(), kernel_regularizer=l2_regularizer(0.5)
        )
        tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(3.0))
        cost = regularize_cost_from_collection()
    assert run(cost) == [0.5 * 4 / 2 + 3]
    assert run(tf.gradients(cost, tf.trainable_variables())[0])[0].tolist() == [[0.5, 0.5], [0.5, 0.5]]
