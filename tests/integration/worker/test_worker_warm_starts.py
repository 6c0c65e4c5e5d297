"""A warm start of the tests is what a cold start is: exit codes, signals, process group, kills, environment."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.waiting import wait_until
from tests.warm.session import SOCKET, WarmStarts
from ziggurat.entities import EXIT_STOPPED
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec


@pytest.fixture(scope="module")
def python() -> Iterator[str]:
    """Return an interpreter that starts workers warm."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", sys.executable)
        patch.setenv(SOCKET, "")
        warm = WarmStarts("null")
        yield sys.executable
        warm.close()


def new_job(folder: Path, **fields: object) -> Path:
    content = {"kind": "train", "version": 1, "backend": "null", "data": "digits", "network": "linear", **fields}
    folder.mkdir()
    save_spec(parse_spec({"monitors": ["events"], "sample_predictions": False, **content}), JobFolder(folder).spec)
    return folder


@pytest.fixture
def training(python: str, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], psutil.Process]]:
    """Return the started command of a long training, and the process that trains."""
    folder = new_job(tmp_path / "job", epochs=100_000)
    command = [python, "-m", "ziggurat.worker", str(folder)]
    started = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    heartbeat = JobFolder(folder).heartbeat
    wait_until(heartbeat.exists)
    worker = psutil.Process(json.loads(heartbeat.read_text())["pid"])
    try:
        yield started, worker
    finally:
        started.kill()
        started.wait()


def test_exit_code_and_output_are_those_of_a_cold_start(python: str, tmp_path: Path) -> None:
    words = ["-m", "ziggurat.worker", str(tmp_path / "nothing")]
    warm = subprocess.run([python, *words], capture_output=True, text=True, check=False)
    cold = subprocess.run([python, *words], capture_output=True, text=True, check=False, env={**os.environ, SOCKET: ""})
    assert (warm.returncode, warm.stdout, warm.stderr) == (cold.returncode, cold.stdout, cold.stderr)
    assert warm.returncode == 10


def test_a_job_trains_to_its_end(python: str, tmp_path: Path) -> None:
    folder = new_job(tmp_path / "job", epochs=1)
    assert subprocess.run([python, "-m", "ziggurat.worker", str(folder)], check=False).returncode == 0


def test_the_worker_leads_a_group_outside_of_the_command(
    training: tuple[subprocess.Popen[bytes], psutil.Process],
) -> None:
    started, worker = training
    assert os.getpgid(worker.pid) == worker.pid
    assert worker.ppid() != started.pid


def test_a_signal_is_passed_on_and_the_exit_code_comes_back(
    training: tuple[subprocess.Popen[bytes], psutil.Process],
) -> None:
    started, _ = training
    started.send_signal(signal.SIGTERM)
    assert started.wait(60) == EXIT_STOPPED


@pytest.mark.parametrize("killed", ["command", "worker"])
def test_neither_outlives_the_other(training: tuple[subprocess.Popen[bytes], psutil.Process], killed: str) -> None:
    started, worker = training
    os.kill(started.pid if killed == "command" else worker.pid, signal.SIGKILL)
    assert started.wait(60) == -signal.SIGKILL
    wait_until(lambda: not worker.is_running())


def test_another_environment_for_the_import_starts_cold(python: str, tmp_path: Path) -> None:
    words = [python, "-m", "ziggurat.worker", str(tmp_path / "nothing")]
    done = subprocess.run(words, capture_output=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "3"})
    assert done.returncode == 10
