"""Benchmark of large datasets: a million images referenced in place, and pages of a hundred thousand records."""

from __future__ import annotations

import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.parts.million import Creation, class_tree, created, part_of
from bench.parts.report import Options, Report, Row
from ziggurat.datasets.dataset import Dataset
from ziggurat.workspace import datasets

__all__ = ["run"]

_COUNT = 1_000_000
_CLASSES = 1000
_EXPLORED_CLASSES = 100
_PAGES = 200
_LAST_OFFSET = 99_950
_LISTED = 1000
_CHECKS = ("none", "header")


def run(options: Options) -> Report:
    """Measure; a creation is done once, whatever number of rounds is asked for."""
    del options
    report = Report(
        f"Class folders -> dataset of {_COUNT} images, referenced in place",
        "picture",
        f"check {_CHECKS[0]}",
        [f"{_CLASSES} folders; one creation each, in a process of its own with 2 workers, page cache as it is"],
    )
    tree = class_tree(_COUNT, _CLASSES)
    with tempfile.TemporaryDirectory(prefix="ziggurat-bench-million-") as place:
        for check in _CHECKS:
            took = created(tree, Path(place, check), check)
            shutil.rmtree(Path(place, check))
            report.rows.append(Row(f"check {check}", [1e6 * took.cpu_s / _COUNT], [1e6 * took.wall_s / _COUNT]))
            report.notes.append(f"check {check}: {_told(took)}")
        folder = Path(place, "explored")
        took = created(part_of(tree, _EXPLORED_CLASSES), folder, "header")
        report.notes.append(f"{_COUNT * _EXPLORED_CLASSES // _CLASSES} of them, check header: {_told(took)}")
        report.notes += [_opening(folder), _pages(folder), _listing(folder, Path(place, "many"))]
    return report


def _told(took: Creation) -> str:
    return f"{took.wall_s:.1f} s, {took.cpu_s:.1f} s of CPU time, peak {took.peak_bytes / 1e6:.0f} MB in all processes"


def _opening(folder: Path) -> str:
    began = time.perf_counter()
    with Dataset(folder) as dataset:
        count = len(dataset.catalogue)
    return f"opening the dataset and its catalog of {count} samples: {1000 * (time.perf_counter() - began):.1f} ms"


def _pages(folder: Path) -> str:
    """Ask for pages as the explorer does: the dataset opened, 50 samples, the total, and their problems."""
    times: list[tuple[float, str]] = []
    for chosen, offset in _questions():
        began = time.perf_counter()
        datasets.Datasets().explore(str(folder), chosen, offset=offset)
        times.append((1000 * (time.perf_counter() - began), f"{chosen} from {offset}"))
    worst, which = max(times)
    median = statistics.median(milliseconds for milliseconds, _ in times)
    return f"{len(times)} random explorer pages: median {median:.1f} ms, worst {worst:.1f} ms ({which})"


def _questions() -> Iterator[tuple[dict[str, Any], int]]:
    """Yield filters of one to three conditions, and an offset."""
    chance = random.Random(0)
    for _ in range(_PAGES):
        side = chance.randrange(4, 30)
        known = {
            "split": chance.choice(("train", "val")),
            "class_number": chance.randrange(_EXPLORED_CLASSES),
            "text": chance.choice(("png", "0_", f"{chance.randrange(1000):06d}", "not there", "7")),
            "problem": chance.choice(("any", "duplicate")),
            "min_width_px": side,
            "max_height_px": side,
        }
        chosen = {name: known[name] for name in chance.sample(sorted(known), chance.randrange(4))}
        yield chosen, chance.choice((0, chance.randrange(_LAST_OFFSET), _LAST_OFFSET))


def _listing(folder: Path, place: Path) -> str:
    """List as many datasets as copies of one manifest."""
    for number in range(_LISTED):
        (place / f"set{number:04d}").mkdir(parents=True)
        shutil.copy(folder / "manifest.json", place / f"set{number:04d}")
    began = time.perf_counter()
    count = len(list(datasets.rows(place, place)))
    return f"listing {count} datasets of {_EXPLORED_CLASSES} classes: {1000 * (time.perf_counter() - began):.0f} ms"
