"""A network runs eagerly in a process of its own: prints show values, errors stop at the user's line, nothing hangs."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tests.waiting import wait_until
from ziggurat.errors import NetworkCodeError
from ziggurat.settings import load_settings
from ziggurat.workspace.tasks import Tasks

NETWORK = """
class UserModel(Tower):
    @model_property
    def inference(self):
        print("first pixel", float(self.x[0, 14, 14, 0]))
        net = slim.conv2d(self.x, 4, [3, 3], scope='conv1')
        print("conv1 is", net.numpy().shape)
        self.summaries.append(tf.summary.image('images', self.x))
        return slim.fully_connected(slim.flatten(net), self.nclasses, activation_fn=None, scope='fc')

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


@pytest.fixture(autouse=True)
def fresh_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What TensorFlow's start in this process left in the environment is not for others."""
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)


def debug(folder: Path, text: str, **options: object) -> tuple[dict | NetworkCodeError, str]:
    """Return what debugging a network gave, and what it printed."""
    path = folder / "mine.py"
    path.write_text(text)
    with (folder / "printed.txt").open("w+") as printed:
        try:
            found = Tasks(load_settings({})).debug(str(path), output=printed, **options)
        except NetworkCodeError as error:
            found = error
        printed.seek(0)
        return found, printed.read()


def test_values_are_printed_and_layers_listed(tmp_path: Path) -> None:
    found, printed = debug(tmp_path, NETWORK, batch_size=8)
    assert isinstance(found, dict)
    lines = printed.splitlines()
    assert lines[0].startswith("first pixel ")
    assert 0 <= float(lines[0].split()[-1]) <= 255
    assert lines[1:] == ["conv1 is (8, 28, 28, 4)"], "and nothing else is shown"
    assert found["batch"] == [[8, 28, 28, 1], [8]]
    layers = [(each["layer"], each["scope"], each["shape"]) for each in found["layers"]]
    assert layers == [
        ("slim.conv2d", "conv1", [8, 28, 28, 4]),
        ("slim.flatten", "", [8, 3136]),
        ("slim.fully_connected", "fc", [8, 10]),
    ]
    assert found["layers"][0]["mean"] == pytest.approx(found["layers"][1]["mean"], rel=1e-5)
    assert found["layers"][0]["mean"] > 0, "behind a ReLU"
    assert found["layers"][2]["deviation"] > 0
    assert found["variables"]["model/conv1/weights"] == [3, 3, 1, 4]
    assert found["output_shapes"] == [[8, 10]]
    assert found["loss"] > 0


def test_an_error_stops_at_the_users_line(tmp_path: Path) -> None:
    text = NETWORK.replace(
        "        return slim.fully", "        net = tf.matmul(net, tf.zeros([5, 6]))\n        return slim.fully"
    )
    error, printed = debug(tmp_path, text)
    assert isinstance(error, NetworkCodeError)
    assert error.exit_code == 5
    line = text[: text.index("tf.matmul")].count("\n") + 1
    assert (error.details["line"], error.details["file"]) == (line, str(tmp_path / "mine.py"))
    assert f"mine.py, line {line}, `net = tf.matmul(net, tf.zeros([5, 6]))`: " in str(error)
    trace = error.details["traceback"].splitlines()
    assert trace[0] == "Traceback (most recent call last):"
    assert f'  File "{tmp_path / "mine.py"}", line {line}, in inference' in trace
    assert "conv1 is (16, 28, 28, 4)" in printed, "what came before the error is shown"


def test_a_loop_without_an_end_is_ended(tmp_path: Path) -> None:
    waits = "import threading; threading.Event().wait(600)"
    text = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {waits!r}])\n"
    error, _ = debug(tmp_path, f"{text}while True:\n    pass\n", time_limit_s=4)
    assert isinstance(error, NetworkCodeError)
    assert str(error) == (
        "The task `debug` must end within its time limit: it ran longer than 4 s. "
        "Look for a loop without an end in the network file, or give it more time with --time-limit."
    )
    assert children() == []


@pytest.mark.nightly
def test_a_network_that_ends_the_process(tmp_path: Path) -> None:
    error, printed = debug(tmp_path, "import os\nprint('so long')\nos._exit(7)\n")
    assert isinstance(error, NetworkCodeError)
    assert "the process ended by itself (exit code 7)" in str(error)
    assert printed == "so long\n"


def test_a_task_ends_with_the_process_that_asked(tmp_path: Path) -> None:
    """Nobody is left to hear the answer of a loop without an end."""
    (tmp_path / "mine.py").write_text("while True:\n    pass\n")
    code = (
        "from ziggurat.settings import load_settings\nfrom ziggurat.workspace.tasks import Tasks\n"
        f"Tasks(load_settings({{}})).debug({str(tmp_path / 'mine.py')!r})\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as asking:
        task = wait_until(lambda: psutil.Process(asking.pid).children(), 60)[0]
        os.kill(asking.pid, signal.SIGKILL)
        asking.wait()
    wait_until(lambda: not psutil.pid_exists(task.pid), 60)


def children() -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE]
