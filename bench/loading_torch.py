"""Benchmark of data loading in a PyTorch training: our DataFlow against ``DataLoader``, from JPEG files to weights.

All train the same small network on random crops of 224 px out of 512 photographs, with two workers that load. CPU time
is that of a side with all its processes.
"""

from __future__ import annotations

import numpy as np

from bench.parts.loading_sides import LIMIT, OPENCV, OURS, PIL, SIDES, STEPS
from bench.parts.photo_sides import BATCH, WORKERS
from bench.parts.photographs import describe, photographs
from bench.parts.report import Options, Report, Row, interval
from bench.parts.turns import take_turns

__all__ = ["run"]


def run(options: Options) -> Report:
    """Measure."""
    folder, rounds = photographs(options.detail), max(3, options.rounds)
    measured = take_turns(SIDES, str(folder), STEPS * BATCH, rounds)
    ours = measured[OURS]
    notes = [
        f"{other}, time / that of {OURS}: wall {_ratio(measured[other].wall_us, ours.wall_us)}, "
        f"CPU {_ratio(measured[other].cpu_us, ours.cpu_us)}"
        for other in (OPENCV, PIL)
    ]
    share = np.array(measured[LIMIT].wall_us) / np.array(ours.wall_us)
    notes.append(f"share of the speed with the batch in memory that {OURS} reaches: {interval(share)}")
    rows = [Row(name, times.cpu_us, times.wall_us, is_limit=name == LIMIT) for name, times in measured.items()]
    about = f"{rounds} interleaved rounds of {STEPS} batches of {BATCH}, warm-up dropped; {WORKERS} workers that load"
    return Report(
        "PyTorch training from JPEG files: random-resized crop 224 -> flip -> small convolutional network",
        "image",
        OPENCV,
        [describe(folder), about, *notes],
        rows,
    )


def _ratio(one: list[float], other: list[float]) -> str:
    return interval(np.array(one) / np.array(other))
