"""A million tiny images in a thousand class folders, and the measured cost of creating a dataset from them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import psutil

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.records.manifest import ImageForm

__all__ = ["Creation", "class_tree", "created", "part_of"]

_COPY_EVERY = 50
_LOOK_EVERY_S = 0.05
_VERSION = 1


@dataclass(frozen=True)
class Creation:
    """What a creation took.

    Args:
        wall_s: from the start of its process to its end.
        cpu_s: of its process and all processes that it started.
        peak_bytes: highest resident memory of all these together; what they share counts in each.
    """

    wall_s: float
    cpu_s: float
    peak_bytes: int


def class_tree(count: int, classes: int) -> Path:
    """Return a folder with so many tiny PNG files in class folders of one size; it is made once and kept.

    Each class has a width and a height of its own; every fiftieth file has the content of the one before it.
    """
    folder = Path(tempfile.gettempdir(), f"ziggurat-bench-tree-{_VERSION}-{count}")
    done = folder.with_name(f"{folder.name}.done")
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        for number in range(classes):
            _write_class(folder / f"class_{number:04d}", number, count // classes)
        done.touch()
    return folder


def part_of(tree: Path, classes: int) -> Path:
    """Return a folder with links to the first classes of a tree."""
    folder = tree.with_name(f"{tree.name}-first-{classes}")
    folder.mkdir(exist_ok=True)
    for place in sorted(tree.iterdir())[:classes]:
        if not (folder / place.name).is_symlink():
            (folder / place.name).symlink_to(place)
    return folder


def created(source: Path, folder: Path, check: str, workers: int = 2) -> Creation:
    """Make a dataset that refers to the files of ``source``, in a process of its own, and watch that.

    Args:
        source: class folders.
        folder: of the dataset.
        check: ``none`` or ``header``.
        workers: processes that the creation starts.
    """
    before = os.times()
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "bench.parts.million", source, folder, check, str(workers)])
    watched, peak = psutil.Process(process.pid), 0
    while process.poll() is None:
        peak = max(peak, _resident_bytes(watched))
        time.sleep(_LOOK_EVERY_S)
    wall_s, after = time.perf_counter() - began, os.times()
    if process.returncode:
        raise RuntimeError(f"the creation ended with exit code {process.returncode}; see above")
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    return Creation(wall_s, cpu_s, peak)


def _resident_bytes(process: psutil.Process) -> int:
    total = 0
    try:
        for each in (process, *process.children(recursive=True)):
            total += each.memory_info().rss
    except psutil.Error:  # one has just ended
        return 0
    return total


def _write_class(folder: Path, number: int, count: int) -> None:
    folder.mkdir(parents=True)
    picture = np.full((4 + number % 31, 4 + number % 29, 3), number % 251, np.uint8)
    done, encoded = cv2.imencode(".png", picture)
    assert done
    start = encoded.tobytes()
    for each in range(count):
        unlike = number * count + each - (each % _COPY_EVERY == _COPY_EVERY - 1)
        (folder / f"{each:06d}.png").write_bytes(start + unlike.to_bytes(8, "little"))  # decoders stop before it


def _create() -> None:
    source, folder, check, workers = sys.argv[1:]
    request = CreationRequest(
        name="tiny",
        source=source,
        format="class_folders",
        image=ImageForm(encoding="reference"),
        check=check,
        workers=int(workers),
    )
    create_dataset(request, Path(folder))


if __name__ == "__main__":
    _create()
