"""Benchmark of photographs in record stores, read into batches of 64 random crops of 224 px."""

from __future__ import annotations

from pathlib import Path

from bench.jpeg_folder import limits
from bench.parts.photo_sides import BATCH, WORKERS
from bench.parts.photographs import describe, photographs
from bench.parts.report import Options, Report
from bench.parts.rounds import Side, measure
from bench.parts.stores import SHORT_SIDE, stores

__all__ = ["run"]

_BATCHES = 12


def run(options: Options) -> Report:
    """Measure."""
    folder = photographs(options.detail)
    description = describe(folder)
    found = stores(folder)
    sizes = ", ".join(f"{name} {path.stat().st_size / 1e6:.0f} MB" for name, path in found.items())
    report = Report(
        "Record store -> random-resized crop 224 -> flip -> uint8 batch of 64",
        "image",
        "tf.data, TFRecord",
        [
            description,
            f"stores in the page cache: {sizes}",
            f"reduced: shorter side {SHORT_SIDE} px; tiled: re-encoded with the same tables and restart markers",
            f"{options.rounds} interleaved rounds of {_BATCHES} batches a side, warm-up dropped; medians",
            f"{WORKERS} worker threads or processes each; limits: one thread, files in memory, nothing but the decoder",
        ],
    )
    sides = [side for name, path in found.items() for side in _sides(name, path)]
    return measure(report, [*sides, *limits(str(folder))], options, batches=_BATCHES, batch_size=BATCH)


def _sides(name: str, path: Path) -> list[Side]:
    """Return the loaders that read a store."""
    loaders = "bench.parts.photo_sides"
    at = {"path": str(path)}
    return {
        "plain.lmdb": [
            Side("Ziggurat, JPEG as it came", f"{loaders}:ziggurat_store", at),
            Side("torch DataLoader, OpenCV", f"{loaders}:torch_lmdb", {**at, "decoder": "opencv"}),
            Side("Grain, threads", f"{loaders}:grain_lmdb", {**at, "workers": "threads"}),
        ],
        "tiled.lmdb": [
            Side("Ziggurat, tiled", f"{loaders}:ziggurat_store", at),
            Side("Ziggurat, tiled, OpenCV only", f"{loaders}:ziggurat_store", {**at, "engine": "opencv"}),
        ],
        "reduced.lmdb": [Side("Ziggurat, reduced and tiled", f"{loaders}:ziggurat_store", at)],
        "reduced.pixels": [Side("Ziggurat, reduced pixels", f"{loaders}:ziggurat_pixels", at)],
        "whole.pixels": [Side("Ziggurat, whole pixels", f"{loaders}:ziggurat_pixels", at)],
        "tensorpack.lmdb": [Side("Tensorpack MultiProcessMapDataZMQ", f"{loaders}:tensorpack_lmdb", at)],
        "tf.records": [Side("tf.data, TFRecord", "bench.parts.tensorflow_sides:tf_records", at)],
    }[name]
