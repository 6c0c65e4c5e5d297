"""Benchmark of PyTorch training loops: ``ziggurat.torch`` with default callbacks against a loop written by hand.

Every side is a process of its own that waits for its turn. All train the same network by SGD with momentum on batches
that lie in memory, on one thread; only the steps are measured, not the ends of epochs. What a loop costs by itself is
measured in further sides, whose clocks leave out the forward and backward pass, the loss and the step of the optimizer;
what frees the memory of a step stays in both.
Lightning and Accelerate take part where they are installed.
"""

from __future__ import annotations

import numpy as np

from bench.parts.report import Options, Report, Row, interval
from bench.parts.torch_sides import OURS, OURS_APART, RAW, RAW_APART, SIDES, Net, missing
from bench.parts.turns import take_turns

__all__ = ["run"]

_NETWORKS = {
    "one layer of 7,850 weights, batches of one sample": Net("tiny", 28, 1, 2000),
    "LeNet on 28 x 28, batches of 64": Net("lenet", 28, 64, 200),
    "ResNet-18 on 32 x 32, batches of 32": Net("resnet18", 32, 32, 100),
}
_GOAL, _GOAL_US = 1.25, 60.0


def run(options: Options) -> Report:
    """Measure."""
    notes, rows = [], []
    absent = {name: reason for name in SIDES if (reason := missing(name))}
    sides = {name: side for name, side in SIDES.items() if name not in absent}
    for title, net in _NETWORKS.items():
        measured = take_turns(sides, net, net.steps, max(3, options.rounds))
        ours, raw = measured[OURS], measured[RAW]
        for name, side in measured.items():
            if name not in (OURS, OURS_APART, RAW, RAW_APART):
                notes.append(f"{title}, wall time: {name} / {RAW} {_ratio(side.wall_us, raw.wall_us)}")
        goal = f"; goal: at most {_GOAL}" if net.name == "tiny" else ""
        notes.append(f"{title}, wall time: {OURS} / {RAW} {_ratio(ours.wall_us, raw.wall_us)}{goal}")
        notes.append(f"{title}, CPU time: {OURS} / {RAW} {_ratio(ours.cpu_us, raw.cpu_us)}")
        own, loop = (np.array(measured[name].thread_us) for name in (OURS_APART, RAW_APART))
        notes.append(
            f"{title}, CPU time a step beside PyTorch's calls: {OURS} {interval(own, 0)} µs, "
            f"{RAW} {interval(loop, 0)} µs"
        )
        notes.append(f"{title}, own CPU time a step: {interval(own - loop, 0)} µs; goal: at most {_GOAL_US:g} µs")
        rows += [Row(f"{net.name}: {name}", measured[name].cpu_us, measured[name].wall_us) for name in (RAW, OURS)]
    return Report(
        "PyTorch training loops: the same network, optimizer and batches",
        "step",
        f"tiny: {RAW}",
        [f"{max(3, options.rounds)} interleaved rounds, warm-up dropped; one thread computes", *notes],
        rows,
        absent,
    )


def _ratio(one: list[float], other: list[float]) -> str:
    return interval(np.array(one) / np.array(other))
