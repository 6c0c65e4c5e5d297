"""Convolutions and poolings with channels first in TensorFlow 1 scripts, where no GPU computes them."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tf1.files import ScriptFiles
from ziggurat.compat.tf1.report import Report
from ziggurat.tf.models import arguments

pytestmark = pytest.mark.skipif(arguments.has_gpu(), reason="A GPU computes with channels first")

SCRIPT = """\
import tensorflow as tf

axes = (0, 3, 1, 2) if form == "NCHW" else (0, 1, 2, 3)
layer_form = "channels_first" if form == "NCHW" else "channels_last"


def order(*sizes):
    return [sizes[axis] for axis in axes]


x = tf.placeholder(tf.float32, order(2, 6, 8, 4))
kernel = tf.constant(KERNEL)
y = {call}
result = tf.transpose(y, [0, 2, 3, 1]) if form == "NCHW" else y
weights = tf.trainable_variables() or [kernel]
gradients = [each for each in tf.gradients(tf.reduce_sum(result ** 2), [x, *weights]) if each is not None]
with tf.Session() as session:
    session.run([tf.assign(each, tf.linspace(0.0, 1.0, each.shape.num_elements()) if len(each.shape) == 1 else
                 tf.reshape(tf.linspace(-1.0, 1.0, each.shape.num_elements()), each.shape))
                 for each in tf.trainable_variables()])
    values, slopes = session.run([result, gradients], {{x: IMAGES.transpose(axes)}})
if form == "NCHW":
    slopes[0] = slopes[0].transpose(0, 2, 3, 1)
shape = y.shape.as_list()
"""

CALLS = {
    "conv2d": ("tf.nn.conv2d(x, kernel, order(1, 2, 1, 1), 'SAME', data_format=form)", (3, 3, 4, 8)),
    "conv2d with paddings": (
        "tf.nn.conv2d(x, kernel, order(1, 1, 1, 1), order([0, 0], [1, 2], [0, 3], [0, 0]), data_format=form)",
        (3, 3, 4, 8),
    ),
    "conv2d in groups": ("tf.nn.conv2d(x, kernel, [1] * 4, 'VALID', data_format=form)", (3, 3, 2, 6)),
    "convolution with holes": (
        "tf.nn.convolution(x, kernel, 'SAME', dilation_rate=[2, 1], data_format=form)",
        (3, 3, 4, 5),
    ),
    "conv2d_transpose": (
        "tf.nn.conv2d_transpose(x, kernel, order(2, 12, 24, 5), order(1, 2, 3, 1), data_format=form)",
        (3, 3, 5, 4),
    ),
    "conv2d_transpose of a shape as a tensor": (
        "tf.nn.conv2d_transpose(x, kernel, tf.shape(x) * order(1, 2, 2, 1), order(1, 2, 2, 1), data_format=form)",
        (3, 3, 4, 4),
    ),
    "depthwise_conv2d": (
        "tf.nn.depthwise_conv2d(x, kernel, order(1, 2, 2, 1), 'SAME', data_format=form)",
        (3, 3, 4, 2),
    ),
    "max_pool": ("tf.nn.max_pool(x, order(1, 2, 3, 1), order(1, 2, 1, 1), 'SAME', data_format=form)", (1,)),
    "avg_pool": ("tf.nn.avg_pool(x, order(1, 2, 3, 1), order(1, 2, 1, 1), 'VALID', data_format=form)", (1,)),
    "space_to_depth": ("tf.nn.space_to_depth(x, 2, data_format=form)", (1,)),
    "depth_to_space": ("tf.nn.depth_to_space(x, 2, data_format=form)", (1,)),
    "layer conv2d": ("tf.layers.conv2d(x, 5, 3, dilation_rate=2, data_format=layer_form)", (1,)),
    "layer separable_conv2d": ("tf.layers.separable_conv2d(x, 5, 3, data_format=layer_form)", (1,)),
    "layer max_pooling2d": ("tf.layers.max_pooling2d(x, 2, 2, data_format=layer_form)", (1,)),
}


def executed(folder: Path, call: str, form: str, kernel: tuple[int, ...]) -> tuple[Any, Report]:
    """Execute the script in a format, and return its names and what was reported."""
    path = folder / "script.py"
    path.write_text(SCRIPT.format(call=call), "utf-8")
    random = np.random.RandomState(3)
    module, report = ModuleType("__main__"), Report(str(path))
    module.__dict__.update(
        form=form,
        IMAGES=random.standard_normal((2, 6, 8, 4)).astype(np.float32),
        KERNEL=random.standard_normal(kernel).astype(np.float32),
    )
    with tf.Graph().as_default():
        ScriptFiles(report).execute(str(path), module)
    return module, report


@pytest.mark.parametrize(("call", "kernel"), CALLS.values(), ids=CALLS)
def test_values_and_gradients(tmp_path: Path, call: str, kernel: tuple[int, ...]) -> None:
    last, of_last = executed(tmp_path, call, "NHWC", kernel)
    first, of_first = executed(tmp_path, call, "NCHW", kernel)
    np.testing.assert_allclose(first.values, last.values, rtol=1e-4, atol=1e-4)
    assert len(first.slopes) == len(last.slopes) >= 1
    for one, other in zip(first.slopes, last.slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    assert first.shape == [last.shape[axis] for axis in (0, 3, 1, 2)]
    assert 'data_format="NCHW"' in of_first.names
    assert 'data_format="NCHW"' not in of_last.names


def test_names_and_what_is_restored(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        (tmp_path / "script.py").write_text(
            "import tensorflow as tf\n"
            "with tf.name_scope('first'):\n"
            "    tf.nn.conv2d(tf.zeros([1, 2, 5, 5]), tf.zeros([1, 1, 2, 3]), [1] * 4, 'SAME', data_format='NCHW')\n"
            "tf.nn.max_pool(tf.zeros([1, 2, 4, 4]), [1, 1, 2, 2], [1, 1, 2, 2], 'SAME', 'NCHW', name='second')\n"
        )
        ScriptFiles(Report("script.py")).execute(str(tmp_path / "script.py"), ModuleType("__main__"))
        assert graph.get_tensor_by_name("first/Conv2D:0").shape.as_list() == [1, 3, 5, 5]
        assert graph.get_tensor_by_name("second:0").shape.as_list() == [1, 2, 2, 2]
        plain = tf.nn.avg_pool(tf.zeros([1, 2, 4, 4]), [1] * 4, [1] * 4, "SAME", data_format="NCHW")
        assert plain.op.type == "AvgPool"


def test_nothing_is_changed_with_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ziggurat.compat.tf1.channels_first.has_gpu", lambda: True)
    with tf.Graph().as_default() as graph:
        (tmp_path / "script.py").write_text(
            "import tensorflow as tf\n"
            "x = tf.zeros([1, 2, 4, 4])\n"
            "y = tf.nn.conv2d(x, tf.zeros([1, 1, 1, 2]), [1] * 4, 'SAME', data_format='NCHW')\n"
        )
        ScriptFiles(Report("script.py")).execute(str(tmp_path / "script.py"), ModuleType("__main__"))
        assert [each.type for each in graph.get_operations()] == ["Const", "Const", "Conv2D"]
