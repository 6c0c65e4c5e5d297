"""Small datasets of every kind of data, for the tests of what is done with trained networks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.shapes import SHAPES, draw_shapes
from tests.unit.datasets.small_datasets_for_versions import png, write_dataset
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Column, Schema

SIDE: Final = 16
SHAPES_SIDE: Final = 64
COLUMNS: Final = (
    Column(name="size", type="number"),
    Column(name="color", type="category", categories=("red", "green", "blue")),
    Column(name="built", type="time"),
    Column(name="price", type="number"),
    Column(name="kind", type="category", categories=("cheap", "dear")),
)
_WORDS: Final = (("good", "fine", "lovely"), ("bad", "poor", "dreadful"))
_FORM: Final = ImageForm(encoding="png", height_px=SIDE, width_px=SIDE, channels=3)


def picture(seed: int) -> np.ndarray:
    """Return a dark image with a bright square, (SIDE, SIDE, 3) uint8."""
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 60, (SIDE, SIDE, 3), dtype=np.uint8)
    top, left = rng.integers(0, SIDE - 6, 2)
    image[top : top + 6, left : left + 6] += np.uint8(150)
    return image


def row(number: int) -> list[Any]:
    """Return a row of ``COLUMNS``."""
    rng = np.random.default_rng(number)
    size = float(rng.normal(50, 20))
    color = int(rng.integers(3))
    price = 3 * size + 10 * color + float(rng.normal())
    day = 1 + int(rng.integers(28))
    kind = "dear" if price > 160 else "cheap"
    return [size, ("red", "green", "blue")[color], f"20{10 + number % 14}-05-{day:02}T10:30:00", price, kind]


def text(number: int) -> str:
    """Return a text of class ``number % 2``."""
    rng = np.random.default_rng(number)
    return " ".join(rng.choice(_WORDS[number % 2], 6))


def _table(target: str, number: int) -> tuple[str, tuple[Any, ...], Any]:
    cells = row(number)
    label: Any = cells[3] if target == "price" else int(cells[4] == "dear")
    return f"row {number}", (json.dumps(cells).encode(),), label


def _masked(number: int) -> tuple[str, tuple[Any, ...], Any]:
    image = picture(number)
    return f"{number}.png", (png(image), png((image[..., 0] > 100).astype(np.uint8))), None


def _labelled(number: int) -> tuple[str, tuple[Any, ...], Any]:
    image = picture(number)
    bright = (image[..., 0] > 100).nonzero()
    return f"{number}.png", (png(image),), [int(bright[0].mean() > SIDE / 2), int(bright[1].mean() > SIDE / 2)]


def shapes(number: int) -> np.ndarray:
    """Return an image of shapes, (SHAPES_SIDE, SHAPES_SIDE, 3) uint8."""
    return draw_shapes(np.random.default_rng(number), SHAPES_SIDE)[0]


def _shapes(number: int) -> tuple[str, tuple[Any, ...], Any]:
    image, found = draw_shapes(np.random.default_rng(number), SHAPES_SIDE)
    return f"{number}.png", (png(image),), [{"class": kind, "box": list(box)} for kind, *box in found]


_TABLES: Final = {
    "price": Schema(kind="table", columns=COLUMNS, target="price"),
    "kind": Schema(kind="table", columns=COLUMNS, target="kind", class_names=("cheap", "dear")),
}

DATASETS: Final[dict[str, tuple[Schema, ImageForm | None, Callable[[int], tuple[str, tuple[Any, ...], Any]]]]] = {
    "rows with a value": (_TABLES["price"], None, lambda number: _table("price", number)),
    "rows with a class": (_TABLES["kind"], None, lambda number: _table("kind", number)),
    "texts": (
        Schema(kind="text-classification", class_names=("good", "bad")),
        None,
        lambda number: (f"text {number}", (text(number),), number % 2),
    ),
    "masks": (Schema(kind="segmentation", class_names=("ground", "square"), ignore_class=255), _FORM, _masked),
    "labels": (Schema(kind="image-regression", class_names=("low", "right")), _FORM, _labelled),
    "shapes": (
        Schema(kind="detection", class_names=SHAPES),
        replace(_FORM, height_px=SHAPES_SIDE, width_px=SHAPES_SIDE),
        _shapes,
    ),
}


def small_dataset(name: str, folder: Path) -> str:
    """Return the folder of a dataset of ``DATASETS``: 80 samples for training and 40 for validation.

    Args:
        name: of the dataset.
        folder: where it goes.
    """
    schema, form, sample = DATASETS[name]
    splits = {split: [sample(n) for n in range(a, b)] for split, a, b in (("train", 0, 80), ("val", 80, 120))}
    write_dataset(folder, splits, schema, image=form).close()
    return str(folder)
