"""Benchmark of single predictions: a warm process against one process per image.

The two sides alternate image by image, so that any other load on the machine affects both.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from bench.parts.report import Options, Report, Row
from bench.parts.side import tree_cpu_s
from ziggurat.dataflow.dataset.digits import SklearnDigits
from ziggurat.dataflow.images import encode_image
from ziggurat.layout import JobFolder
from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool
from ziggurat.settings import load_settings
from ziggurat.specs import parse_spec, save_spec
from ziggurat.workspace.tasks import Tasks

__all__ = ["run"]

_WARM, _COLD = "warm process", "a process for each image"
_WARM_PICTURES = 50
"""Requests of the warm side for each one of the other: one alone is too short for the clock of CPU times."""


def run(options: Options) -> Report:
    """Measure."""
    report = Report(
        "One digit predicted: LeNet with TensorFlow, and a small network with NumPy",
        "picture",
        f"lenet, {_WARM}",
        [
            f"{options.rounds} interleaved rounds: one image by a process of its own, {_WARM_PICTURES} one after the "
            "other by the warm process; medians; the start of the warm process is not measured",
            "wall time is what somebody waits; CPU time is that of all processes",
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        for network, backend in (("mlp", "null"), ("lenet", "tensorflow")):
            _add(report, _job(Path(folder), network, backend), options.rounds)
    return report


def _add(report: Report, job: Path, rounds: int) -> None:
    """Add the two rows of a job and what its first request took."""
    name = job.name
    image = next(iter(SklearnDigits("val", shuffle=False, size=28)))[0]
    file = job / "digit.png"
    file.write_bytes(encode_image(image, "png"))
    picture, tasks = (str(file), file.read_bytes()), Tasks(load_settings())
    rows = {side: Row(f"{name}, {side}", [], []) for side in (_WARM, _COLD)}
    with InferencePool(INFERENCE_COMMAND, os.environ) as pool:
        began = time.perf_counter()
        pool.predict(job, None, [picture])
        first_s = time.perf_counter() - began
        pids = [each.pid for each in pool.status()]
        for _ in range(rounds):
            _measure(rows[_COLD], lambda: tasks.predict(job, [str(file)]), 1, [])
            _measure(rows[_WARM], lambda: pool.predict(job, None, [picture]), _WARM_PICTURES, pids)
    report.rows += rows.values()
    ratios = [cold / warm for cold, warm in zip(rows[_COLD].wall_us, rows[_WARM].wall_us)]
    report.notes.append(
        f"{name}: {statistics.median(ratios):.0f} times ({min(ratios):.0f} to {max(ratios):.0f}) as long is waited for "
        f"an image with a process of its own; the first request of the warm process took {first_s:.1f} s"
    )


def _measure(row: Row, predict: Callable[[], object], times: int, pids: list[int]) -> None:
    cpu_s, began = _cpu_s(pids), time.perf_counter()
    for _ in range(times):
        predict()
    row.wall_us.append(1e6 * (time.perf_counter() - began) / times)
    row.cpu_us.append(1e6 * (_cpu_s(pids) - cpu_s) / times)


def _cpu_s(pids: list[int]) -> float:
    """Return the CPU time of this process and those that it waited for, or of this process and some that live."""
    if not pids:
        return tree_cpu_s()
    living = (psutil.Process(pid).cpu_times() for pid in pids)
    return time.process_time() + sum(each.user + each.system for each in living)


def _job(folder: Path, network: str, backend: str) -> Path:
    """Return a job that is trained."""
    content = {
        "kind": "train",
        "version": 1,
        "data": "digits",
        "batch_size": 32,
        "seed": 3,
        "epochs": 2,
        "backend": backend,
        "network": network,
        "learning_rate": 0.02,
        "schedule": "fixed",
        "monitors": ["events"],
    }
    job = folder / network
    job.mkdir()
    save_spec(parse_spec(content, source="a benchmark"), JobFolder(job).spec)
    subprocess.run([sys.executable, "-m", "ziggurat.worker", str(job)], check=True, capture_output=True)
    return job
