"""Benchmark of JPEG files in folders, read into batches of 64 random crops of 224 px."""

from __future__ import annotations

from bench.parts.photo_sides import BATCH, WORKERS
from bench.parts.photographs import describe, photographs
from bench.parts.report import Options, Report
from bench.parts.rounds import Side, measure

__all__ = ["run"]

_BATCHES = 12


def run(options: Options) -> Report:
    """Measure."""
    folder = photographs(options.detail)
    report = Report(
        "JPEG folder -> random-resized crop 224 -> flip -> uint8 batch of 64",
        "image",
        "tf.data",
        [
            describe(folder),
            f"{options.rounds} interleaved rounds of {_BATCHES} batches a side, warm-up dropped; medians",
            f"{WORKERS} worker threads or processes each; limits: one thread, files in memory, nothing but the decoder",
        ],
    )
    return measure(report, [*_sides(str(folder))], options, batches=_BATCHES, batch_size=BATCH)


def _sides(folder: str) -> list[Side]:
    loaders = "bench.parts.photo_sides"
    at = {"folder": folder}
    return [
        Side("Ziggurat", f"{loaders}:ziggurat", at),
        Side("Ziggurat, OpenCV only", f"{loaders}:ziggurat", {**at, "engine": "opencv"}),
        Side("tf.data", "bench.parts.tensorflow_sides:tf_files", at),
        Side("Tensorpack MultiProcessRunnerZMQ", f"{loaders}:tensorpack_runner", at),
        Side("Tensorpack MultiProcessMapDataZMQ", f"{loaders}:tensorpack_map", at),
        Side("torch DataLoader, OpenCV", f"{loaders}:torch_files", {**at, "decoder": "opencv"}),
        Side("torch DataLoader, PIL", f"{loaders}:torch_files", {**at, "decoder": "pil"}),
        Side("Grain, threads", f"{loaders}:grain_files", {**at, "workers": "threads"}),
        Side("Grain, processes", f"{loaders}:grain_files", {**at, "workers": "processes"}),
        *limits(folder),
    ]


def limits(folder: str) -> list[Side]:
    """Return the limits of the decoder."""
    names = {"whole": "decode whole", "half": "decode at half size", "crop": "decode only the crop"}
    names["reduced crop"] = "decode only the crop, reduced"
    return [
        Side(name, "bench.parts.limit_sides:decode", {"folder": folder, "part": part}, is_limit=True)
        for part, name in names.items()
    ]
