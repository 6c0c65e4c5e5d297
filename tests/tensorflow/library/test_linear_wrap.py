"""Chains of layers, by the tutorial's example."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.argument_scopes import argscope
from ziggurat.tf.linear_wrap import LinearWrap
from ziggurat.tf.models import Conv2D, Dropout, FullyConnected, MaxPooling, layer_register
from ziggurat.tf.tower import TowerContext

CHAIN = """
with argscope(Conv2D, filters=32, kernel_size=3, activation=tf.nn.relu):
    l = (LinearWrap(image) # the starting brace is only for line-breaking
         .Conv2D('conv0')
         .MaxPooling('pool0', 2)
         .Conv2D('conv1', padding='SAME')
         .Conv2D('conv2', kernel_size=5)
         .FullyConnected('fc0', 512, activation=tf.nn.relu)
         .Dropout('dropout', rate=0.5)
         .tf.multiply(0.5)
         .apply(func, *args, **kwargs)
         .FullyConnected('fc1', units=10, activation=tf.identity)())
"""
CALLS = """
l = Conv2D('conv0', image, 32, 3, activation=tf.nn.relu)
l = MaxPooling('pool0', l, 2)
l = Conv2D('conv1', l, 32, 3, padding='SAME', activation=tf.nn.relu)
l = Conv2D('conv2', l, 32, 5, activation=tf.nn.relu)
l = FullyConnected('fc0', l, 512, activation=tf.nn.relu)
l = Dropout('dropout', l, rate=0.5)
l = tf.multiply(l, 0.5)
l = func(l, *args, **kwargs)
l = FullyConnected('fc1', l, 10, activation=tf.identity)
"""
NAMES = {
    "argscope": argscope,
    "Conv2D": Conv2D,
    "Dropout": Dropout,
    "FullyConnected": FullyConnected,
    "LinearWrap": LinearWrap,
    "MaxPooling": MaxPooling,
    "tf": tf,
    "func": lambda x, power, plus: x**power + plus,
    "args": (2,),
    "kwargs": {"plus": 0.1},
}


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


def built(code: str, training: bool) -> tuple[np.ndarray, dict[str, np.ndarray], list[np.ndarray]]:
    with tf.Graph().as_default() as graph, tf.Session(graph=graph) as session:
        tf.set_random_seed(5)
        image = tf.constant(np.random.RandomState(0).randn(2, 12, 12, 1).astype(np.float32))
        names: dict[str, Any] = {**NAMES, "image": image}
        with TowerContext("", is_training=training):
            exec(code, names)
        variables = tf.trainable_variables()
        for number, each in enumerate(variables):
            session.run(each.initializer)
            value = np.random.RandomState(number).randn(*each.shape.as_list()) / 8
            each.load(value, session)
        session.run([each.initializer for each in tf.global_variables() if each not in variables])
        found = dict(zip([each.op.name for each in variables], session.run(variables)))
        return session.run(names["l"]), found, session.run(tf.gradients(names["l"], variables))


@pytest.mark.parametrize("training", [True, False])
def test_tutorial_30_the_chain_equals_the_nine_calls(training: bool) -> None:
    chain, chain_variables, chain_gradients = built(CHAIN, training)
    calls, variables, gradients = built(CALLS, training)
    assert chain.shape == (2, 10)
    assert list(chain_variables) == list(variables)
    assert list(variables)[:2] == ["conv0/W", "conv0/b"]
    assert chain.tobytes() == calls.tobytes()
    assert [each.tobytes() for each in chain_gradients] == [each.tobytes() for each in gradients]


def test_functions_of_tensorflow_and_others(capsys: pytest.CaptureFixture[str]) -> None:
    chain = LinearWrap(tf.constant([[-1.0, 2.0]])).tf.nn.relu().apply2(tf.subtract, 5.0).print_tensor()
    with tf.Session() as session:
        assert session.run(chain()).tolist() == [[5, 3]]
    assert chain.tensor() is chain()
    assert capsys.readouterr().out.startswith('Tensor("Sub:0", shape=(1, 2)')


def test_layers_of_ones_own_are_links() -> None:
    @layer_register(use_scope=None)
    def Squared(x: Any) -> Any:
        return x * x

    @layer_register(use_scope=False)
    def Plus(x: Any, more: float) -> Any:
        return x + more

    out = LinearWrap(tf.constant([3.0])).Squared().Squared("again").Plus(1.0)()
    with tf.Session() as session:
        assert session.run(out) == 82
    assert LinearWrap(tf.ones([1, 2, 2, 3])).Deconv2D("up", 2, 3, 2)().shape == (1, 4, 4, 2)


def test_a_name_that_is_no_layer() -> None:
    with pytest.raises(AttributeError, match=r"`Konv2D` is no layer: .*\.apply\(Konv2D"):
        LinearWrap(tf.ones([1])).Konv2D("conv")
    with pytest.raises(AttributeError):
        _ = LinearWrap(tf.ones([1])).__wrapped__


def test_two_layers_of_one_name_are_an_error_on_use() -> None:
    def first() -> Any:
        @layer_register()
        def Twice(x: Any) -> Any:
            return x

        return Twice

    def second() -> Any:
        @layer_register()
        def Twice(x: Any) -> Any:
            return x

        return Twice

    first()
    first()  # read again: the same layer
    assert LinearWrap(tf.ones([1])).Twice("fine")() is not None
    second()
    with pytest.raises(ConfigurationError, match=r"Several layers are registered as `Twice`.*first.*second"):
        LinearWrap(tf.ones([1])).Twice("conflict")
    with pytest.raises(ConfigurationError, match="functions of TensorFlow"):
        layer_register()(type("tf", (), {"__call__": lambda self: None}))
