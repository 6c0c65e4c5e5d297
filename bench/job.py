"""Benchmark of a real job: JPEG files of 500 px with random crops and a network that is one global mean.

A job of one epoch and one of several take turns with the fast loader alone, which makes the same crops. The
difference between the two jobs is what their epochs cost, so that the start of the process, the imports and the graph
do not count; validation is off, checkpoints, events and the default callbacks are as in any job.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.parts.photo_sides import BATCH
from bench.parts.photographs import equal_photographs
from bench.parts.report import Options, Report, Row
from bench.parts.rounds import Side, SideProcess
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec

__all__ = ["run"]

_EPOCHS = (1, 4)
_LOADER = "fast loader alone"
_LOADER_BATCHES = 160
_SIZE, _CROP = 256, 224
_GOAL = 0.9

_JOBS: dict[str, dict[str, Any]] = {
    "job, TensorFlow": {},
    "job, TensorFlow, whole images": {"loading": {"decode": "picture"}},
}
_NETWORK = """
class UserModel(Tower):
    @model_property
    def inference(self):
        net = tf.reduce_mean(self.x, [1, 2, 3])[:, None] * 0.01
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="fc")

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


def run(options: Options) -> Report:
    """Measure."""
    folder, count = equal_photographs(options.detail)
    rows = {name: Row(name, [], []) for name in (_LOADER, *_JOBS)}
    arguments = {"folder": str(folder), "size": _SIZE, "crop": _CROP}
    loader = SideProcess(Side(_LOADER, "bench.parts.photo_sides:scaled_crops", arguments))
    try:
        loader.wait_until_ready()
        loader.round(_LOADER_BATCHES)  # reads the files into the page cache
        for _ in range(options.rounds):
            _add(rows[_LOADER], loader.round(_LOADER_BATCHES), _LOADER_BATCHES * BATCH)
            for name, fields in _JOBS.items():
                (short_cpu_s, short_s), (long_cpu_s, long_s) = (_train(folder, fields, epochs) for epochs in _EPOCHS)
                samples = (_EPOCHS[1] - _EPOCHS[0]) * (count // BATCH) * BATCH
                _add(rows[name], (long_cpu_s - short_cpu_s, long_s - short_s), samples)
    finally:
        loader.end()
    return Report(
        f"A job: {count} JPEG files of 500 px -> {_SIZE} -> random crop {_CROP} -> flip -> float32 batch of {BATCH} "
        "-> global mean -> training step",
        "image",
        _LOADER,
        [
            f"{options.rounds} interleaved rounds; a job of {_EPOCHS[1]} epochs less one of {_EPOCHS[0]}; medians",
            f"goal: at least {_GOAL:g} against the fast loader alone",
        ],
        list(rows.values()),
    )


def _add(row: Row, took_s: tuple[float, float], samples: int) -> None:
    row.cpu_us.append(1e6 * took_s[0] / samples)
    row.wall_us.append(1e6 * took_s[1] / samples)


def _train(data: Path, fields: dict[str, Any], epochs: int) -> tuple[float, float]:
    """Execute a job; return the seconds of CPU time of its process, and of wall time."""
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder, "network.py")
        network.write_text(_NETWORK)
        job = JobFolder(Path(folder, "job"))
        job.path.mkdir()
        content = {
            "kind": "train",
            "version": 1,
            "backend": "tensorflow",
            "network": str(network),
            "data": {"source": str(data), "options": {"validation_share": 0}},
            "epochs": epochs,
            "batch_size": BATCH,
            "preprocessing": {"size": [_SIZE, _SIZE], "crop": _CROP, "channels": 3},
            "augmentation": {"flip": "fliplr"},
            "validation": {"every_epochs": 0},
            **fields,
        }
        save_spec(parse_spec(content), job.spec)
        began = time.perf_counter()
        worker = subprocess.Popen(
            [sys.executable, "-m", "ziggurat.worker", str(job.path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert worker.stderr is not None
        said = worker.stderr.read()
        _, status, usage = os.wait4(worker.pid, 0)
        worker.returncode = os.waitstatus_to_exitcode(status)
        if worker.returncode:
            raise RuntimeError(f"the job ended with exit code {worker.returncode}: {said.decode()[-2000:]}")
        return usage.ru_utime + usage.ru_stime, time.perf_counter() - began
