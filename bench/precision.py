"""Benchmark of number formats: training steps in bf16 and in float32, LeNet and ResNet-18, on this CPU.

Each side is a TensorFlow program as in a job, in its own process; a step is one batch in memory. To imitate a CPU
without bf16 instructions, the benchmark disables them, so that the CPU must convert back and forth.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.parts.report import Options, Report, Row
from bench.parts.rounds import Side, measure

__all__ = ["run", "steps"]

_CASES = (
    ("LeNet, batch of 64", "lenet", (28, 28, 1), 64, 40, ""),
    ("LeNet, batch of 4", "lenet", (28, 28, 1), 4, 100, ""),
    ("ResNet-18, batch of 32", "resnet18", (32, 32, 3), 32, 3, ""),
    ("LeNet, batch of 64, no bf16 instructions", "lenet", (28, 28, 1), 64, 40, "AVX512_CORE_VNNI"),
    ("ResNet-18, batch of 32, no bf16 instructions", "resnet18", (32, 32, 3), 32, 2, "AVX512_CORE_VNNI"),
)
"""Title, network, input shape, batch size, steps in a round, and the newest instructions that oneDNN may use."""
_FORMATS = ("float32", "bf16")
_EVEN = 0.05
_FLAGS = ("avx512_bf16", "amx_bf16")


def run(options: Options) -> Report:
    """Measure."""
    rows: list[Row] = []
    left_out: dict[str, str] = {}
    notes = [
        f"instructions of this CPU for bf16: {', '.join(_instructions()) or 'none'}",
        f"{options.rounds} interleaved rounds a side in processes of their own, warm-up dropped; medians",
        "compare the formats of one network and batch; the last column is for the first network only",
    ]
    for title, network, shape, batch_size, count, newest in _CASES:
        fixed = {"network": network, "shape": shape, "batch_size": batch_size, "newest": newest}
        sides = [Side(f"{title}, {each}", "bench.precision:steps", {**fixed, "precision": each}) for each in _FORMATS]
        part = measure(Report("", "step", ""), sides, options, batches=count, batch_size=1)
        rows += part.rows
        left_out |= part.left_out
        if len(part.rows) == len(_FORMATS):
            notes.append(_sentence(title, *part.rows))
    baseline = f"{_CASES[0][0]}, float32"
    return Report("Training steps in bf16 and in float32", "step", baseline, notes, rows, left_out)


def steps(network: str, precision: str, shape: list[int], batch_size: int, newest: str) -> Iterator[None]:
    """Yield after each training step.

    Args:
        network: name of a standard network.
        precision: ``float32`` or ``bf16``.
        shape: (H, W, C) of a sample.
        batch_size: samples in a step.
        newest: oneDNN's name of the newest instructions that it may use; empty for those of the CPU.
    """
    if newest:
        os.environ["ONEDNN_MAX_CPU_ISA"] = newest
    from ziggurat.backends.tensorflow.backend import TensorFlowBackend
    from ziggurat.engine.backend import ProgramRequest, class_arrays

    program = TensorFlowBackend().build(
        ProgramRequest(
            network=network,
            **class_arrays(shape, 10),
            batch_size=batch_size,
            optimizer="momentum",
            precision=precision,
        )
    )
    random = np.random.default_rng(0)
    batch = [random.uniform(0, 255, (batch_size, *shape)).astype(np.float32), random.integers(0, 10, batch_size)]
    program.declare(["cost"])
    program.step(batch, ["cost"])
    while True:
        program.step(batch, ())
        yield


def _sentence(title: str, float32: Row, bf16: Row) -> str:
    """Return what bf16 gives a network, from the ratios of the same rounds."""
    wall, cpu = _ratios(float32.wall_us, bf16.wall_us), _ratios(float32.cpu_us, bf16.cpu_us)
    ratio = statistics.median(cpu)
    verdict = "faster" if ratio > 1 + _EVEN else "SLOWER" if ratio < 1 - _EVEN else "no faster"
    return (
        f"{title}: float32 / bf16 is {ratio:.2f} in CPU time ({min(cpu):.2f} to {max(cpu):.2f}) and "
        f"{statistics.median(wall):.2f} in wall time: bf16 is {verdict}"
    )


def _ratios(float32: list[float], bf16: list[float]) -> list[float]:
    return [one / other for one, other in zip(float32, bf16)]


def _instructions() -> list[str]:
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return []
    return [flag for flag in _FLAGS if flag in words]
