"""Benchmark of the test batch: what it foretells of time and memory, against the real job, in turns.

Each round tests a job and then trains it as a worker of its own; the ratios are of what was foretold to what the job
took: wall time from the start of the process to its end, and the peak of its resident memory.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.parts.photographs import photographs
from bench.parts.report import Options
from ziggurat.layout import JobFolder
from ziggurat.specs import TrainSpec, parse_spec, save_spec
from ziggurat.workspace.tasks import run_task
from ziggurat.workspace.training_estimates import whole_time

__all__ = ["TestBatchReport", "run"]

_POLL_S = 0.02
_GOAL_TIME, _GOAL_MEMORY = 0.2, 0.1

_JOBS: dict[str, dict[str, Any]] = {
    "mlp, NumPy, digits": {"backend": "null", "network": "mlp", "data": "digits", "epochs": 200},
    "LeNet, digits": {"network": "lenet", "data": "digits", "epochs": 40},
    "small convolutional network, digits": {"network": "convnet", "data": "digits", "epochs": 6},
}
_PHOTOGRAPHS: dict[str, dict[str, Any]] = {
    "small convolutional network, photographs": {
        "network": "convnet",
        "epochs": 3,
        "preprocessing": {"size": [72, 72], "crop": 64, "channels": 3},
        "augmentation": {"flip": "fliplr", "hue": 0.02},
        "batch_size": 32,
    },
}


@dataclass
class TestBatchReport:
    """What was foretold and what came.

    Args:
        rows: job → (expected seconds, seconds, expected bytes, bytes) of each round.
    """

    __test__ = False  # no test, whatever pytest thinks of its name

    rows: dict[str, list[tuple[float, float, float, float]]] = field(default_factory=dict)

    def text(self) -> str:
        """Return the report for people; its table is Markdown."""
        lines = [
            "Test batch: what it expects of a job, against the job",
            f"- goals: time within {_GOAL_TIME:.0%}, memory within {_GOAL_MEMORY:.0%}; medians, ranges in parentheses",
            "",
            "| job | seconds | expected ÷ took | MiB at its peak | expected ÷ took |",
            "|---|--:|--:|--:|--:|",
        ]
        for name, rounds in self.rows.items():
            seconds, size = statistics.median(each[1] for each in rounds), statistics.median(each[3] for each in rounds)
            times, sizes = [each[0] / each[1] for each in rounds], [each[2] / each[3] for each in rounds]
            lines.append(f"| {name} | {seconds:.1f} | {_spread(times)} | {size / (1 << 20):.0f} | {_spread(sizes)} |")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        names = ("expected_s", "took_s", "expected_bytes", "took_bytes")
        return {
            "jobs": {job: [dict(zip(names, each, strict=True)) for each in rows] for job, rows in self.rows.items()}
        }


def run(options: Options) -> TestBatchReport:
    """Measure."""
    data = {"source": str(photographs(options.detail))}
    jobs = {**_JOBS, **{name: {**fields, "data": data} for name, fields in _PHOTOGRAPHS.items()}}
    specs = {name: _spec(fields) for name, fields in jobs.items()}
    report = TestBatchReport({name: [] for name in specs})
    for _ in range(options.rounds):
        for name, spec in specs.items():
            found = _tested(spec)
            took_s, took_bytes = _train(spec)
            report.rows[name].append((whole_time(found, spec).total_s, took_s, found["memory_bytes"], took_bytes))
    return report


def _spec(fields: dict[str, Any]) -> TrainSpec:
    spec = parse_spec({"kind": "train", "version": 1, **fields})
    assert isinstance(spec, TrainSpec)
    return spec


def _tested(spec: TrainSpec) -> dict[str, Any]:
    """Return what a test batch of a job finds."""
    with tempfile.TemporaryDirectory() as folder:
        request = {"spec": spec.model_dump(mode="json"), "find_rate": False, "began": time.time(), "folder": folder}
        return run_task("test_batch", request, output=subprocess.DEVNULL)  # pyright: ignore[reportArgumentType]


def _train(spec: TrainSpec) -> tuple[float, float]:
    """Execute a job; return its seconds, and the bytes of its peak."""
    with tempfile.TemporaryDirectory() as folder:
        job = JobFolder(Path(folder, "job"))
        job.path.mkdir()
        save_spec(spec, job.spec)
        began, peak = time.perf_counter(), 0.0
        command = [sys.executable, "-m", "ziggurat.worker", str(job.path)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
            while worker.poll() is None:
                peak = max(peak, _peak_bytes(worker.pid))
                time.sleep(_POLL_S)
            took_s = time.perf_counter() - began
        if worker.returncode:
            raise RuntimeError(f"the job ended with exit code {worker.returncode}")
        return took_s, peak


def _peak_bytes(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0.0)


def _spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
