"""Shared parts of the job tests: a studio over the real store and real workers, tiny jobs, comparisons.

``python jobs_studio.py WORKSPACE`` works as a supervisor until it is killed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jobs_plugins
import numpy as np

from tests.waiting import PROCESS_S, wait_until
from ziggurat.entities import Job, NewJob, NodeResources, read_heartbeat
from ziggurat.events import effective_scalars, read_events
from ziggurat.jobs import Executor, LocalExecutor, StopGrace, Supervisor
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec
from ziggurat.store import Store

WORKER = (sys.executable, "-m", "ziggurat.worker")

MEASURED = ("Throughput (samples/sec)", "StepTime/p50_ms", "StepTime/p99_ms")
"""Curves that the clock decides."""

Curves = dict[str, list[tuple[int, float]]]


class Studio:
    """A store and a supervisor in a workspace; another one may take its place.

    Args:
        workspace: with ``data/`` and ``plugins/``.
        command: starts workers.
        places: jobs at a time.
        grace: how long a worker that was asked to stop may show no progress.
    """

    def __init__(
        self, workspace: Path, *, command: Sequence[str] = WORKER, places: int = 2, grace: StopGrace | None = None
    ) -> None:
        self.workspace = workspace
        self.store = Store.open(workspace / "studio.db")
        local = LocalExecutor(command, _environment(workspace), resources=lambda: NodeResources(cpu_slots=places))
        self.executor = self.executor_with(local)
        self.supervisor = Supervisor(self.store, self.executor, workspace, grace=grace)
        self.supervisor.start(every_s=0.1)

    def executor_with(self, local: LocalExecutor) -> Executor:
        """Return what starts workers, given what does so on this machine."""
        return local

    def close(self) -> None:
        """Leave the workers alone and end."""
        self.supervisor.close()
        self.store.close()

    def submit(self, job_id: str, spec: dict[str, Any]) -> Path:
        """Put a job into the queue; return its folder."""
        folder = self.workspace / "jobs" / job_id
        folder.mkdir(parents=True)
        JobFolder(folder).spec.write_text(json.dumps(spec))
        new = NewJob(id=job_id, kind="train", name=job_id, folder=os.fspath(folder), spec=spec, created=time.time())
        self.supervisor.submit(new)
        return folder

    def train(self, job_id: str, **changes: Any) -> Path:
        """Put a tiny training into the queue; return its folder."""
        spec = parse_spec(tiny_spec(self.workspace, **changes))
        folder = self.submit(job_id, spec.model_dump(mode="json"))
        save_spec(spec, JobFolder(folder).spec)
        return folder

    def job(self, job_id: str) -> Job:
        """Return a job as it is in the store."""
        return self.store.jobs.get(job_id)

    def wait_for(self, job_id: str, *states: str) -> Job:
        """Wait until a job is in one of some states."""

        def arrived() -> Job | None:
            return job if (job := self.job(job_id)).state in states else None

        return wait_until(arrived, PROCESS_S, what=lambda: f"{states}; it is {self.job(job_id)!r}")

    def wait_for_step(self, folder: Path, step: int) -> int:
        """Wait until the worker in a folder has done some steps; return its process number."""

        def there() -> int:
            beat = read_heartbeat(JobFolder(folder).heartbeat)
            return beat.pid if beat is not None and beat.phase == "training" and beat.global_step >= step else 0

        return wait_until(there, PROCESS_S, what=f"step {step}")

    def curves(self, job_id: str) -> Curves:
        """Return the points in the store, without those that the clock decides."""
        found: Curves = {}
        for tag in self.store.curves.tags(job_id):
            if tag not in MEASURED:
                curve = self.store.curves.curve(job_id, tag, max_points=1_000_000)
                found[tag] = list(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
        return found


def curves_of(folder: Path) -> Curves:
    """Return the points that hold by the file of events alone."""
    found: Curves = {}
    for point in effective_scalars(read_events(JobFolder(folder).events)[0]):
        if point.tag not in MEASURED:
            found.setdefault(point.tag, []).append((point.step, point.value))
    return {tag: sorted(points) for tag, points in found.items()}


def make_workspace(folder: Path) -> Path:
    """Make a workspace with a tiny dataset and the plugin."""
    installed = folder / "plugins" / "jobs_plugins-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: jobs-plugins\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(jobs_plugins.ENTRY_POINTS)
    (folder / "data").mkdir()
    random = np.random.default_rng(5)
    for split, count in (("train", 50), ("val", 20), ("t10k", 20)):
        labels = np.arange(count, dtype=np.uint8) % 3
        pictures = random.integers(0, 90, (count, 8, 8)).astype(np.uint8)
        for name, values in (("images-idx3", pictures), ("labels-idx1", labels)):
            header = bytes((0, 0, 8, values.ndim)) + b"".join(size.to_bytes(4) for size in values.shape)
            (folder / "data" / f"{split}-{name}-ubyte").write_bytes(header + values.tobytes())
    return folder


def tiny_spec(workspace: Path, **changes: Any) -> dict[str, Any]:
    """Return the spec of a job of 24 steps that takes at least two seconds."""
    content: dict[str, Any] = {
        "kind": "train",
        "version": 1,
        "backend": "null",
        "backend_options": {"hidden": 8, "dropout": 0.3},
        "network": "mlp",
        "data": str(workspace / "data"),
        "epochs": 4,
        "batch_size": 8,
        "learning_rate": 0.2,
        "seed": 11,
        "checkpoints": {"every_steps": 4, "keep_last": 3},
        "callbacks": paced(0.1),
        "monitors": ["events"],
        "heartbeat_s": 0.1,
    }
    return content | changes


def paced(each_s: float) -> list[dict[str, Any]]:
    """Return the callbacks of a job whose steps take so long."""
    return [{"name": "jobs_test_pace", "options": {"each_s": each_s}}]


COMMAND = [sys.executable, __file__]
"""Starts this file as a program, in ``process_environment()``."""


def process_environment() -> dict[str, str]:
    """Return the environment of this file as a program, which finds what it shares with other tests."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}


def _environment(workspace: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ZIGGURAT_")}
    path = os.pathsep.join([str(Path(__file__).parent), str(workspace / "plugins")])
    return {**kept, "PYTHONPATH": path, "HOME": str(workspace), "XDG_CONFIG_HOME": str(workspace)}


if __name__ == "__main__":
    Studio(Path(sys.argv[1]))
    threading.Event().wait()
