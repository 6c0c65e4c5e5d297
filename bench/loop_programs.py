"""Benchmark of training programs: ``ziggurat.tf`` against raw ``session.run``, ``tf_keras`` and Keras 3 ``fit``.

Every side is a process of its own that waits for its turn, because the frameworks cannot share one. All train the same
network by SGD with momentum on batches that lie in memory; only the steps are measured, not the ends of epochs.
Tensorpack takes part where it is installed.
"""

from __future__ import annotations

import numpy as np

from bench.parts.program_sides import LIMIT, OURS, RAW, SIDES, Network, missing
from bench.parts.report import Options, Report, Row, interval
from bench.parts.turns import take_turns

__all__ = ["run"]

_NETWORKS = {
    "one layer of 7,850 weights, batches of one sample": Network("tiny", 28, 1, 2000),
    "LeNet on 28 x 28, batches of 64": Network("lenet", 28, 64, 200),
    "a residual network of 8 layers on 32 x 32, batches of 32": Network("resnet", 32, 32, 100),
}
_GOAL, _GOAL_US = 0.35, 60.0


def run(options: Options) -> Report:
    """Measure."""
    notes, rows, left_out = [], [], {}
    for title, network in _NETWORKS.items():
        absent = {name: reason for name in SIDES if (reason := missing(name))}
        left_out |= absent
        sides = {name: side for name, side in SIDES.items() if name not in absent}
        measured = take_turns(sides, network, network.steps, max(3, options.rounds))
        ours, raw, limit = (measured[name] for name in (OURS, RAW, LIMIT))
        notes.append(
            f"{title}, CPU time: {OURS} / {RAW} {interval(np.array(ours.cpu_us) / np.array(raw.cpu_us))}"
            + (f"; goal: at most {_GOAL}" if network.name == "tiny" else "")
        )
        own = np.array(ours.thread_us) - np.array(limit.thread_us)
        notes.append(
            f"{title}, own CPU time of the thread that trains, beyond a prepared call: {interval(own, 0)} µs a step; "
            f"goal: at most {_GOAL_US:g}"
        )
        for name, side in measured.items():
            if name not in (OURS, RAW):
                ratio = np.array(ours.wall_us) / np.array(side.wall_us)
                notes.append(f"{title}, wall time: {OURS} / {name} {interval(ratio)}")
            rows.append(Row(f"{network.name}: {name}", side.cpu_us, side.wall_us, is_limit=name == LIMIT))
    return Report(
        "Training programs: the same network, optimizer and batches",
        "step",
        f"tiny: {RAW}",
        [f"{options.rounds} interleaved rounds in one process tree, warm-up dropped; CPU time of each process", *notes],
        rows,
        left_out,
    )
