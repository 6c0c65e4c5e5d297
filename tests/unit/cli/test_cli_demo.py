"""``demo`` trains by the ordinary path and shows the curves in TensorBoard on a loopback port."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request

import psutil

from ziggurat.workspace.demo import demo_spec


def test_the_demo_is_an_ordinary_spec():
    spec = demo_spec(epochs=3)
    assert (spec.backend, spec.network.model_dump(), spec.data.source) == (
        "null",
        {"source": "zoo", "name": "mlp"},
        "digits",
    )
    assert spec.epochs == 3


def test_demo_trains_and_ends(ziggurat, tmp_path):
    answer = ziggurat("demo", "--out", tmp_path / "job", "--epochs", "2", "--no-browser", "--exit", "--json")
    assert answer.code == 0
    assert answer.content["state"] == "done"
    address = re.search(r"TensorBoard: (http://127\.0\.0\.1:\d+/)", answer.err)
    assert address is not None, answer.err
    assert json.loads((tmp_path / "job" / "spec.json").read_text())["name"] == "demo"
    alive = [each for each in psutil.Process().children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE]
    assert not any("tensorboard" in " ".join(each.cmdline()) for each in alive)


def test_demo_serves_on_until_it_is_ended(tmp_path, tiny_worker):
    driver = (
        "import sys\nfrom ziggurat.cli.application import Application\nfrom ziggurat.cli.main import main\n"
        f"sys.exit(main(sys.argv[1:], Application(worker_command=[sys.executable, {str(tiny_worker)!r}])))\n"
    )
    command = [sys.executable, "-c", driver, "demo", "--out", str(tmp_path / "job"), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"TensorBoard goes on at (\S+);", line):
                break
        with urllib.request.urlopen(found[1] + "data/runs", timeout=30) as reply:
            assert reply.status == 200
        board = next(each for each in psutil.Process(process.pid).children() if "tensorboard.main" in each.cmdline())
        assert os.getpgid(board.pid) == board.pid
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 0
    assert not board.is_running()
