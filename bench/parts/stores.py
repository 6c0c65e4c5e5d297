"""Stores for the record-store benchmark, created once from the photographs and kept next to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ziggurat.dataflow.fast import prepare_pixels, prepare_records
from ziggurat.dataflow.formats.serializers import LMDBSerializer
from ziggurat.dataflow.images import ImageFolder

__all__ = ["SHORT_SIDE", "stores"]

SHORT_SIDE = 320
_TENSORPACK = """
import sys
from tensorpack.dataflow import DataFromList, LMDBSerializer
from bench.parts.photo_sides import listed
points = [[open(path, "rb").read(), label] for path, label in listed(sys.argv[1])]
LMDBSerializer.save(DataFromList(points, shuffle=False), sys.argv[2])
"""
_TF = "import sys\nfrom bench.parts.tensorflow_sides import write_records\nwrite_records(*sys.argv[1:])"


def stores(folder: Path) -> dict[str, Path]:
    """Return the path of each store; those of packages that are not installed are left out."""
    beside = folder.parent
    makers = {
        "plain.lmdb": lambda path: LMDBSerializer.save(ImageFolder(folder, content="bytes"), path),
        "tiled.lmdb": lambda path: prepare_records(ImageFolder(folder, content="path"), path),
        "reduced.lmdb": lambda path: prepare_records(ImageFolder(folder, content="path"), path, short_side=SHORT_SIDE),
        "reduced.pixels": lambda path: prepare_pixels(ImageFolder(folder, content="path"), path, short_side=SHORT_SIDE),
        "whole.pixels": lambda path: prepare_pixels(ImageFolder(folder, content="path"), path, short_side=None),
        "tensorpack.lmdb": lambda path: _by_program(_TENSORPACK, folder, path),
        "tf.records": lambda path: _by_program(_TF, folder, path),
    }
    found = {name: beside / name for name in makers}
    for name, path in found.items():
        if not path.exists():
            makers[name](path)
    for path in found.values():
        if path.exists():
            path.read_bytes()  # into the page cache
    return {name: path for name, path in found.items() if path.exists()}


def _by_program(program: str, folder: Path, path: Path) -> None:
    """Run a program that needs another package; it makes nothing where that is not installed."""
    partial = path.with_name(f"partial.{path.name}")
    done = subprocess.run([sys.executable, "-c", program, str(folder), str(partial)], capture_output=True)
    if done.returncode == 0:
        os.replace(partial, path)
