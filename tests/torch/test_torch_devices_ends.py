"""Processes of a training on several devices: errors in them reach the user, and none is left behind."""

import gc
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch_networks import batches

from tests.waiting import wait_until
from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities import read_heartbeat
from ziggurat.errors import NetworkCodeError, TrainingError, ZigguratError
from ziggurat.events import ErrorRaised, read_events
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec

pytestmark = pytest.mark.usefixtures("cold_starts")

NETWORK = """
import os, threading
import numpy

print("a network is made")
# HEAD

class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.norm = nn.BatchNorm2d(1)
        self.fc1 = nn.Linear(input_shape[1] * input_shape[2], 16)
        self.dropout = nn.Dropout(0.2)
        self.fc2 = nn.Linear(16, nclasses)

    def forward(self, x):
        if self.training:
            # STEP
            pass
        return self.fc2(self.dropout(F.relu(self.fc1(self.norm(x * 0.0125).flatten(1)))))
"""

BAD_ROW = "if x.max() > 1e6:\n                "
"""Begins what happens where a row has a large number: on the last of two devices, where it is the last row."""


def network(step: str = "", head: str = "") -> str:
    return NETWORK.replace("# STEP", step).replace("# HEAD", head)


def build(text: str, **fields: Any) -> Any:
    request = ProgramRequest(
        network="net.py",
        network_text=text,
        devices=("cpu:0", "cpu:1"),
        **class_arrays((8, 8, 1), 10),
        batch_size=32,
        **fields,
    )
    return TorchBackend().build(request)


def batch(bad: bool = False) -> list[np.ndarray]:
    x, y = batches(1, 32)[0]
    if bad:
        x = x.copy()
        x[-1] = 1e9
    return [x, y]


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def assert_gone(pids: list[int]) -> None:
    assert pids
    wait_until(lambda: all(map(is_gone, pids)), 10.0, what="the end of the replicas")


def error_of_a_step(program: Any, bad: bool = True) -> ZigguratError:
    """Return the error of a step, behind a good one; all replicas are gone then."""
    pids = list(program.replicas)
    with pytest.raises(ZigguratError) as caught:
        if bad:
            program.step(batch(), ())
        program.step(batch(bad=bad), ())
    assert_gone(pids)
    assert not program.replicas
    program.close()
    return caught.value


def full_text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


@pytest.mark.timeout(600)
def test_an_error_of_a_network_on_another_device_is_raised():
    error = error_of_a_step(build(network(BAD_ROW + "raise ValueError('too bright')")))
    assert isinstance(error, NetworkCodeError)
    assert "too bright" in str(error)
    assert error.details["line"] == NETWORK.splitlines().index("            # STEP") + 2
    assert error.details["device"] == "cpu:1"
    assert "take_part" in full_text(error), "the traceback is that of the other process"


@pytest.mark.timeout(600)
def test_a_process_that_ends_ends_the_training():
    error = error_of_a_step(build(network(BAD_ROW + "os._exit(3)")))
    assert isinstance(error, TrainingError)
    assert "on cpu:1 has ended: it ended with code 3" in str(error)


@pytest.mark.timeout(600)
def test_a_killed_process_ends_the_training():
    program = build(network())
    program.step(batch(), ())
    os.kill(program.replicas[0], signal.SIGKILL)
    began = time.monotonic()
    error = error_of_a_step(program, bad=False)
    assert time.monotonic() - began < 10
    assert "it was ended by SIGKILL" in str(error)
    assert "out of memory" in error.advice


@pytest.mark.timeout(600)
def test_a_process_that_hangs_ends_the_training_with_its_stack():
    program = build(network(BAD_ROW + "threading.Event().wait(600)"), options={"device_timeout_s": 1})
    error = error_of_a_step(program)
    assert "The process on cpu:1 did not answer" in str(error)
    assert 'File "net.py"' in full_text(error)


@pytest.mark.timeout(600)
def test_an_error_while_another_device_builds_is_raised(tmp_path):
    mark = tmp_path / "built"
    head = f"if os.path.exists({str(mark)!r}):\n    raise OSError('already there')\nopen({str(mark)!r}, 'w').close()"
    error = error_of_a_step(build(network(head=head)), bad=False)
    assert isinstance(error, NetworkCodeError)
    assert "already there" in str(error)


@pytest.mark.timeout(600)
def test_an_error_on_the_first_device_ends_the_others():
    error = error_of_a_step(build(network("if x.min() < 0 or x.max() < 1e6:\n                return x")), bad=False)
    assert isinstance(error, NetworkCodeError)
    assert "device" not in error.details


@pytest.mark.timeout(600)
def test_a_forgotten_program_leaves_no_process():
    program = build(network())
    program.step(batch(), ())
    pids = list(program.replicas)
    del program
    gc.collect()
    assert_gone(pids)


# ---- jobs


def job(folder: Path, step: str = "", **changes: Any) -> JobFolder:
    """Return the folder of a job of 24 steps on two devices; its network prints once where it is made."""
    content = {
        "kind": "train",
        "version": 1,
        "backend": "torch",
        "network": {"path": "net.py", "source": "file", "text": network(step)},
        "data": "digits",
        "devices": ["cpu:0", "cpu:1"],
        "epochs": 2,
        "steps_per_epoch": 12,
        "batch_size": 32,
        "optimizer": "adam",
        "learning_rate": 0.01,
        "ema_decay": 0.9,
        "seed": 4,
        "checkpoints": {"every_steps": 3},
        "heartbeat_s": 0.1,
        **changes,
    }
    folder.mkdir()
    found = JobFolder(folder)
    save_spec(parse_spec(content, source="a test"), found.spec)
    return found


class Workers:
    """Starts workers in process groups of their own, and ends what is left of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, folder: JobFolder, **variables: str) -> subprocess.Popen[bytes]:
        output = self._folder / f"output-{len(self._started)}.txt"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "ziggurat.worker", str(folder.path)],
                env={**os.environ, "OMP_NUM_THREADS": "1", "HOME": str(self._folder), **variables},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def run(self, folder: JobFolder) -> str:
        process = self.start(folder)
        assert process.wait(120) == 0
        return (self._folder / f"output-{len(self._started) - 1}.txt").read_text()

    def replicas(self) -> list[int]:
        """Return the replicas of the newest worker, once they are there."""
        parent = psutil.Process(self._started[-1].pid)

        def there() -> list[int]:
            children = parent.children(recursive=True)
            return [each.pid for each in children if "ziggurat.backends.torch.replica" in each.cmdline()]

        return wait_until(there, 60, what="a replica")

    def close(self) -> None:
        for process in self._started:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    found = Workers(tmp_path)
    yield found
    found.close()


def wait_for_step(folder: JobFolder, step: int) -> None:
    def reached() -> bool:
        beat = read_heartbeat(folder.heartbeat)
        return beat is not None and beat.phase == "training" and beat.global_step >= step

    wait_until(reached, 60, what=f"step {step}")


def arrays_of(folder: JobFolder) -> dict[str, np.ndarray]:
    newest = CheckpointStore(folder.checkpoints, writable=False).latest()
    assert newest is not None
    assert newest[0].step == 24
    return newest[1].arrays


@pytest.mark.nightly
def test_a_killed_job_resumes_bit_for_bit(workers, tmp_path):
    whole = job(tmp_path / "whole")
    said = workers.run(whole)
    assert said.count("a network is made") == 1, "the other process prints nothing"

    step = int(np.random.default_rng().integers(1, 20))
    broken = job(tmp_path / "broken", "threading.Event().wait(0.05)")
    process = workers.start(broken)
    wait_for_step(broken, step)
    replicas = workers.replicas()
    process.kill()
    process.wait()
    assert_gone(replicas)
    workers.run(broken)
    expected = arrays_of(whole)
    for name, values in arrays_of(broken).items():
        assert np.array_equal(values, expected[name]), f"{name}, killed at step {step} or later"


@pytest.mark.nightly
def test_an_interrupted_job_saves_and_ends_all_processes(workers, tmp_path):
    folder = job(tmp_path / "job", "threading.Event().wait(0.05)")
    process = workers.start(folder)
    wait_for_step(folder, 2)
    replicas = workers.replicas()
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 75
    assert_gone(replicas)
    assert CheckpointStore(folder.checkpoints, writable=False).latest() is not None


@pytest.mark.nightly
def test_a_job_says_which_device_failed(workers, tmp_path):
    # The processes run the same file; the others are those that the worker started.
    other = "'ziggurat.backends.torch.replica' in open('/proc/self/cmdline').read()"
    folder = job(tmp_path / "job", f"if {other} and self.norm.num_batches_tracked == 3:\n                1 / 0")
    process = workers.start(folder)
    assert process.wait(60) == NetworkCodeError.exit_code
    (raised,) = [each for each in read_events(folder.events)[0] if isinstance(each, ErrorRaised)]
    assert raised.error["details"]["device"] == "cpu:1"
    assert "ZeroDivisionError" in raised.traceback
    assert "take_part" in raised.traceback
