"""Calls of ``ziggurat`` with real workers, and small sources for them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ziggurat.cli.application import Application
from ziggurat.cli.main import main

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


class Shell:
    """Calls ``ziggurat`` in this process; what it starts are real workers."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd
        self.said = ""

    def __call__(self, *words: object) -> int:
        """Return the exit code; ``said`` has what was written."""
        self._capfd.readouterr()
        code = main([str(word) for word in words], Application())
        captured = self._capfd.readouterr()
        self.said = captured.out + captured.err
        self.out = captured.out
        return code

    def json(self, *words: object) -> Any:
        """Return the JSON that a call gives that ends well."""
        assert self(*words, "--json") == 0, self.said
        return json.loads(self.out)

    def create(self, source: Path, out: Path, *words: object) -> dict[str, Any]:
        """Make a dataset and return what ``show`` says of it."""
        assert self("dataset", "create", source, "--out", out, "--workers", 0, *words) == 0, self.said
        return self.json("dataset", "show", out)

    def samples(self, folder: Path) -> list[dict[str, Any]]:
        """Return what ``explore`` says of all samples."""
        return self.json("dataset", "explore", folder, "--limit", 10_000)["samples"]


def shared(name: str) -> Path:
    """Return a real dataset, or skip the test."""
    if not (SHARED / name).exists():
        pytest.skip(f"the shared dataset {name} is not here")
    return SHARED / name


def photo(seed: int, height: int = 20, width: int = 24) -> np.ndarray:
    """Return a smooth image, (H, W, 3) uint8, that no other seed gives."""
    rough = np.random.default_rng(seed).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    return cv2.resize(rough, (width, height), interpolation=cv2.INTER_CUBIC)


def class_folders(root: Path, count: int, *, suffix: str = ".png") -> Path:
    """Write images of two classes, one after the other; return the folder."""
    for number in range(count):
        folder = root / ("cat", "dog")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"ä {number:05d}{suffix}").write_bytes(cv2.imencode(suffix, photo(number))[1].tobytes())
    return root
