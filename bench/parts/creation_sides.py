"""Sides of the creation benchmark: complete creations, and the decoder, resize and encoder alone."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from bench.parts.created import SIDE_PX, WORKERS, creation_request
from ziggurat.datasets.creation import create_dataset

__all__ = ["creations", "limit"]

_CHUNK = 256


def creations(source: str, encoding: str) -> Iterator[None]:
    """Yield at once, and then after each creation of a dataset, which is deleted again."""
    target = Path(tempfile.gettempdir(), f"ziggurat-bench-creation-{os.getpid()}")
    try:
        yield
        while True:
            create_dataset(creation_request(Path(source), encoding), target)
            shutil.rmtree(target)
            yield
    finally:
        shutil.rmtree(target, ignore_errors=True)


def limit(source: str, encoding: str) -> Iterator[None]:
    """Yield at once, and then after as many processes have decoded, resized and encoded all files."""
    files = [str(path) for path in sorted(Path(source).rglob("*.jpg"))]
    chunks = [(files[start : start + _CHUNK], encoding) for start in range(0, len(files), _CHUNK)]
    context = multiprocessing.get_context("spawn")
    yield
    while True:
        with context.Pool(WORKERS) as pool:
            pool.starmap(_convert, chunks, chunksize=1)
            pool.close()
            pool.join()
        yield


def _convert(files: list[str], encoding: str) -> None:
    cv2.setNumThreads(1)
    for file in files:
        picture = cv2.imdecode(np.frombuffer(Path(file).read_bytes(), np.uint8), cv2.IMREAD_COLOR)
        assert picture is not None
        if encoding == "original":
            continue
        picture = cv2.resize(picture, (SIDE_PX, SIDE_PX), interpolation=cv2.INTER_LINEAR)
        options = [cv2.IMWRITE_JPEG_QUALITY, 90] if encoding == "jpeg" else []
        cv2.imencode(f".{encoding}", picture, options)
