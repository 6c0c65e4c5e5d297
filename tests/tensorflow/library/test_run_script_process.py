"""``ziggurat run-script`` as a process: eager execution, placements, signals, and what a shell gets to see."""

import functools
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


def command(script: Path, text: str, *arguments: str) -> list[str]:
    script.write_text(textwrap.dedent(text), "utf-8")
    return [sys.executable, "-m", "ziggurat", "run-script", str(script), *arguments]


def run(script: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    words = command(script, text, *arguments)
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110, check=False)


def test_eager_execution_and_tensors_to_a_gpu(tmp_path: Path) -> None:
    ran = run(
        tmp_path / "eager.py",
        """\
        import tensorflow as tf
        import tensorflow.contrib.eager as tfe
        tfe.enable_eager_execution()
        product = tf.matmul([[2.0]], [[3.0]])
        print(product)
        moved = product.gpu(99).cpu()
        print(moved.numpy())
        weight = tfe.Variable(2.0)
        print([float(gradient) for gradient, _ in tfe.implicit_gradients(lambda x: weight * weight * x)(3.0)])
        with tfe.GradientTape() as tape:
            loss = weight ** 3
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
        class Net(tfe.Network):
            def __init__(self):
                super(Net, self).__init__()
                self.layer = self.track_layer(tf.layers.Dense(2))
            def call(self, x):
                return self.layer(x)
        net = Net()
        print(net(tf.ones([1, 3])).shape, len(net.variables))
        print(weight.numpy(), tfe.in_eager_mode(), [int(x) for x in tfe.Iterator(tf.data.Dataset.range(2))])
        """,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "tf.Tensor([[6.]], shape=(1, 1), dtype=float32)",
        "[[6.]]",
        "[12.0]",
        "(1, 2) 2",
        "-4.0 True [0, 1]",
    ]
    assert f"{tmp_path / 'eager.py'}, line 6: There is no GPU 99 here: the tensor stays where it is." in ran.stderr
    assert "tf.contrib.eager.enable_eager_execution  ->  tf.compat.v1.enable_eager_execution" in ran.stderr


def test_placements_are_printed_and_exit_codes_pass(tmp_path: Path) -> None:
    ran = run(
        tmp_path / "placed.py",
        """\
        import sys
        import tensorflow as tf
        with tf.device("/CPU:0"):
            left = tf.constant([1.0, 2.0], name="left")
            total = tf.add(left, tf.constant([3.0, 4.0], name="right"), name="total")
        with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
            print session.run(total)
        sys.exit(int(sys.argv[1]))
        """,
        "7",
        "--json",
    )
    assert ran.returncode == 7
    placed = dict(re.findall(r"^(\w+): \((\w+)\): .*/device:CPU:0$", ran.stdout, re.MULTILINE))
    assert {"left": "Const", "right": "Const"}.items() <= placed.items()
    assert "total" in placed
    assert ran.stdout.endswith("[4. 6.]\n")


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("cold_starts")
def test_an_interrupted_script_ends_with_130(tmp_path: Path) -> None:
    text = """\
        import sys, threading
        import tensorflow as tf
        session = tf.Session()
        sys.stdout.write("waits\\n")
        sys.stdout.flush()
        for _ in range(1000):  # a signal right before a wait is noticed at its end
            threading.Event().wait(0.1)
        """
    words = command(tmp_path / "waits.py", text)
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Whoever runs the tests in the background has let them ignore Ctrl-C, and children inherit that.
    reset = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(words, text=True, preexec_fn=reset, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        os.kill(process.pid, signal.SIGINT)  # the process of the command is the script's own
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "tf.Session  ->  tf.compat.v1.Session" in err
    assert "Traceback" not in err
