"""TensorFlow 1 scripts run unchanged: their names, both Pythons, their own modules, and errors at their lines."""

import gzip
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tf1.run_script import run_script
from ziggurat.errors import UsageError


@dataclass
class Ran:
    """What a script left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def adapted(self) -> dict[str, tuple[str, str]]:
        """Name in the script → place of its first use, and name of today."""
        rows = [line.split() for line in self.err.splitlines() if "  ->  " in line]
        return {row[1]: (row[0], " ".join(row[3:])) for row in rows}


@pytest.fixture
def run(tmp_path, capfd):
    """Run a script in this process, in a graph of its own; the texts of further files go by their names."""

    def call(text: str, *arguments: str, **files: str) -> Ran:
        for name, content in {"script": text, **files}.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(content), "utf-8")
        capfd.readouterr()
        with tf.Graph().as_default():
            code = run_script(str(tmp_path / "script.py"), arguments)
        captured = capfd.readouterr()
        for name in files:
            sys.modules.pop(name, None)
        return Ran(code, captured.out, captured.err)

    return call


# ---- names


def test_a_package_that_is_missing_is_named(run) -> None:
    ran = run("import timm_of_nobody\n")
    assert "Install it" not in ran.err
    ran = run("import yaml.of_nobody\n")
    assert "Install it with: pip install pyyaml." in ran.err


def test_a_reader_of_its_own_takes_sizes_from_a_header(run, tmp_path) -> None:
    header, pixels = np.array([2, 3], ">u4").tobytes(), bytes(range(6))
    (tmp_path / "images.gz").write_bytes(gzip.compress(header + pixels))
    ran = run(f"""\
        import gzip
        import numpy
        def _read32(bytestream):
            dt = numpy.dtype(numpy.uint32).newbyteorder('>')
            return numpy.frombuffer(bytestream.read(4), dtype=dt)
        with gzip.open({str(tmp_path / "images.gz")!r}) as bytestream:
            rows, cols = _read32(bytestream), _read32(bytestream)
            data = numpy.frombuffer(bytestream.read(rows * cols), dtype=numpy.uint8)
        data = data.reshape(rows, cols)
        assert data.tolist() == [[0, 1, 2], [3, 4, 5]] and rows[0] == 2 and rows == 2
    """)
    assert ran.code == 0, ran.err


def test_scipy_reads_writes_and_resizes_images_as_before(run, tmp_path) -> None:
    ran = run(f"""\
        import numpy as np
        import scipy.misc
        from scipy import misc, ndimage
        from scipy.misc import imsave, imread, imresize
        import scipy.sparse.linalg as linalg
        pixels = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
        place = {str(tmp_path / "a.png")!r}
        imsave(place, pixels)
        assert (imread(place) == pixels).all() and (scipy.misc.imread(place, mode='L').shape == (4, 2))
        assert imread(place, flatten=True).dtype == np.float32
        misc.imsave(place, np.array([[-1.0, 0.0], [0.5, 1.0]]))
        assert imread(place).tolist() == [[0, 128], [191, 255]], imread(place)
        assert imresize(pixels, (8, 6)).shape == (8, 6, 3) and imresize(pixels, 50).shape == (2, 1, 3)
        assert imresize(pixels, 2.0, interp='nearest')[::2, ::2].tolist() == pixels.tolist()
        assert abs(misc.logsumexp([0.0, 0.0]) - np.log(2)) < 1e-9 and ndimage.zoom and linalg.eigsh
    """)
    assert ran.code == 0, ran.err


def test_lists_of_unequal_lengths_are_arrays_of_objects(run, tmp_path) -> None:
    ran = run(f"""\
        import numpy as np
        rows = [np.zeros((2, 3)), [1, 2], [4.0]]
        assert np.array(rows).dtype == object and np.asarray(rows).shape == (3,)
        np.save({str(tmp_path / "rows.npy")!r}, rows)
        assert np.load({str(tmp_path / "rows.npy")!r}, allow_pickle=True)[1] == [1, 2]
        try:
            np.array(rows, np.float32)
        except ValueError:
            print('refused')
    """)
    assert (ran.code, ran.out) == (0, "refused\n"), ran.err
    assert "np.save(rows of unequal lengths)" in ran.err
    with pytest.raises(ValueError, match="inhomogeneous"):
        np.array([[1], [1, 2]])


def test_names_of_before_are_listed_with_their_lines(run) -> None:
    ran = run("""\
        import tensorflow as tf
        from tensorflow.contrib.layers import xavier_initializer
        x = tf.placeholder(tf.float32, [None, 2])
        y = tf.mul(x, 2.0)
        z = tf.add(tf.mul(x, 1.0), y)
        with tf.Session() as session:
            print(session.run(z, {x: [[1, 2]]}))
        """)
    assert (ran.code, ran.out) == (0, "[[3. 6.]]\n")
    assert ran.adapted == {
        "tf.contrib.layers.xavier_initializer": ("script.py:2", "tf_slim.xavier_initializer"),
        "tf.placeholder": ("script.py:3", "tf.compat.v1.placeholder"),
        "tf.mul": ("script.py:4", "tf.multiply"),
        "tf.Session": ("script.py:6", "tf.compat.v1.Session"),
    }


def test_a_script_of_today_needs_nothing(run) -> None:
    ran = run("""\
        import tensorflow.compat.v1 as tf
        with tf.Session() as session:
            print(session.run(tf.placeholder_with_default(4, [])))
        """)
    assert ran.out == "4\n"
    assert ran.err == "ziggurat run-script: no name of script.py had to be adapted.\n"


def test_variables_are_those_of_tensorflow_1(run) -> None:
    ran = run("""\
        import tensorflow as tf
        v = tf.Variable([1.0, 2.0], name="v")
        print(v)
        with tf.Session() as session:
            session.run(tf.initialize_all_variables())
            print(session.run("v:0"))
        """)
    assert ran.out == "<tf.Variable 'v:0' shape=(2,) dtype=float32_ref>\n[1. 2.]\n"
    assert tf.resource_variables_enabled(), "the process has its own kind of variables again"


@pytest.mark.parametrize(
    "dropped",
    [
        "tf.nn.dropout(x, 0.5)",
        "tf.layers.dropout(x, 0.5, training=True)",
        "tf.contrib.layers.dropout(x, 0.5)",
        "slim.dropout(x, 0.5)",
    ],
)
def test_dropout_needs_no_global_step(run, dropped: str) -> None:
    ran = run(f"""\
        import tensorflow as tf
        import tensorflow.contrib.slim as slim
        x = tf.ones([200])
        masked = {dropped}
        with tf.Session() as session:
            first, second = session.run(masked), session.run(masked)
        print((first != second).any(), sorted(map(float, set(first) | set(second))), tf.global_variables())
        """)
    assert ran.code == 0, ran.err
    assert ran.out == "True [0.0, 2.0] []\n"


def test_the_parts_of_contrib_and_of_the_inside(run) -> None:
    ran = run("""\
        import tensorflow as tf
        import tensorflow.contrib.slim as slim
        from tensorflow.contrib import layers, rnn
        from tensorflow.contrib.framework import arg_scope
        from tensorflow.python.framework import graph_util
        from tensorflow.python.ops import rnn_cell
        from tensorflow.python.platform import gfile
        from tensorflow.contrib.slim.nets import resnet_v1
        x = tf.ones([2, 8, 8, 3])
        with arg_scope([slim.conv2d], normalizer_fn=slim.batch_norm, weights_regularizer=layers.l2_regularizer(0.1)):
            net = slim.conv2d(x, 4, [3, 3])
        net = tf.layers.batch_normalization(tf.layers.dense(slim.flatten(net), 3), training=True)
        out, state = tf.nn.static_rnn(rnn.BasicLSTMCell(5), [net], dtype=tf.float32)
        print(out[0].shape, len(tf.losses.get_regularization_losses()), len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)))
        print(gfile.Exists("nowhere"), callable(graph_util.extract_sub_graph), rnn_cell.GRUCell.__name__)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            print(session.run(out[0]).shape)
        """)
    assert ran.code == 0, ran.err
    assert ran.out == "(2, 5) 1 4\nFalse True GRUCell\n(2, 5)\n"


@pytest.mark.parametrize("line", ["from tensorflow.python.framework import graph_util", "graph_util = tf.graph_util"])
def test_freezing_prints_how_many_variables_it_converted(run, line: str) -> None:
    ran = run(f"""\
        import tensorflow as tf
        {line}
        x = tf.Variable(tf.random_uniform([3]))
        z = tf.add(x, tf.Variable(tf.random_uniform([3]), use_resource=True), name='z')
        unused = tf.Variable(1.0)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            frozen = graph_util.convert_variables_to_constants(session, session.graph_def, ['z'])
        print([node.op for node in frozen.node if node.name == 'z'])
        """)
    assert ran.code == 0, ran.err
    assert ran.out == "Converted 2 variables to const ops.\n['AddV2']\n"
    assert "tf.compat.v1.graph_util.convert_variables_to_constants" in ran.err


def test_queues_sessions_with_hooks_and_summaries(run, tmp_path: Path) -> None:
    ran = run(
        """\
        import sys
        import tensorflow as tf
        queue = tf.FIFOQueue(10, [tf.float32], [[]])
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([2.0])]))
        files = tf.train.batch([tf.train.string_input_producer(["a", "b"], shuffle=False).dequeue()], 2)
        step = tf.train.get_or_create_global_step()
        weight = tf.Variable(1.0)
        loss = tf.square(weight) * queue.dequeue()
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=step)
        tf.summary.scalar("loss", loss)
        merged = tf.summary.merge_all()
        hooks = [tf.train.StopAtStepHook(last_step=3)]
        with tf.train.MonitoredTrainingSession(checkpoint_dir=sys.argv[1], hooks=hooks) as session:
            print(session.run(files))
            while not session.should_stop():
                _, text = session.run([train, merged])
        print(len(text) > 0, tf.train.latest_checkpoint(sys.argv[1]).endswith("-3"))
        """,
        str(tmp_path / "monitored"),
    )
    assert (ran.code, ran.out) == (0, "[b'a' b'b']\nTrue True\n"), ran.err


def test_all_names_of_a_module_are_imported(run) -> None:
    ran = run("""\
        import sys
        from tensorflow.contrib.layers import *
        from tensorflow import *
        sys.stdout.write("%s %s %s" % (placeholder(float32).dtype.name, callable(xavier_initializer), nn.relu.__name__))
        """)
    assert ran.out == "float32 True relu"
    assert list(ran.err.splitlines()) == [
        f"ziggurat run-script: 2 names of script.py adapted to TensorFlow {tf.__version__}:",
        "  script.py:2  from tf.contrib.layers import *  ->  names of TensorFlow 1",
        "  script.py:3  from tf import *                 ->  names of TensorFlow 1",
    ]


def test_flags_of_a_script_come_before_those_of_libraries(run) -> None:
    ran = run(
        """\
        import tensorflow as tf
        tf.app.flags.DEFINE_string("log_dir", "logs", "where")
        tf.flags.DEFINE_integer("run_script_steps", 3, "how many")
        def main(argv):
            print(argv[1:], tf.app.flags.FLAGS.log_dir, tf.flags.FLAGS.run_script_steps)
        if __name__ == "__main__":
            tf.app.run()
        """,
        "--run_script_steps=7",
        "rest",
    )
    assert (ran.code, ran.out) == (0, "['rest'] logs 7\n"), ran.err


def test_only_files_of_the_script_see_tensorflow_1(run) -> None:
    ran = run(
        """\
        import importlib, sys
        import tensorflow as tf
        import helper_of_script
        print(hasattr(tf, "placeholder"), importlib.import_module("tensorflow") is tf, helper_of_script.tf is tf)
        print(hasattr(sys.modules["tensorflow"], "placeholder"))
        """,
        helper_of_script="import tensorflow as tf",
    )
    assert (ran.code, ran.out) == (0, "True True True\nFalse\n"), ran.err
    assert not hasattr(sys.modules["tensorflow"], "contrib")


def test_older_names_of_numpy_are_for_the_script_alone(run) -> None:
    ran = run("""\
        import numpy as np
        print(np.float(3), np.zeros(2, np.int).dtype.kind, np.asscalar(np.ones(1)))
        print(np.reshape(np.ones(4), newshape=(2, 2)).shape)
        """)
    assert ran.out == "3.0 i 1.0\n(2, 2)\n"
    assert ran.adapted["np.float"] == ("script.py:2", "float")
    with pytest.raises(AttributeError):
        np.float  # noqa: B018


# ---- Python 2


def test_python_2_is_converted_with_a_notice(run, tmp_path: Path) -> None:
    ran = run(
        """\
        import cPickle, sys
        import older_helper
        print "half of 7:", 7 / 2
        print >>sys.stderr, "to the log"
        for i in xrange(2):
            print i,
        print
        try:
            raise ValueError, "bad"
        except ValueError, error:
            print error, {1: 2}.has_key(1), 10L <> 9
        print older_helper.half(9)
        """,
        older_helper="def half(x):\n    return x / 2\n",
    )
    assert ran.code == 0, ran.err
    assert ran.out == "half of 7: 3\n0 1 \nbad True True\n4\n"
    script = tmp_path / "script.py"
    assert f"{script}, line 3: `print x` is Python 2; it is read as `print(x)`." in ran.err
    assert f"{script}, line 9: `raise Error, text` is Python 2" in ran.err
    assert f"{tmp_path / 'older_helper.py'}, line 2: Python 2 divided whole numbers without a remainder" in ran.err
    assert "to the log\n" in ran.err
    assert not (tmp_path / "__pycache__").exists(), "what was converted is not cached"


@pytest.mark.parametrize(
    ("statement", "printed"),
    [
        ("print 'a', 1", "a 1\n"),
        ("print ('%d') % 3", "3\n"),
        ("print >>sys.stdout, 'a',; print 'b'", "a b\n"),
        ("print >>sys.stdout", "\n"),
        ("exec 'y = 7'; print y", "7\n"),
        ("print `3` + 'x', 0777, 5L", "3x 511 5\n"),
        ("print map(str, range(2)), zip([1], [2])", "['0', '1'] [(1, 2)]\n"),
        ("print __builtins__.xrange is range or sorted(unicode('ba'))", "['a', 'b']\n"),
        ("print urllib.quote('a b'), Queue.Queue().empty()", "a%20b True\n"),
    ],
)
def test_statements_of_python_2(run, statement: str, printed: str) -> None:
    ran = run(f"import sys, urllib, Queue\n{statement}\n")
    assert (ran.code, ran.out) == (0, printed), ran.err


def test_a_script_for_both_pythons_is_not_converted(run) -> None:
    ran = run("""\
        import sys
        try:
            unicode
        except NameError:
            pass
        if sys.version_info[0] < 3:
            range = xrange
        print(7 / 2)
        """)
    assert ran.out == "3.5\n"


def test_what_cannot_be_converted_is_named_with_its_line(run, tmp_path: Path) -> None:
    ran = run("print 'one'\ndef f((a, b)):\n    return a\n")
    assert ran.code == 1
    assert f"{tmp_path / 'script.py'}, line 2: def f((a, b)):\nSyntaxError: " in ran.err
    assert "neither Python 3 nor Python 2 that can be converted" in ran.err
    assert "had to be adapted" not in ran.err  # nothing of it was executed
    assert "run_script.py" not in ran.err


# ---- errors and exit codes


def test_a_missing_name_says_its_line_and_the_nearest(run, tmp_path: Path) -> None:
    ran = run("import tensorflow as tf\n\nx = tf.nn.conv2dd(1)\n")
    assert ran.code == 1
    first, second = ran.err.splitlines()[1:3]
    assert first == f"{tmp_path / 'script.py'}, line 3: x = tf.nn.conv2dd(1)"
    assert second.startswith("AttributeError: `tf.nn` has no `conv2dd`. Did you mean `tf.nn.conv2d`")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tf.xavier_initializer", "There is `tf.contrib.layers.xavier_initializer`."),
        ("tf.estimator.DNNClassifier", "`tf.estimator.DNNClassifier` does not exist any more. Ready-made estimators"),
        ("tf.contrib.seq2seq", "`tf.contrib.seq2seq` does not exist any more. Use `tf.nn.dynamic_rnn`"),
        ("from tensorflow.contrib.layers import full_connected", "Did you mean `tf.contrib.layers.fully_connected`"),
        ("import tensorflow.contrib.nothing_like_it", "`tf.contrib` has no `nothing_like_it`."),
    ],
)
def test_a_missing_name_says_what_there_is(run, line: str, said: str) -> None:
    ran = run(f"import tensorflow as tf\n{line}\n")
    assert ran.code == 1
    assert ", line 2: " in ran.err
    assert said in ran.err


def test_a_failed_operation_names_where_it_was_made(run, tmp_path: Path) -> None:
    ran = run("""\
        import tensorflow as tf
        x = tf.placeholder(tf.float32, [None])
        square = tf.reshape(x, [2, 2])
        session = tf.Session()
        session.run(square, {x: [1, 2, 3]})
        """)
    script = tmp_path / "script.py"
    lines = ran.err.splitlines()
    place = lines.index(f"{script}, line 5: session.run(square, {{x: [1, 2, 3]}})")
    assert lines[place + 1].startswith("InvalidArgumentError: Input to reshape is a tensor with 3 values")
    assert lines[place + 2] == f"The operation was made at {script}, line 3: square = tf.reshape(x, [2, 2])"
    assert lines[place + 4] == "Traceback (most recent call last):"
    assert lines[place + 5] == f'  File "{script}", line 5, in <module>'
    assert ran.code == 1


def test_an_error_in_a_module_of_the_script_names_it(run, tmp_path: Path) -> None:
    ran = run("import broken_helper\nbroken_helper.f()\n", broken_helper="def f():\n    return undefined\n")
    assert f"{tmp_path / 'broken_helper.py'}, line 2: return undefined\nNameError: " in ran.err
    assert f'File "{tmp_path / "script.py"}", line 2, in <module>' in ran.err


@pytest.mark.parametrize(("raised", "code"), [("3", 3), ("", 0), ("None", 0), ("'no data'", 1)])
def test_exit_codes_pass_through(run, raised: str, code: int) -> None:
    ran = run(f"import sys\nsys.exit({raised})\n")
    assert ran.code == code
    assert ("no data\n" in ran.err) == (code == 1)


def test_the_process_is_as_before(run, tmp_path: Path) -> None:
    before = sys.modules["__main__"], list(sys.argv), list(sys.path), list(sys.meta_path)
    text = "import sys\nprint(sys.argv[1:], sys.path[0], __name__, __file__)\nsys.path.append('x')\n"
    ran = run(text, "-v", "--json")
    assert ran.out == f"['-v', '--json'] {tmp_path} __main__ {tmp_path / 'script.py'}\n"
    assert (sys.modules["__main__"], sys.argv, sys.path, sys.meta_path) == before


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing\.py does not exist"):
        run_script(str(tmp_path / "nothing.py"))


# ---- devices

ON_A_GPU = """
import tensorflow as tf
with tf.device('/gpu:0'):
    doubled = 2 * tf.constant([1.0, 2.0])
with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)) as session:
    print(session.run(doubled), session._config.intra_op_parallelism_threads)
"""


def test_a_gpu_of_a_script_is_the_cpu_where_there_is_none(run, monkeypatch) -> None:
    monkeypatch.setattr("ziggurat.compat.tf1.run_script.has_gpu", lambda: False)
    ran = run(ON_A_GPU)
    assert (ran.code, ran.out) == (0, "[2. 4.] 1\n"), ran.err
    assert ran.adapted['tf.device("/gpu:0")'] == ("script.py:5", "the CPU, as no GPU is here")


def test_with_a_gpu_placement_is_that_of_the_script(run, monkeypatch) -> None:
    monkeypatch.setattr("ziggurat.compat.tf1.run_script.has_gpu", lambda: True)
    ran = run(ON_A_GPU.replace("/gpu:0", "/gpu:99"))
    assert ran.code == 1
    assert "Cannot assign a device" in ran.err
