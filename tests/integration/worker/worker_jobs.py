"""Owns what the worker's tests share: tiny jobs, workers as real processes, and what of a job must be equal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import worker_plugins
from PIL import Image

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities import Heartbeat, read_heartbeat
from ziggurat.events import AttemptEnded, ErrorRaised, Event, Message, effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec

HERE = Path(__file__).parent
STEPS = 6
"""Steps in an epoch of the tiny job."""

LAST = 2 * STEPS
"""Its last step."""

MEASURED = {
    "Throughput (samples/sec)": "measured by the clock",
    "StepTime/p50_ms": "measured by the clock",
    "StepTime/p99_ms": "measured by the clock",
}
"""Curves that differ between two executions of the same job, and why."""

MAY_DIFFER = {
    **{f"latest/{tag}": why for tag, why in MEASURED.items()},
    **{f"callbacks/JSONWriter/{tag}": why for tag, why in MEASURED.items()},
    "callbacks/ModelSaver/saved_at": "times of saves; and a stop saves one checkpoint more",
    "callbacks/ModelSaver/keep_from": "a time: which checkpoints are kept for their age",
}
"""What differs in the meta of a checkpoint between two executions of the same job, and why. Nothing else may."""


def make_data(folder: Path) -> Path:
    """Make a set of 50 pictures (8, 8) of 3 classes to train on and 20 to test, as idx files."""
    random = np.random.default_rng(5)
    for split, count in (("train", 50), ("t10k", 20)):
        labels = np.arange(count, dtype=np.uint8) % 3
        pictures = random.integers(0, 90, (count, 8, 8)).astype(np.uint8)
        for number, label in enumerate(labels):
            pictures[number, 2 * label : 2 * label + 3] += 120
        _write_idx(folder / f"{split}-images-idx3-ubyte", pictures)
        _write_idx(folder / f"{split}-labels-idx1-ubyte", labels)
    return folder


def make_pictures(folder: Path) -> Path:
    """Make a folder of three classes with 20 PNG files (10, 12) each."""
    random = np.random.default_rng(6)
    for label in range(3):
        (folder / f"class{label}").mkdir()
        for number in range(20):
            pixels = random.integers(0, 80, (10, 12, 3)).astype(np.uint8)
            pixels[2 * label : 2 * label + 3] += 120
            Image.fromarray(pixels).save(folder / f"class{label}" / f"{number:02d}.png")
    return folder


def _write_idx(path: Path, values: np.ndarray) -> None:
    header = bytes((0, 0, 8, values.ndim)) + b"".join(size.to_bytes(4) for size in values.shape)
    path.write_bytes(header + values.tobytes())


def tiny_spec(data: Path, **changes: Any) -> dict[str, Any]:
    """Return the spec of a job of two epochs with everything that a resume must bring back."""
    content: dict[str, Any] = {
        "kind": "train",
        "version": 1,
        "backend": "null",
        "backend_options": {"hidden": 8, "dropout": 0.3},
        "network": "mlp",
        "data": str(data),
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 0.2,
        "schedule": "cosine",
        "seed": 11,
        "preprocessing": {"crop": 7, "mean": "image"},
        "augmentation": {"noise": 0.05, "flip": "fliplr"},
        "checkpoints": {"every_steps": 4, "keep_last": 3, "keep_best": "validation_error"},
        "early_stopping": {"tag": "validation_cost", "patience": 40},
        "callbacks": ["test_strike", "test_draws"],
        "monitors": ["events", "stats", "tensorboard"],
        "heartbeat_s": 0.2,
    }
    return content | changes


def make_job(folder: Path, data: Path, **changes: Any) -> Path:
    """Make a job folder, as ``ziggurat train`` does."""
    folder.mkdir(parents=True)
    save_spec(parse_spec(tiny_spec(data, **changes)), JobFolder(folder).spec)
    return folder


class Worker:
    """A worker that was started.

    Args:
        pid: its process.
        output: file of its standard output and error.
        poll: returns its exit code, or None while it is alive.
    """

    def __init__(self, pid: int, output: Path, poll: Callable[[], int | None]) -> None:
        self.pid = pid
        self._output = output
        self._poll = poll
        self._code: int | None = None

    @property
    def said(self) -> str:
        """What it wrote to standard output and error."""
        return self._output.read_text()

    def is_alive(self) -> bool:
        """Return whether it has not ended yet."""
        if self._code is None:
            self._code = self._poll()
        return self._code is None

    def wait(self, at_most_s: float = 90.0) -> int:
        """Wait for its end; return the exit code, negative for a signal."""
        wait_for(lambda: not self.is_alive(), "the end of the worker", at_most_s)
        assert self._code is not None
        return self._code

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)


class Workers:
    """Starts workers and leaves none behind.

    Args:
        folder: for outputs, and the installed plugins.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        installed = folder / "plugins" / "worker_plugins-1.0.dist-info"
        installed.mkdir(parents=True)
        (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: worker-plugins\nVersion: 1.0\n")
        (installed / "entry_points.txt").write_text(worker_plugins.ENTRY_POINTS)
        path = os.pathsep.join([str(HERE), str(folder / "plugins")])
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ZIGGURAT_")}
        self.environment = {**kept, "PYTHONPATH": path, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
        self._server = subprocess.Popen(
            [sys.executable, str(HERE / "worker_forks.py")],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._started: list[Worker] = []

    def start(
        self, folder: Path, *options: str, environment: dict[str, str] | None = None, largest_file_bytes: int = 0
    ) -> Worker:
        """Start a worker as a fork of a process that has its modules."""
        return self._fork(
            arguments=[*options, str(folder)],
            environment=environment or {},
            largest_file_bytes=largest_file_bytes,
        )

    def start_saver(self, folder: Path, seed: int) -> Worker:
        """Start a process that saves checkpoints into ``folder`` until it is killed."""
        return self._fork(arguments=[str(folder)], environment={}, largest_file_bytes=0, saver_seed=seed)

    def start_command(self, folder: Path, *options: str, environment: dict[str, str] | None = None) -> Worker:
        """Start a worker as everybody does: ``python -m ziggurat.worker``."""
        output = self._new_output()
        command = [sys.executable, "-m", "ziggurat.worker", *options, str(folder)]
        with output.open("wb") as file:
            process = subprocess.Popen(
                command,
                env={**self.environment, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        return self._keep(Worker(process.pid, output, process.poll))

    def execute(self, folder: Path, strike: str = "", **options: Any) -> int:
        """Start a worker and wait for its end; return the exit code.

        Args:
            folder: the job folder.
            strike: how and when it is ended, see ``worker_plugins``.
            options: of ``start``.
        """
        return self.start(folder, environment={"TEST_STRIKE": strike}, **options).wait()

    def close(self) -> None:
        """End the workers that are left, and the process that forks."""
        for worker in self._started:
            if worker.is_alive():
                worker.signal(signal.SIGKILL)
                worker.wait()
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(30)
        self._server.stdout.close()

    def _fork(self, **asked: Any) -> Worker:
        output = self._new_output()
        pid = self._ask({**asked, "output": str(output)})["pid"]
        return self._keep(Worker(pid, output, lambda: self._ask({"poll": pid})["code"]))

    def _keep(self, worker: Worker) -> Worker:
        self._started = [each for each in self._started if each.is_alive()] + [worker]
        return worker

    def _new_output(self) -> Path:
        return self._folder / f"output-{time.monotonic_ns()}.txt"

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return json.loads(self._server.stdout.readline())


def wait_for(condition: Callable[[], Any], what: str, at_most_s: float = 90.0) -> Any:
    """Wait until a condition holds; return what it gave."""
    last = time.monotonic() + at_most_s
    while not (found := condition()):
        assert time.monotonic() < last, f"waited {at_most_s:.0f} s for {what}"
        time.sleep(0.02)
    return found


def wait_for_step(folder: Path, step: int) -> Heartbeat:
    """Wait until a heartbeat says that ``step`` steps are done in training."""
    path = JobFolder(folder).heartbeat

    def reached() -> Heartbeat | None:
        heartbeat = read_heartbeat(path)
        is_there = heartbeat is not None and heartbeat.phase == "training" and heartbeat.global_step >= step
        return heartbeat if is_there else None

    return wait_for(reached, f"step {step}")


def events_of(folder: Path, kind: type[Event] = Event) -> list[Any]:
    """Return the events of a type."""
    return [event for event in read_events(JobFolder(folder).events)[0] if isinstance(event, kind)]


def end_of(folder: Path) -> AttemptEnded:
    """Return what the newest attempt said last."""
    last = events_of(folder)[-1]
    assert isinstance(last, AttemptEnded), last
    return last


def error_of(folder: Path) -> ErrorRaised:
    """Return the error that ended the newest attempt."""
    return events_of(folder, ErrorRaised)[-1]


def messages_of(folder: Path) -> list[str]:
    """Return the warnings."""
    return [event.text for event in events_of(folder, Message) if event.level == "warning"]


def steps_of(folder: Path) -> list[int]:
    """Return the steps of the checkpoints that load."""
    store = CheckpointStore(JobFolder(folder).checkpoints, writable=False)
    for info in store.list():
        store.load(info.name)
    return [info.step for info in store.list()]


def curves_of(folder: Path) -> dict[str, list[tuple[int, int, float]]]:
    """Return tag → (step, epoch, value), of what holds and is no measurement."""
    curves: dict[str, list[tuple[int, int, float]]] = {}
    for point in effective_scalars(events_of(folder)):
        if point.tag not in MEASURED:
            curves.setdefault(point.tag, []).append((point.step, point.epoch, point.value))
    return curves


def outcome_of(folder: Path) -> dict[str, Any]:
    """Return everything of a job that must not depend on how often it was interrupted, flat and by name."""
    store = CheckpointStore(JobFolder(folder).checkpoints, writable=False)
    newest = store.latest()
    assert newest is not None
    info, state, problems = newest
    assert problems == []
    lines = [json.loads(line) for line in JobFolder(folder).stats.read_text().splitlines()]
    return {
        "checkpoint": info.name,
        **{f"arrays/{name}": array.tolist() for name, array in state.arrays.items()},
        **{f"meta/{name}": value for name, value in _flat(state.meta).items() if name not in MAY_DIFFER},
        **{f"names/{given}": name for given, name in store.names().items()},
        **{f"curves/{tag}": points for tag, points in curves_of(folder).items()},
        "stats": [{tag: value for tag, value in line.items() if tag not in MEASURED} for line in lines],
    }


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """Return nested dicts as one, but for what is left out as a whole."""
    if not isinstance(value, dict) or name in MAY_DIFFER:
        return {name: value}
    parts = [_flat(part, f"{name}/{key}" if name else str(key)) for key, part in value.items()]
    return {name: value for part in parts for name, value in part.items()}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the names of what differs; NaN equals NaN."""
    return [name for name in {**one, **other} if json.dumps(one.get(name)) != json.dumps(other.get(name))]
