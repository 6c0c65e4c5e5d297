"""Default arguments of layers: who wins, and that they end with their block."""

import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.argument_scopes import (
    argscope,
    enable_argscope_for_function,
    enable_argscope_for_module,
    get_arg_scope,
)
from ziggurat.tf.models import Conv2D, Dropout, FullyConnected, MaxPooling
from ziggurat.tf.shape_log import ShapeLog, disable_layer_logging, shape_text
from ziggurat.tf.tower import TowerContext


@pytest.fixture(autouse=True)
def image() -> Iterator[Any]:
    with tf.Graph().as_default():
        yield tf.ones([2, 8, 8, 3])


def test_tutorial_29_argscope_gives_default_arguments(image: Any) -> None:
    with argscope(Conv2D, filters=32, kernel_size=3, activation=tf.nn.relu):
        layer = Conv2D("conv0", image)
        with argscope([Conv2D, FullyConnected], activation=tf.identity):
            inner = Conv2D("conv1", image, kernel_size=5)
        outer = Conv2D("conv2", image, 16, padding="valid")
    assert layer.variables.W.shape == (3, 3, 3, 32)
    assert layer.op.inputs[0].op.type == "Relu"
    assert inner.variables.W.shape == (5, 5, 3, 32)
    assert inner.op.inputs[0].op.type == "Identity"
    assert outer.shape == (2, 6, 6, 16)
    assert outer.op.inputs[0].op.type == "Relu"


def test_scope_keyword_position_the_later_wins(image: Any) -> None:
    with argscope(MaxPooling, pool_size=8, strides=8):
        assert MaxPooling("scope", image).shape[1] == 1
        assert MaxPooling("keyword", image, pool_size=4, strides=4).shape[1] == 2
        assert MaxPooling("position", image, 2, 2).shape[1] == 4
    with argscope(Dropout, rate=0.0), TowerContext("", is_training=True), pytest.warns(UserWarning, match="keep"):
        assert Dropout(image, 0.25).op.type != "Identity"


def test_older_and_newer_names_are_one_argument(image: Any) -> None:
    with argscope(Conv2D, kernel_shape=3, nl=tf.nn.relu, out_channel=4):
        layer = Conv2D("conv", image, kernel_size=5, activation=tf.tanh)
    assert layer.variables.W.shape == (5, 5, 3, 4)
    assert layer.op.inputs[0].op.type == "Tanh"


def test_an_exception_ends_the_scope(image: Any) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), argscope(Conv2D, filters=3), argscope(Conv2D, kernel_size=3):
            assert get_arg_scope() == {"Conv2D": {"filters": 3, "kernel_size": 3}}
            _ = 1 / 0
    assert get_arg_scope() == {}
    with pytest.raises(TypeError, match="filters"):
        Conv2D("conv", image)


def test_what_get_arg_scope_returns_is_a_copy() -> None:
    with argscope(Conv2D, filters=3):
        get_arg_scope()["Conv2D"]["filters"] = 4
        assert get_arg_scope() == {"Conv2D": {"filters": 3}}


def test_threads_have_scopes_of_their_own() -> None:
    found: list[Any] = []
    with argscope(Conv2D, filters=3):
        thread = threading.Thread(target=lambda: found.append(get_arg_scope()))
        thread.start()
        thread.join()
    assert found == [{}]


def test_argscope_is_for_layers() -> None:
    with pytest.raises(ConfigurationError, match=r"`argscope` is for layers \(received: relu"), argscope(tf.nn.relu):
        pass


def test_argscope_for_any_function(image: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="ziggurat.program")

    def shifted(x: Any, by: float = 0.0, name: str | None = None) -> Any:
        return tf.add(x, by, name=name)

    enabled = enable_argscope_for_function(shifted)
    assert enable_argscope_for_function(enabled) is enabled
    with argscope(enabled, by=2.0):
        out = enabled(image, name="shift")
    with tf.Session() as session:
        assert session.run(out).min() == 3
    assert caplog.messages == ["shift input: [2, 8, 8, 3]", "shift output: [2, 8, 8, 3]"]


def test_argscope_for_a_module(image: Any) -> None:
    module: Any = ModuleType("library")

    def added(x: Any, by: float) -> Any:
        return x + by

    module.added = added
    enable_argscope_for_module(module, log_shape=False)
    with argscope(module.added, by=1.0):
        assert module.added(image).shape == (2, 8, 8, 3)


def test_shapes_as_text_and_without_log(image: Any, caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    caplog.set_level("INFO", logger="ziggurat.program")
    assert shape_text({"a": image, "b": [tf.placeholder(tf.float32), 3]}) == "a: [2, 8, 8, 3], b: unknown, unknown"
    monkeypatch.setattr("ziggurat.tf.shape_log._is_enabled", True)
    disable_layer_logging()
    ShapeLog("conv").inputs(image)
    assert not caplog.messages
