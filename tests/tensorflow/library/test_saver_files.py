"""Checkpoints, metagraphs and frozen graphs go both ways between plain TensorFlow and Ziggurat."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.export.provider import open_foreign_model
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tf1.run_script import run_script
from ziggurat.dataflow import BatchData, DataFromList
from ziggurat.tf.config import TrainConfig, launch_train_with_config
from ziggurat.tf.model import ModelDesc
from ziggurat.tf.savers import ModelSaver
from ziggurat.tf.trainers import SimpleTrainer

X = np.random.RandomState(0).rand(3, 4).astype(np.float32)

# What both sides begin with: plain TensorFlow, and nothing of Ziggurat in the process.
PLAIN = """
import json, os, sys
os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", TF_USE_LEGACY_KERAS="1")
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
X, folder = json.loads(sys.argv[1]), sys.argv[2]
"""
MAKE = """
x = tf.placeholder(tf.float32, [None, 4], name="x")
weights = tf.get_variable("weights", [4, 2], initializer=tf.random_normal_initializer(seed=1))
scores = tf.identity(tf.matmul(x, weights) + tf.get_variable("bias", initializer=[0.5, -0.5]), name="scores")
step = tf.train.get_or_create_global_step()
train = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_mean(tf.square(scores)), global_step=step)
tf.add_to_collection("answers", scores)
saver = tf.train.Saver(max_to_keep=2)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(4):
        session.run(train, {x: X})
        saver.save(session, os.path.join(folder, "model"), global_step=step)
    frozen = tf.graph_util.convert_variables_to_constants(session, session.graph_def, ["scores"])
    with tf.gfile.GFile(os.path.join(folder, "frozen.pb"), "wb") as file:
        file.write(frozen.SerializeToString())
    print(json.dumps({"scores": session.run(scores, {x: X}).tolist(), "global_step": int(session.run(step))}))
assert not [name for name in sys.modules if name.startswith("ziggurat")], "this is plain TensorFlow"
"""


def plain(program: str, *arguments: str) -> dict:
    """Run a program of plain TensorFlow in a process of its own; return the document that it prints."""
    words = [sys.executable, "-c", PLAIN + textwrap.dedent(program), json.dumps(X.tolist()), *arguments]
    ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def made_plainly(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """A folder with ``model-3``, ``model-4`` and ``frozen.pb`` of plain TensorFlow, and its scores for ``X``."""
    folder = tmp_path_factory.mktemp("plain")
    return folder, plain(MAKE, str(folder))


@pytest.fixture
def script(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """Run a TensorFlow 1 script in a graph of its own; return what it printed."""

    def call(text: str, *arguments: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text), "utf-8")
        capfd.readouterr()
        with tf.Graph().as_default():
            code = run_script(str(path), arguments)
        captured = capfd.readouterr()
        assert code == 0, captured.err
        return captured.out

    return call


# ---- the saver's options


def test_the_options_of_a_saver(script, tmp_path: Path) -> None:
    text = """\
        import os, sys
        import tensorflow as tf
        step = tf.train.get_or_create_global_step()
        ahead = tf.assign_add(step, 10)
        def names(folder):
            found = sorted(os.listdir(folder))
            return [name[:-len(".index")] for name in found if name.endswith(".index")], \\
                [name for name in found if name.endswith(".meta")]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            often = {"max_to_keep": 1, "keep_checkpoint_every_n_hours": 1e-9}
            for name, options in (("few", {"max_to_keep": 2}), ("often", often)):
                folder = os.path.join(sys.argv[1], name)
                os.mkdir(folder)
                saver = tf.train.Saver(**options)
                for _ in range(3):
                    session.run(ahead)
                    saver.save(session, folder + "/m", global_step=step, write_meta_graph=name == "few")
                print(names(folder), os.path.basename(tf.train.latest_checkpoint(folder)))
        """
    assert script(text, str(tmp_path)).splitlines() == [
        "(['m-20', 'm-30'], ['m-20.meta', 'm-30.meta']) m-30",
        "(['m-40', 'm-50', 'm-60'], []) m-60",
    ]


# ---- made by plain TensorFlow


def test_a_plain_metagraph_goes_on_in_a_script(made_plainly: tuple[Path, dict], script) -> None:
    folder, made = made_plainly
    text = """\
        import json, sys
        import tensorflow as tf
        newest = tf.train.latest_checkpoint(sys.argv[1])
        saver = tf.train.import_meta_graph(newest + ".meta")
        graph = tf.get_default_graph()
        with tf.Session() as session:
            saver.restore(session, newest)
            scores, = tf.get_collection("answers")
            found = session.run([graph.get_tensor_by_name("scores:0"), scores], {"x:0": json.loads(sys.argv[2])})
            assert (found[0] == found[1]).all()
            slots = [v.name for v in tf.global_variables() if "Adam" in v.name]
            print(json.dumps([found[0].tolist(), int(session.run("global_step:0")), sorted(slots)]))
        """
    scores, step, slots = json.loads(script(text, str(folder), json.dumps(X.tolist())))
    assert scores == made["scores"]
    assert step == made["global_step"] == 4
    assert slots == ["bias/Adam:0", "bias/Adam_1:0", "weights/Adam:0", "weights/Adam_1:0"]


def test_a_plain_checkpoint_fits_a_graph_that_is_built_again(made_plainly: tuple[Path, dict], script) -> None:
    folder, made = made_plainly
    text = """\
        import json, sys
        import tensorflow as tf
        x = tf.placeholder(tf.float32, [None, 4])
        scores = tf.matmul(x, tf.get_variable("weights", [4, 2])) + tf.get_variable("bias", [2])
        saver = tf.train.Saver()
        with tf.Session() as session:
            saver.restore(session, tf.train.latest_checkpoint(sys.argv[1]))
            print(json.dumps(session.run(scores, {x: json.loads(sys.argv[2])}).tolist()))
        """
    assert json.loads(script(text, str(folder), json.dumps(X.tolist()))) == made["scores"]


def test_a_plain_frozen_graph_is_run_by_name(made_plainly: tuple[Path, dict], script) -> None:
    folder, made = made_plainly
    text = """\
        import json, sys
        import tensorflow as tf
        from tensorflow.python.platform import gfile
        with tf.Session() as session:
            with gfile.FastGFile(sys.argv[1] + "/frozen.pb", "rb") as file:
                definition = tf.GraphDef()
                definition.ParseFromString(file.read())
            tf.import_graph_def(definition, name="")
            assert not tf.global_variables()
            print(json.dumps(session.run("scores:0", {"x:0": json.loads(sys.argv[2])}).tolist()))
        """
    assert json.loads(script(text, str(folder), json.dumps(X.tolist()))) == made["scores"]


@pytest.mark.parametrize("file", ["", "model-4.meta", "model-4", "frozen.pb"])
def test_plain_files_are_models_of_the_studio(made_plainly: tuple[Path, dict], file: str) -> None:
    folder, made = made_plainly
    opened = open_foreign_model(folder / file)
    found = opened.predict({"x": X}, ["scores"])["scores"]
    opened.close()
    np.testing.assert_allclose(found, made["scores"], rtol=1e-5, atol=1e-6)


# ---- made here


class Line(ModelDesc):
    """A linear network with an optimizer that has slots."""

    def inputs(self):
        return [tf.TensorSpec((None, 4), tf.float32, "x"), tf.TensorSpec((None, 2), tf.float32, "y")]

    def build_graph(self, x, y):
        weights = tf.get_variable("weights", [4, 2])
        scores = tf.identity(tf.matmul(x, weights), name="scores")
        return tf.reduce_mean(tf.square(scores - y), name="cost")

    def optimizer(self):
        return tf.train.AdamOptimizer(0.1)


def test_a_training_of_ours_is_read_by_plain_tensorflow(tmp_path: Path) -> None:
    rows = [[row, row[:2]] for row in np.random.RandomState(1).rand(8, 4).astype(np.float32)]
    with tf.Graph().as_default():
        trainer = SimpleTrainer()
        config = TrainConfig(
            model=Line(),
            dataflow=BatchData(DataFromList(rows), 4),
            callbacks=[ModelSaver(checkpoint_dir=tmp_path)],
            max_epoch=2,
        )
        launch_train_with_config(config, trainer)
        weights, steps = trainer.sess.run(
            [trainer.graph.get_collection("trainable_variables")[0], tf.train.get_global_step()]
        )
    found = plain(
        """
        import glob
        newest = tf.train.latest_checkpoint(folder)
        meta, = glob.glob(os.path.join(folder, "*.meta"))
        saver = tf.train.import_meta_graph(meta)
        with tf.Session() as session:
            saver.restore(session, newest)
            scores = session.run("scores:0", {"x:0": X})
        print(json.dumps({"scores": scores.tolist(), "newest": os.path.basename(newest),
                          "names": sorted(name for name, _ in tf.train.list_variables(newest))}))
        assert not [name for name in sys.modules if name.startswith("ziggurat")]
        """,
        str(tmp_path),
    )
    np.testing.assert_allclose(found["scores"], X @ weights, rtol=1e-5, atol=1e-6)
    assert found["newest"] == f"model-{steps}" == "model-4"
    assert {"weights", "weights/Adam", "weights/Adam_1", "global_step"} <= set(found["names"])


def test_files_of_a_script_are_read_by_plain_tensorflow(script, tmp_path: Path) -> None:
    text = f"""\
        import json, os, sys
        import tensorflow as tf
        X, folder = json.loads(sys.argv[1]), sys.argv[2]
        {textwrap.indent(MAKE.partition("assert not")[0], " " * 8).strip()}
        """
    converted, answer = script(text, json.dumps(X.tolist()), str(tmp_path)).splitlines()
    assert converted.startswith("Converted ")
    made = json.loads(answer)
    found = plain(
        """
        def score():
            return session.run("scores:0", {"x:0": X}).tolist()
        newest = tf.train.latest_checkpoint(folder)
        with tf.Session(graph=tf.Graph()) as session:
            tf.train.import_meta_graph(newest + ".meta").restore(session, newest)
            restored = score()
        with tf.Session(graph=tf.Graph()) as session:
            definition = tf.GraphDef()
            with open(os.path.join(folder, "frozen.pb"), "rb") as file:
                definition.ParseFromString(file.read())
            tf.import_graph_def(definition, name="")
            print(json.dumps({"restored": restored, "frozen": score()}))
        """,
        str(tmp_path),
    )
    assert found == {"restored": made["scores"], "frozen": made["scores"]}
