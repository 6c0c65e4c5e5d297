"""What programs of other people for Tensorpack 0.8 and TensorFlow 1 rely on."""

import json
import textwrap

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tensorpack.run_tensorpack import run_tensorpack
from ziggurat.compat.tf1.run_script import run_script

LAYERS = """
from tensorpack import *
import numpy as np
import tensorflow as tf
image = tf.placeholder(tf.float32, [None, 8, 8, 3])
with TowerContext('', is_training=True):
    def named(x, name):
        return tf.nn.relu(x, name=name)
    assert Conv2D('a', image, 4, 3, nl=named).name == 'a/output:0'
    assert FullyConnected('f', image, 4, nl=named).name == 'f/output:0'
    with argscope([Conv2D, FullyConnected], nl=lambda x, name: PReLU(name, x)):
        assert Conv2D('b', image, 4, 3).op.name.startswith('b/output')
    assert Conv2D('c', image, 4, 3, nl=lambda x, name='own': tf.nn.relu(x, name=name)).name == 'c/output:0'
    assert Conv2D('d', image, 4, 3, 'VALID').shape.as_list() == [None, 6, 6, 4]
    assert Conv2D('e', image, 4, 3, 'SAME', 2).shape.as_list() == [None, 4, 4, 4]
    assert Conv2D('g', image, 8 / 2, 3).shape.as_list() == [None, 8, 8, 4]
    assert FullyConnected('h', image, 6 / 2).shape.as_list() == [None, 3]
    class Model(ModelDesc):
        def __init__(self, training):
            self.training = training
    assert (Model(False).training, ModelDesc().training) == (False, True)
    ones, twos = tf.ones_initializer(), tf.constant_initializer(2.0)
    for number, behind in enumerate([(ones,), (ones, twos), (ones, twos, tf.nn.relu), (None, None, tf.nn.relu, False)]):
        made = FullyConnected(f'k{number}', image, 4, *behind)
        assert ('b' in vars(made.variables)) == (len(behind) < 4), behind
        assert (made.op.inputs[0].op.type == 'Relu') == (len(behind) > 2), behind
    assert FullyConnected('l', image, 4, ones, nl=tf.nn.relu).op.inputs[0].op.type == 'Relu'
    assert FullyConnected('m', image, 4, tf.nn.relu, False).op.inputs[0].op.type == 'Relu'
    assert Deconv2D('i', image, [16, 16, 4], 3, 2).shape.as_list() == [None, 16, 16, 4]
    assert MaxPooling.symbolic_function(image, 2).shape.as_list() == [None, 4, 4, 3]
    try:
        Conv2D('j', image, 4, 'SAME')
    except Exception as error:
        assert '`kernel_size` is a number above 0, or two (received: ' in str(error), error
    else:
        raise AssertionError
"""

COPIES = """
from tensorpack import *
import tensorflow as tf
tf.get_variable('net/W', [3], initializer=tf.constant_initializer(2.0))
target = tf.get_variable('target/net/W', [3], initializer=tf.zeros_initializer())
copy = target.assign(tf.get_default_graph().get_tensor_by_name('net/W:0'))
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(copy)
    assert session.run(target).tolist() == [2.0] * 3
    saver = tf.train.Saver()
    saver.save(session, './model')
from tensorpack.tfutils.sessinit import CheckpointReaderAdapter, MismatchLogger
reader = CheckpointReaderAdapter(tf.train.NewCheckpointReader('./model'))
assert reader.get_variable_to_shape_map()['net/W:0'] == [3]
assert reader.has_tensor('net/W:0') and reader.has_tensor('net/W') and not reader.has_tensor('W')
assert reader.get_tensor('net/W:0').tolist() == [2.0] * 3
found = MismatchLogger('checkpoint', 'graph')
found.log()
found.add('W')
found.log()
"""

SHAPES = """
from tensorpack.models.shape_utils import StaticDynamicAxis, StaticDynamicShape
import tensorflow as tf
shape = StaticDynamicShape(tf.placeholder(tf.float32, [None, 8, 3]))
shape.apply(1, lambda size: size * 2)
assert shape.static == [None, 16, 3] and shape.get_dynamic(2) == 3 and shape.ndims == 3
assert shape[1].static == 16 and StaticDynamicAxis(None, 4).apply(lambda size: size + 1).dynamic == 5
"""

IN_PLACE = """
from tensorpack import *
import tensorflow as tf
with TowerContext('', is_training=True):
    bias = weights = tf.get_variable('b', [2], initializer=tf.constant_initializer(3.0))
    bias += tf.constant([1.0, 2.0])
    weights *= 2.0
    weights -= 1.0
    weights /= 5.0
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    assert session.run(bias).tolist() == [4.0, 5.0]
    assert session.run(weights).tolist() == [1.0, 1.0]
    assert session.run(tf.global_variables()[0]).tolist() == [3.0, 3.0]
"""

SIZES = """
import numpy as np
import tensorflow as tf
image = tf.placeholder(tf.float32, [None, 84 / 2, np.float64(8), 3], name='image')
assert image.shape.as_list() == [None, 42, 8, 3]
assert tf.get_variable('v', shape=(4 / 2, 3)).shape.as_list() == [2, 3]
assert tf.reshape(image, [-1, 42 * 8 * 6 / 2]).shape.as_list() == [None, 1008]
assert tf.reshape(image, shape=np.array([-1.0, 24.0])).shape.as_list() == [None, 24]
assert tf.tile(tf.zeros([1, 2]), [6 / 2, 1]).shape.as_list() == [3, 2]
assert tf.random_normal([4 / 2, 3]).shape.as_list() == [2, 3]
assert tf.image.resize_bilinear(image, [42 / 2, 4]).shape.as_list() == [None, 21, 4, 3]
for wrong in (lambda: tf.placeholder(tf.float32, [2.5]), lambda: tf.reshape(image, [-1, 2.5])):
    try:
        wrong()
    except (TypeError, ValueError):
        continue
    raise AssertionError
"""


OLDEST = """
import tensorflow as tf
from tensorflow.models.rnn import rnn, rnn_cell
from tensorflow.python.ops import array_ops, constant_op
cell = rnn_cell.BasicLSTMCell(4)
outputs, _ = rnn.dynamic_rnn(cell, array_ops.ones([2, 3, 5]), dtype=tf.float32)
assert outputs.shape.as_list() == [2, 3, 4]
assert constant_op.constant([1.0, 2.0]).shape.as_list() == [2]
gone = {"contrib.crf.crf_decode": "Build it from `tf` operations.", "models.rnn.seq2seq": "tf.nn.dynamic_rnn"}
for name, said in gone.items():
    try:
        eval("tf." + name)
    except AttributeError as error:
        assert said in str(error), error
    else:
        raise AssertionError(name)
"""


@pytest.fixture
def run(tmp_path, capfd, monkeypatch):
    """Run a program by a command in a graph of its own; return its exit code and standard error."""

    def call(command, text):
        (tmp_path / "program.py").write_text(textwrap.dedent(text), "utf-8")
        monkeypatch.chdir(tmp_path)
        with tf.Graph().as_default():
            code = command(str(tmp_path / "program.py"))
        return code, capfd.readouterr().err

    return call


@pytest.mark.parametrize("text", [LAYERS, COPIES, SHAPES, IN_PLACE], ids=["layers", "copies", "shapes", "in_place"])
def test_names_and_orders_of_tensorpack_0_8_work(run, text, caplog):
    code, said = run(run_tensorpack, text)
    assert code == 0, said
    warnings = [each.getMessage() for each in caplog.records if "checkpoint" in each.getMessage()]
    assert warnings == (["In the checkpoint but not in the graph: W"] if text is COPIES else [])


FOLDER = """
from tensorpack import logger
logger.set_logger_dir('logs')
assert logger.LOG_DIR == logger.get_logger_dir() and logger.LOG_DIR.endswith('logs')
"""


def test_the_folder_of_a_logger_has_its_older_name(run):
    code, said = run(run_tensorpack, FOLDER)
    assert code == 0, said


STATISTICS = """
import json
import tensorpack
with open('stats.json') as file:
    assert [each['epoch_num'] for each in json.load(file)] == [1, 2]
with open('other.json') as file:
    assert json.load(file) == {'a': 1}
"""


def test_statistics_are_a_list_for_a_program(run, tmp_path):
    (tmp_path / "stats.json").write_text('{"epoch_num": 1, "cost": 0.5}\n{"epoch_num": 2, "cost": 0.25}\n', "utf-8")
    (tmp_path / "other.json").write_text('{"a": 1}', "utf-8")
    load = json.load
    code, said = run(run_tensorpack, STATISTICS)
    assert code == 0, said
    assert json.load is load


@pytest.mark.parametrize("command", [run_script, run_tensorpack])
def test_whole_floats_are_sizes_while_a_program_runs(run, command):
    code, said = run(command, SIZES)
    assert code == 0, said
    with tf.Graph().as_default(), pytest.raises(TypeError):
        tf.placeholder(tf.float32, [2.0])


def test_names_of_before_tensorflow_1_are_found(run):
    code, said = run(run_script, OLDEST)
    assert code == 0, said
