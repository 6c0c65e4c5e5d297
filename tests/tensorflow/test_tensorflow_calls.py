"""Prepared calls: what they take, what they give, and what a wrong batch is told."""

from collections.abc import Sequence

import numpy as np
import pytest
from tensorflow_networks import SMALL, batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.calls import prepared_call
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.errors import ConfigurationError


def built() -> TensorFlowProgram:
    request = ProgramRequest(
        network="mine.py", network_text=SMALL, **class_arrays((8, 8, 1), 10), batch_size=32, learning_rate=0.05
    )
    return TensorFlowBackend().build(request)


def test_prepared_call_equals_session_run() -> None:
    graph = tf.Graph()
    with graph.as_default():
        x, y = tf.placeholder(tf.float32, (None, 2)), tf.placeholder(tf.int64, ())
        total = tf.get_variable("total", (), tf.int64, tf.zeros_initializer(), use_resource=True)
        word, add = tf.constant(b"word"), total.assign_add(y, read_value=False)
        double = 2 * x
        fetches = [double, x, word, double, y]
    with tf.Session(graph=graph) as session:
        session.run(total.initializer)
        arrays = [np.arange(8, dtype=np.float32).reshape(2, 4).T[:, ::-1], np.int64(3)]
        values = prepared_call(session, [x, y], fetches, [add])(*arrays)
        expected = session.run(fetches, {x: arrays[0], y: arrays[1]})
        assert session.run(total) == 3
    assert values[2] == b"word"
    for value, other in zip(values, expected, strict=True):
        np.testing.assert_array_equal(value, other)


def test_step_takes_other_dtypes_and_layouts() -> None:
    x, y = batches(1, 32)[0]
    costs = []
    for batch in ([x, y], [x.astype(np.float64), y.astype(np.int32)], [np.asfortranarray(x), list(y)]):
        program = built()
        costs.append(program.step(batch, ("cost",))["cost"])
        program.close()
    assert costs[0] == costs[1] == costs[2]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([np.zeros((4, 9, 9, 1)), np.zeros(4, int)], r"A sample .* shape \(8, 8, 1\) \(received: \(9, 9, 1\)\)\. Give"),
        ([np.zeros((4, 8, 8)), np.zeros(4, int)], r"A sample .* shape \(8, 8, 1\) \(received: \(8, 8\)\)\. Give"),
        ([np.zeros((4, 8, 8, 1)), np.zeros((4, 1), int)], r"A label .* shape \(\) \(received: \(1,\)\)\. Give"),
        ([np.zeros((4, 8, 8, 1)), 3], r"A label .* shape \(\) \(received: a single number, without an axis of rows"),
        ([np.zeros((4, 8, 8, 1)), ["a"] * 4], r"A label .* of type int64 \(received: list of mixed values"),
        ([np.zeros((4, 8, 8, 1))], r"The batch has 1 component\(s\); this network takes samples and labels"),
    ],
)
def test_wrong_batch_is_told_what_it_must_be(batch: Sequence[object], message: str) -> None:
    program = built()
    with pytest.raises(ConfigurationError, match=message):
        program.step(batch, ())
    program.close()
