"""Benchmark of whole jobs on a tiny network: CPU time a step by parts, against a raw loop over the same samples.

The network is one layer and its samples lie in memory, so that nothing but overhead is left. Every side is a process of
its own that waits for its turn; the worker's threads and what ends an epoch are measured, too.
"""

from __future__ import annotations

import importlib.util

import numpy as np

from bench.parts.job_sides import CALLBACKS, DATA, ENDS, FLOOR, JOB, PROGRAM, RAW, SIDES, Case
from bench.parts.report import Options, Report, Row, interval
from bench.parts.turns import Times, take_turns

__all__ = ["run"]

_CASES = (Case("torch", 1, 2000), Case("torch", 64, 1000), Case("tensorflow", 1, 2000))
_GOAL = 1.5
_PARTS = (
    ("numbers of every step", RAW, FLOOR),
    ("the program beside them", FLOOR, PROGRAM),
    ("callbacks, monitors and loop", PROGRAM, CALLBACKS),
    ("data", CALLBACKS, DATA),
    ("threads of the worker", DATA, JOB),
    ("ends of epochs", JOB, ENDS),
)
"""Part of a job, with the sides between which it lies."""


def run(options: Options) -> Report:
    """Measure."""
    rounds = max(3, options.rounds)
    notes = [f"{rounds} interleaved rounds, warm-up dropped; one layer on 8 × 8 px, one thread computes"]
    rows, absent = [], {}
    for case in _CASES:
        if importlib.util.find_spec(case.backend) is None:
            absent[case.backend] = "it is not installed"
            continue
        measured = take_turns(SIDES, case, case.steps, rounds)
        title = f"{case.backend}, batches of {case.batch_size}"
        notes += [f"{title}: {each}" for each in _sentences(measured, case.steps)]
        rows += [Row(f"{title}: {name}", side.cpu_us, side.wall_us) for name, side in measured.items()]
    first = f"{_CASES[0].backend}, batches of {_CASES[0].batch_size}: {RAW}"
    return Report("Whole jobs on a tiny network with samples in memory", "step", first, notes, rows, absent)


def _sentences(measured: dict[str, Times], steps: int) -> list[str]:
    cpu = {name: np.array(side.cpu_us) for name, side in measured.items()}
    found = [
        f"a whole job / raw loop {interval(cpu[JOB] / cpu[RAW])}, / raw loop that keeps its numbers "
        f"{interval(cpu[JOB] / cpu[FLOOR])}; goal: at most {_GOAL}"
    ]
    found += [f"{part}: {interval(cpu[after] - cpu[before], 1)} µs a step" for part, before, after in _PARTS]
    found.append(f"an end of an epoch: {interval((cpu[ENDS] - cpu[JOB]) * steps / 1000, 1)} ms")
    beside = cpu[JOB] - np.array(measured[JOB].thread_us)
    return [*found, f"outside of the thread that trains: {interval(beside, 1)} µs a step of a whole job"]
