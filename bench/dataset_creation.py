"""Benchmark of dataset creation: photographs in class folders to records, against the decoder and encoder alone."""

from __future__ import annotations

import statistics
from pathlib import Path

from bench.parts.created import COUNT, SIDE_PX, WORKERS, many_photographs
from bench.parts.photographs import describe
from bench.parts.report import Options, Report, Row
from bench.parts.rounds import Side, measure

__all__ = ["run"]

_CASES = {
    "png": f"PNG, {SIDE_PX} px",
    "jpeg": f"JPEG 90, {SIDE_PX} px",
    "original": "files as they are",
}


def run(options: Options) -> Report:
    """Measure."""
    folder = many_photographs(options.detail)
    report = Report(
        f"JPEG files -> dataset of {COUNT} images in LMDB",
        "picture",
        f"limit of {_CASES['png']}",
        [
            describe(folder),
            f"{WORKERS} worker processes each, whose start is part of the figures",
            f"{options.rounds} interleaved rounds, warm-up dropped; medians",
            "limits: the same OpenCV calls on the same files in as many processes; nothing is checked or kept",
        ],
    )
    measure(report, _sides(folder), options, batches=1, batch_size=COUNT)
    rows = {row.side: row for row in report.rows}
    report.notes += [_sentence(name, rows[name], rows[f"limit of {name}"]) for name in _CASES.values()]
    return report


def _sides(folder: Path) -> list[Side]:
    sides: list[Side] = []
    for encoding, name in _CASES.items():
        at = {"source": str(folder), "encoding": encoding}
        sides.append(Side(name, "bench.parts.creation_sides:creations", at))
        sides.append(Side(f"limit of {name}", "bench.parts.creation_sides:limit", at, is_limit=True))
    return sides


def _sentence(name: str, ours: Row, limit: Row) -> str:
    """Return what share of the limit is reached, from the ratios of the same rounds."""
    cpu = [one / other for one, other in zip(limit.cpu_us, ours.cpu_us)]
    wall = [one / other for one, other in zip(limit.wall_us, ours.wall_us)]
    return (
        f"{name}: {1e6 / statistics.median(ours.wall_us):.0f} pictures/s; share of the limit in CPU time "
        f"{statistics.median(cpu):.2f} ({min(cpu):.2f} to {max(cpu):.2f}), in wall time {statistics.median(wall):.2f} "
        f"({min(wall):.2f} to {max(wall):.2f})"
    )
