"""Networks as they were published for TensorFlow 1 and before it, and in Python 2, build and train a step."""

from typing import Any

import numpy as np
import pytest
from tensorflow_networks import SMALL

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend, build_job_graph
from ziggurat.backends.tensorflow.namespace.tensorflow import user_tensorflow
from ziggurat.backends.tensorflow.network_file import load_network
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.errors import NetworkCodeError

READY = """
{line}
class UserModel(Tower):
    @model_property
    def inference(self):
        {body}
        return tf.reshape(net, [-1, self.nclasses])

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""
RESNET = """with slim.arg_scope(resnet_v1.resnet_arg_scope(is_training=self.is_training)):
            blocks = [resnet_v1.resnet_v1_block('block1', base_depth=2, num_units=2, stride=2)]
            net, _ = resnet_v1.resnet_v1(self.x, blocks, self.nclasses)"""
INCEPTION = """with slim.arg_scope(inception.inception_v2_arg_scope()):
            net, _ = inception.inception_v2(self.x, self.nclasses, self.is_training, depth_multiplier=0.1)"""
VGG = """with slim.arg_scope(vgg.vgg_arg_scope()):
            net, _ = vgg.vgg_a(self.x, self.nclasses, self.is_training)"""

PYTHON_2 = """
import itertools

class UserModel(Tower):
    @model_property
    def inference(self):
\tprint "building", self.nclasses,
        sizes = {"first": 9, "second": unicode("7")}
        for name, size in sizes.iteritems():
            print name, size
        if not sizes.has_key("third"):
            print ("%d classes") % self.nclasses
        try:
            sizes["third"]
        except KeyError, error:
            print "no", error
        for each, other in itertools.izip(xrange(2), map(int, "12")):
            print each, other
        net = slim.fully_connected(slim.flatten(self.x), sizes["first"] / 2)
        return slim.fully_connected(net, (range(self.nclasses) + [3])[-1] + 7 / 2 - 1)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


def request_of(text: str, shape: tuple[int, ...] = (8, 8, 1)) -> ProgramRequest:
    return ProgramRequest(
        network="net.py", network_text=text, **class_arrays(shape, 5), batch_size=2, learning_rate=1e-4
    )


def trained_a_step(text: str, shape: tuple[int, ...] = (8, 8, 1)) -> np.ndarray:
    """Train a step on two samples; return the outputs for one sample of ones."""
    program = TensorFlowBackend().build(request_of(text, shape))
    x = np.linspace(0, 1, 2 * int(np.prod(shape)), dtype=np.float32).reshape(2, *shape)
    assert np.isfinite(program.step([x, np.array([1, 3])], ["cost"])["cost"])
    (output,) = program.predict(np.ones((1, *shape), np.float32))
    program.close()
    return output


def value_of(expression: str) -> Any:
    """Return what an expression gives that stands in a network file."""
    tf = user_tensorflow()
    with tf.Graph().as_default(), tf.Session() as session:
        names = {"__name__": "network", "tf": tf, "a": tf.constant([[1.0, 2.0]]), "b": tf.constant([[3.0, 4.0]])}
        return session.run(eval(compile(expression, "net.py", "eval"), names))


def refusal_of(text: str) -> str:
    with pytest.raises(NetworkCodeError) as caught:
        load_network(text, "net.py")
    return str(caught.value)


# ---- ready networks of slim


@pytest.mark.parametrize(
    "line",
    [
        "from tensorflow.contrib.slim.python.slim.nets import alexnet, inception, overfeat, resnet_v1, resnet_v2, vgg",
        "from tensorflow.contrib.slim.nets import inception, resnet_v1, resnet_v2, vgg",
        "from tensorflow.contrib.slim import nets; nets.vgg.vgg_16, slim.nets.resnet_v2.resnet_v2_50",
        "from tf_slim.nets import inception_v1, inception_v3, resnet_utils",
        "import tf_slim.nets.resnet_v1 as resnet; resnet.resnet_v1_101",
        "from tensorflow.contrib.layers.python.layers import initializers, layers, regularizers, utils",
        "from tensorflow.contrib.framework.python.ops import add_arg_scope, arg_scope, variables",
        "from tensorflow.contrib.rnn.python.ops import core_rnn_cell; core_rnn_cell.BasicLSTMCell",
        "from tensorflow.python import Tensor, keras",
        "from tensorflow.python.keras.utils import normalize",
        "from tensorflow.python.keras.layers import Conv2D; import tf_keras; assert Conv2D is tf_keras.layers.Conv2D",
        "from tensorflow.python.ops import array_ops, rnn, rnn_cell; rnn.rnn, rnn_cell.BasicLSTMCell, array_ops.stack",
        "import tensorflow.python.ops.nn_ops, tensorflow; tensorflow.contrib.slim, tensorflow.python.ops.nn_ops.conv2d",
        "from itertools import izip, chain",
    ],
)
def test_the_imports_of_published_networks_work(line: str) -> None:
    assert load_network(f"{line}\n{SMALL}", "net.py").__name__ == "UserModel"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "body"), [("resnet_v1", RESNET), ("inception", INCEPTION)])
def test_a_ready_network_trains_a_step(name: str, body: str) -> None:
    line = f"from tensorflow.contrib.slim.python.slim.nets import {name}"
    assert trained_a_step(READY.format(line=line, body=body), (32, 32, 3)).shape == (1, 5)


def test_vgg_is_built_and_its_dropout_resumes() -> None:
    line = "from tensorflow.contrib.slim.nets import vgg"
    built = build_job_graph(request_of(READY.format(line=line, body=VGG), (224, 224, 3)))
    kinds = {operation.type for operation in built.graph.get_operations() if "dropout" in operation.name}
    assert "StatelessRandomUniformV2" in kinds
    assert "RandomUniform" not in kinds


# ---- TensorFlow before 1.0


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("tf.concat(1, [a, b])", "tf.concat([a, b], 1)"),
        ("tf.concat(0, values=[a, b])", "tf.concat([a, b], 0)"),
        ("tf.concat(concat_dim=0, values=[a, b])", "tf.concat([a, b], 0)"),
        ("tf.split(1, 2, a)[1]", "tf.split(a, 2, 1)[1]"),
        ("tf.split(split_dim=1, num_split=2, value=a)[0]", "tf.split(a, 2, 1)[0]"),
        ("tf.histogram_fixed_width(a, [0.0, 4.0], 4, tf.float32)", "tf.constant([0.0, 1.0, 1.0, 0.0])"),
        ("tf.histogram_fixed_width(a, [0.0, 4.0], nbins=2)", "tf.constant([1, 1])"),
        (
            "tf.nn.softmax_cross_entropy_with_logits(a, b)",
            "tf.nn.softmax_cross_entropy_with_logits(logits=a, labels=b)",
        ),
        (
            "tf.nn.sigmoid_cross_entropy_with_logits(a, targets=b)",
            "tf.nn.sigmoid_cross_entropy_with_logits(logits=a, labels=b)",
        ),
        (
            "tf.nn.sparse_softmax_cross_entropy_with_logits(a, [1], 'named')",
            "tf.nn.sparse_softmax_cross_entropy_with_logits(logits=a, labels=[1])",
        ),
        ("tf.batch_matmul(a, b, adj_y=True)", "tf.matmul(a, b, transpose_b=True)"),
        ("tf.image.resize_images(tf.ones([1, 2, 2, 1]), 3, 4)", "tf.ones([1, 3, 4, 1])"),
        ("tf.select(a > b, a, tf.sub(tf.neg(b), tf.inv(tf.mul(a, b))))", "tf.where(a > b, a, -b - 1 / (a * b))"),
        ("tf.reduce_sum(a, reduction_indices=[1], keep_dims=True)", "tf.constant([[3.0]])"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_older_form_computes_the_same(older: str, newer: str) -> None:
    left, right = value_of(older), value_of(newer)
    assert left.dtype == right.dtype
    assert left == pytest.approx(right)


def test_a_swap_is_told_once_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    text = SMALL.replace(
        "net = slim.flatten(net)", "net = tf.concat(3, [net, net])\n            net = slim.flatten(net)"
    )
    trained_a_step(text)
    said = [message for message in caplog.messages if "tf.concat" in message]
    assert said == [
        "net.py, line 9: `tf.concat(axis, values)` has the order of before TensorFlow 1.0; "
        "it is read as (values, axis)."
    ]


def test_todays_order_needs_no_notice(caplog: pytest.LogCaptureFixture) -> None:
    value_of(
        "tf.concat([a, b], 1) + tf.concat(values=[a, b], axis=tf.constant(1)) + tf.split(tf.concat([a, b], 1), 1, 1)[0]"
    )
    assert caplog.messages == []


# ---- Python 2


def test_a_network_in_python_2_trains_with_notices(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture
) -> None:
    assert trained_a_step(PYTHON_2).shape == (1, 5)
    assert caplog.messages == [
        "net.py, line 1: Tabs are read as Python 2 did: up to the next eighth column.",
        "net.py, line 7: `print x` is Python 2; it is read as `print(x)`.",
        "net.py, line 8: `unicode` is Python 2; `str` stands for it.",
        "net.py, line 9: `.iteritems()` is Python 2; a dictionary does without it today.",
        "net.py, line 11: `.has_key()` is Python 2; a dictionary does without it today.",
        "net.py, line 15: `except Error, name` is Python 2; it is read as `except Error as name`.",
        "net.py, line 17: `xrange` is Python 2; `range` stands for it.",
        "net.py, line 19: Python 2 divided whole numbers without a remainder, and so it is done here; "
        "write `//` to say so.",
    ]
    printed = capsys.readouterr().out
    assert printed.startswith("building 5 first 9\nsecond 7\n5 classes\nno 'third'\n0 1\n1 2\n")


@pytest.mark.parametrize(
    "text",
    [
        "assert 7 / 2 == 3.5 and not isinstance(range(3), list)",
        "from six.moves import xrange\nassert [x for x in xrange(7)][-1] / 4 == 1.5",
        "try:\n    unicode = unicode\nexcept NameError:\n    unicode = str\nassert 1 / 2 == 0.5",
        "print (3)\nprint(4, 5)\nassert {1: 2}.items()",
    ],
)
def test_a_network_in_python_3_is_left_as_it_is(text: str, caplog: pytest.LogCaptureFixture) -> None:
    load_network(f"{text}\n{SMALL}", "net.py")
    assert caplog.messages == []


def test_division_of_tomorrow_stays_that_of_python_3() -> None:
    load_network(f"from __future__ import division\nassert [7 / 2 for each in xrange(1)] == [3.5]\n{SMALL}", "net.py")


def test_a_wrong_line_is_named_in_python_2_too() -> None:
    refused = refusal_of("print 'fine'\nx = = 2\n")
    assert "SyntaxError: invalid syntax" in refused
    assert "net.py, line 2, `x = = 2`: SyntaxError: " in refused


# ---- refusals that know more


def test_a_build_model_is_mapped_to_user_model() -> None:
    refused = refusal_of("def build_model(params):\n    return {'model': params['x'], 'loss': lambda y: y}\n")
    assert refused.startswith(
        "net.py defines no class `UserModel`, but a function `build_model`. The file is for DIGITS before its release"
    )
    for part in ("`@model_property def inference(self):`", "`self.y` for `y`", "`params['x']` is `self.x`"):
        assert part in refused


def test_tensorpack_is_refused_with_what_to_use() -> None:
    refused = refusal_of("import os\nfrom tensorpack.models import Conv2D\n")
    assert "net.py, line 2" in refused
    assert "`import tensorpack` is not for a network file." in refused
    assert "slim or `tf.layers`" in refused


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("from models import model", "models"),
        ("import nets_of_mine.vgg", "nets_of_mine.vgg"),
        ("from .ops import *", ".ops"),
    ],
)
def test_a_file_of_a_repository_says_what_is_missing(line: str, module: str) -> None:
    refused = refusal_of(f"import math\n{line}\n")
    assert f"There is no module `{module}`. A network file stands alone" in refused
    assert "Copy what it uses of that module into the network file" in refused
    assert "net.py, line 2" in refused


def test_an_error_within_a_known_package_stays_what_it_is() -> None:
    assert "cannot import name 'cosinus' from 'math'" in refusal_of("from math import cosinus\n")
