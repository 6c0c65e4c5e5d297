"""Benchmark of small arrays in memory: 28x28 uint8, shuffled, to batches of 128."""

from __future__ import annotations

from bench.parts.array_sides import BATCH
from bench.parts.report import Options, Report
from bench.parts.rounds import Side, measure

__all__ = ["run"]

_BATCHES = 1000


def run(options: Options) -> Report:
    """Measure."""
    report = Report(
        "28x28 uint8 arrays in memory, shuffled -> batches of 128",
        "image",
        "Tensorpack",
        [
            f"{options.rounds} interleaved rounds of {_BATCHES} batches a side, warm-up dropped; medians",
            "one process and no workers, but the threads that a library starts by itself",
            "with a map: a Python function of one sample (255 - image)",
        ],
    )
    at = "bench.parts.array_sides"
    sides = [
        Side("Ziggurat", f"{at}:ziggurat", {"mapped": False}),
        Side("Ziggurat, with a map", f"{at}:ziggurat", {"mapped": True}),
        Side("Tensorpack", f"{at}:tensorpack", {"mapped": False}),
        Side("Tensorpack, with a map", f"{at}:tensorpack", {"mapped": True}),
        Side("torch DataLoader", f"{at}:torch", {"batched_index": False}),
        Side("torch DataLoader, batched index", f"{at}:torch", {"batched_index": True}),
        Side("tf.data", f"{at}:tf_data", {"gather": False}),
        Side("tf.data, gather by batch", f"{at}:tf_data", {"gather": True}),
        Side("Grain", f"{at}:grain"),
        Side("copy by index", f"{at}:copy", is_limit=True),
    ]
    return measure(report, sides, options, batches=_BATCHES, batch_size=BATCH)
