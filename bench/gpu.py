"""Benchmark of PyTorch jobs on a GPU: from JPEG files to weights, against a loop by hand whose batch is on the device.

The loop by hand is the limit: it loads nothing. Every side is a process of its own that waits for its turn; all share
the GPU, which only the side whose turn it is uses.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import numpy as np

from bench.parts.photographs import describe, photographs
from bench.parts.report import Options, Report, Row, interval
from bench.parts.turns import Times, take_turns

__all__ = ["run"]

_GOAL = 0.95


def run(options: Options) -> Report:
    """Measure."""
    try:
        import torch
    except ModuleNotFoundError:
        return _left_out("PyTorch is not installed")
    on_cpu = bool(os.environ.get("ZIGGURAT_BENCH_GPU_ON_CPU"))
    if not on_cpu and not torch.cuda.is_available():
        return _left_out("there is no GPU")
    from bench.parts import gpu_sides as sides

    photos = str(photographs(options.detail))
    boxes = str(sides.detection_set(options.detail))
    cases = [
        sides.Case("resnet50", 224, 256, 20, "bf16", photos),
        sides.Case("resnet50", 224, 256, 20, "fp16", photos),
        sides.Case("resnet18", 224, 256, 40, "bf16", photos),
        sides.Case("detector_small", 320, 64, 20, "bf16", boxes),
        sides.Case("detector_medium", 320, 64, 20, "bf16", boxes),
    ]
    if on_cpu:  # to try it out, and no measurement
        cases = [replace(each, px=64, batch_size=4, steps=2, precision="bf16", device="cpu") for each in cases]
        cases = [replace(each, network=each.network.replace("50", "18").replace("medium", "nano")) for each in cases]
    name = "the CPU" if on_cpu else torch.cuda.get_device_name(0)
    rounds = max(3, options.rounds)
    notes = [
        f"{name}, PyTorch {torch.__version__}, {os.cpu_count()} processors",
        describe(photographs(options.detail)),
        f"{rounds} interleaved rounds, warm-up dropped; a job has its own callbacks, and no validation",
    ]
    rows = []
    for case in cases:
        title = f"{case.network}, {case.px} px, {case.precision}, batches of {case.batch_size}"
        trained = take_turns(sides.TRAINING, case, case.steps, rounds)
        notes.append(f"{title}, training: {_speeds(trained, sides.RAW, sides.JOB, case.batch_size)}")
        rows += _rows(f"{title}, training: ", trained, case.batch_size, sides.RAW)
        print(notes[-1], file=sys.stderr, flush=True)  # the whole takes minutes
        if case.is_detector:
            both = {sides.RAW: sides.predict_raw, "program": sides.predict_ours}
            found = take_turns(both, case, case.steps, rounds)
            notes.append(f"{title}, prediction: {_speeds(found, sides.RAW, 'program', case.batch_size)}")
            rows += _rows(f"{title}, prediction: ", found, case.batch_size, sides.RAW)
    notes.append(f"goal of training: at least {_GOAL:g} of the loop by hand")
    return Report("PyTorch jobs on a GPU", "image", rows[0].side, notes, rows)


def _speeds(times: dict[str, Times], raw: str, ours: str, batch_size: int) -> str:
    """Return images a second of both sides, and their ratio in the same rounds."""
    share = np.array(times[raw].wall_us) / np.array(times[ours].wall_us)
    speeds = [batch_size * 1e6 / np.median(times[name].wall_us) for name in (ours, raw)]
    return f"{speeds[0]:,.0f} images/s against {speeds[1]:,.0f}, share {interval(share)}"


def _rows(title: str, times: dict[str, Times], batch_size: int, raw: str) -> list[Row]:
    return [
        Row(
            title + name,
            [each / batch_size for each in side.cpu_us],
            [each / batch_size for each in side.wall_us],
            is_limit=name == raw,
        )
        for name, side in times.items()
    ]


def _left_out(reason: str) -> Report:
    return Report("PyTorch jobs on a GPU", "image", "", [], [], {"all": reason})
