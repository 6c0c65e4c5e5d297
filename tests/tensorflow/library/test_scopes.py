"""Scopes, collections, replaced variables, and small functions of tensors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf.models import BatchNorm, Conv2D, FullyConnected
from ziggurat.tf.scopes import (
    auto_reuse_variable_scope,
    backup_collection,
    cached_name_scope,
    freeze_collection,
    make_global_step,
    restore_collection,
    under_name_scope,
)
from ziggurat.tf.symbolic import (
    accuracy,
    batch_flatten,
    flatten,
    get_scalar_var,
    huber_loss,
    prediction_incorrect,
    print_stat,
    psnr,
    rms,
)
from ziggurat.tf.tower import TowerContext
from ziggurat.tf.varreplace import custom_getter_scope, freeze_variables, remap_variables


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


def run(*fetches: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(fetches))


def names(variables: list[Any]) -> list[str]:
    return [each.op.name for each in variables]


def test_variables_are_reused_by_scope_and_graph() -> None:
    @auto_reuse_variable_scope
    def generator(x: Any) -> Any:
        return FullyConnected("fc", x, 2)

    for _ in range(2):
        with tf.Graph().as_default():
            for scope in ("gen", "gen", "other"):
                with tf.variable_scope(scope):
                    generator(tf.ones([1, 3]))
            assert names(tf.trainable_variables()) == ["gen/fc/W", "gen/fc/b", "other/fc/W", "other/fc/b"]


def test_name_scopes_of_functions_and_blocks() -> None:
    @under_name_scope()
    def doubled(x: Any) -> Any:
        return tf.multiply(x, 2, name="out")

    @under_name_scope("elsewhere")
    def tripled(x: Any) -> Any:
        return tf.multiply(x, 3, name="out")

    with tf.name_scope("outer"):
        assert doubled(tf.ones([])).op.name == "outer/doubled/out"
        assert tripled(tf.ones([])).op.name == "outer/elsewhere/out"
        for number in ("", "_1"):
            with cached_name_scope("same"):
                assert tf.ones([], name="x").op.name == f"same/x{number}"
            with cached_name_scope("same", top_level=False):
                assert tf.ones([], name="x").op.name == f"outer/same/x{number}"


def test_collections_are_put_back() -> None:
    tf.add_to_collection("a", 1)
    backup = backup_collection(["a", "b"])
    assert backup == {"a": [1], "b": []}
    with pytest.raises(ZeroDivisionError), freeze_collection(["a"]):
        tf.add_to_collection("a", 2)
        _ = 1 / 0
    assert tf.get_collection("a") == [1]
    for key in ("a", "b"):
        tf.add_to_collection(key, 3)
    restore_collection(backup)
    assert backup_collection() == {"a": [1], "b": []}


def test_the_step_counter_is_at_the_root() -> None:
    with tf.variable_scope("deep"):
        step = make_global_step()
    assert step.op.name == "global_step"
    assert make_global_step() is tf.train.get_or_create_global_step() is step


def test_custom_getters_end_with_their_block() -> None:
    def renamed(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return getter(f"{name}_renamed", *args, **kwargs)

    with tf.variable_scope("scope"):
        with custom_getter_scope(renamed):
            assert tf.get_variable("a", []).op.name == "scope/a_renamed"
            assert tf.ones([], name="one").op.name == "scope/one"
        assert tf.get_variable("a", []).op.name == "scope/a"


def test_remapped_variables_leave_running_averages() -> None:
    with TowerContext("", is_training=True), remap_variables(tf.round):
        out = Conv2D("conv", tf.ones([2, 4, 4, 1]), 3, 3, kernel_initializer=tf.constant_initializer(0.7))
        BatchNorm("bn", out)
    assert run(out)[0].max() == 9
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
    assert names(tf.trainable_variables()) == ["conv/W", "conv/b", "bn/gamma", "bn/beta"]


@pytest.mark.parametrize("skip_collection", [True, False])
@pytest.mark.parametrize("stop_gradient", [True, False])
def test_frozen_variables(skip_collection: bool, stop_gradient: bool) -> None:
    for reuse in (None, True):
        with tf.variable_scope("", reuse=reuse), freeze_variables(stop_gradient, skip_collection):
            out = FullyConnected("fc", tf.ones([1, 2]), 2)
    made = tf.global_variables()
    assert names(made) == ["fc/W", "fc/b"]
    assert names(tf.trainable_variables()) == ([] if skip_collection else ["fc/W", "fc/b"])
    assert names(tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)) == (["fc/W", "fc/b"] if skip_collection else [])
    assert (tf.gradients(out, made[0]) == [None]) == stop_gradient


def test_numbers_of_tensors() -> None:
    x = tf.constant([[3.0, -4.0], [0.0, 0.5]], name="x")
    found = rms(x), flatten(x), huber_loss(x, 1.0), batch_flatten(tf.ones([2, 3, 4])), psnr(x, x + 0.1)
    assert found[0].op.name == "x/rms"
    root, flat, huber, rows, decibels = run(*found)
    assert root == pytest.approx(np.sqrt((9 + 16 + 0.25) / 4))
    assert flat.tolist() == [3, -4, 0, 0.5]
    assert huber.tolist() == [[2.5, 3.5], [0, 0.125]]
    assert rows.shape == (2, 12)
    assert decibels == pytest.approx(20, abs=1e-3)
    logits, labels = tf.constant([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]), tf.constant([1, 0])
    wrong, wrong2, right = run(
        prediction_incorrect(logits, labels), prediction_incorrect(logits, labels, 2), accuracy(logits, labels)
    )
    assert (wrong.tolist(), wrong2.tolist(), float(right)) == ([1, 0], [0, 0], 0.5)


def test_print_stat_prints_and_returns(capfd: pytest.CaptureFixture[str]) -> None:
    (value,) = run(print_stat(tf.constant([1.0, 3.0], name="inner/x"), "activations"))
    assert value.tolist() == [1, 3]
    assert capfd.readouterr().err.split() == ["activations", "[2]", "2", "2.23606801"]


def test_a_variable_of_one_number() -> None:
    rate = get_scalar_var("rate", 1, summary=True)
    assert rate.dtype.base_dtype == tf.float32
    assert rate not in tf.trainable_variables()
    assert tf.get_collection(tf.GraphKeys.SUMMARIES)[0].op.name == "rate-summary"
