"""A user's network file sees the names of the guides, and its errors name its own lines."""

import pytest
from tensorflow_networks import SMALL

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.namespace.repairs import lost_names
from ziggurat.backends.tensorflow.namespace.tensorflow import user_slim, user_tensorflow
from ziggurat.backends.tensorflow.network_file import load_network
from ziggurat.backends.tensorflow.tower import Tower, model_property
from ziggurat.errors import NetworkCodeError

IMPORTS = """
from model import Tower
from utils import model_property
import tensorflow as tf
import tensorflow.contrib.slim as slim
import utils as digits
"""

TENSORFLOW_NAMES = """
Session Variable add concat constant constant_initializer device div expand_dims float32 get_variable
histogram_fixed_width matmul maximum multiply one_hot ones ones_like random_normal random_normal_initializer
reduce_mean reshape shape split square to_float to_int32 trainable_variables transpose variable_scope zeros_like
truncated_normal_initializer Print placeholder global_variables_initializer ConfigProto pack mul image_summary
nn.avg_pool nn.bias_add nn.conv2d nn.conv2d_transpose nn.dropout nn.local_response_normalization nn.max_pool
nn.relu nn.sigmoid nn.sigmoid_cross_entropy_with_logits nn.tanh nn.rnn_cell.LSTMCell nn.rnn_cell.GRUCell
layers.dense layers.conv2d layers.batch_normalization layers.dropout summary.FileWriter summary.histogram
summary.image summary.merge summary.scalar train.Saver train.AdamOptimizer train.SummaryWriter keras.layers
contrib.layers.xavier_initializer contrib.layers.batch_norm contrib.layers.l2_regularizer contrib.layers.conv2d
contrib.layers.fully_connected contrib.layers.flatten contrib.layers.max_pool2d contrib.layers.dropout
contrib.slim.conv2d contrib.rnn.BasicLSTMCell contrib.rnn.static_rnn contrib.framework.arg_scope
contrib.losses.softmax_cross_entropy contrib.eager.enable_eager_execution
"""
SLIM_NAMES = """
arg_scope conv2d conv2d_transpose fully_connected max_pool2d avg_pool2d flatten dropout repeat stack
l2_regularizer batch_norm separable_conv2d layer_norm losses one_hot_encoding
"""


def error_of(text: str) -> NetworkCodeError:
    with pytest.raises(NetworkCodeError) as caught:
        load_network(text, "my_network.py")
    return caught.value


def test_it_needs_no_import() -> None:
    """Behavior 65 of DIGITS, the first half."""
    assert issubclass(load_network(SMALL, "my_network.py"), Tower)


@pytest.mark.parametrize(
    "imports",
    [
        IMPORTS,
        "import tensorflow.contrib.slim\nfrom tensorflow.contrib import layers\n",
        "from tensorflow.contrib.layers import batch_norm, xavier_initializer\n",
        "import tensorflow.compat.v1 as tf\nimport numpy as np\nimport math, os, json\n",
        "from tensorflow.python.framework import graph_util\ngraph_util.convert_variables_to_constants\n",
        "import digits\n",
    ],
)
def test_the_import_forms_of_the_guides_work(imports: str) -> None:
    """Behavior 66 of DIGITS."""
    assert load_network(imports + SMALL, "my_network.py").__name__ == "UserModel"


def test_only_the_users_file_sees_the_aliases() -> None:
    load_network(IMPORTS + SMALL, "my_network.py")
    with pytest.raises(ModuleNotFoundError):
        __import__("tensorflow.contrib")


def test_what_version_1_had_is_there() -> None:
    tf, slim = user_tensorflow(), user_slim()
    names = TENSORFLOW_NAMES.split()
    for name in names:
        found = tf
        for part in name.split("."):
            found = getattr(found, part)
    for name in SLIM_NAMES.split():
        assert callable(getattr(slim, name)) or name == "losses"


def test_the_self_test_finds_no_lost_name_on_this_version() -> None:
    assert lost_names() == []


def test_a_file_without_a_user_model() -> None:
    """Behavior 67 of DIGITS."""
    assert str(error_of("x = 1")) == (
        "my_network.py defines no class `UserModel`. Name the class `UserModel` and let it inherit `Tower`."
    )


def test_a_class_of_another_name_is_pointed_at() -> None:
    assert "but `Usermodel`" in str(error_of(SMALL.replace("UserModel", "Usermodel")))


def test_a_user_model_that_is_no_tower() -> None:
    assert str(error_of("class UserModel: pass")) == (
        "`UserModel` inherits object, not `Tower`. Write `class UserModel(Tower):`."
    )


def test_a_user_model_without_loss() -> None:
    text = "class UserModel(Tower):\n    @model_property\n    def inference(self):\n        return self.x\n"
    assert "has no `loss`, which it defines as a `@model_property`." in str(error_of(text))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a = 1\nb = tf.reduce_meen(1)", 2, "`tf` has no `reduce_meen`. Did you mean `tf.reduce_mean`"),
        ("def f():\n    return slim.conv2(1)\n\nf()", 2, "`slim` has no `conv2`. Did you mean `slim.conv2d`"),
        ("class UserModel(Towr): pass", 1, "Did you mean `Tower`?"),
        ("x = (1,\n", 1, "SyntaxError: '(' was never closed."),
        ("\n\nfrom tensorflow.contrib.layers import batchnorm", 3, "Did you mean `tf.contrib.layers.batch_norm`?"),
        ("import os\nimport keras", 2, "`import keras` is not for graph networks. Keras 3 layers in a graph keep one"),
        ("tf.estimator", 1, "TensorFlow dropped estimators"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero."),
    ],
)
def test_errors_name_the_users_line(text: str, line: int, words: str) -> None:
    error = error_of(text)
    assert words in str(error)
    assert f"my_network.py, line {line}" in str(error)
    assert error.details["line"] == line
    assert error.details["file"] == "my_network.py"
    assert error.details["traceback"].startswith("Traceback")


def test_a_model_property_is_evaluated_once_for_each_tower() -> None:
    class Counting:
        calls = 0

        @model_property
        def value(self) -> int:
            Counting.calls += 1
            return Counting.calls

    one, other = Counting(), Counting()
    assert (one.value, one.value, other.value, one.value) == (1, 1, 2, 1)
