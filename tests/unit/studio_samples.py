"""What tests over a real studio whose jobs nobody starts have in common: the studio, and a small dataset in it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import NewJob
from ziggurat.settings import Settings
from ziggurat.specs import DatasetSpec, save_spec
from ziggurat.workspace.passwords import PasswordCost, Passwords
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.bootstrap import open_studio

__all__ = ["CHEAP", "add_arrays", "add_objects", "add_pets", "add_photos", "make_empty_workspace", "studio_in_copy"]

CHEAP = Passwords(cost=PasswordCost(rounds=1, memory_kib=8, lanes=1))
"""Hashes passwords at once, for tests that are not about the cost."""


def make_empty_workspace(folder: Path) -> Path:
    """Return a workspace that was opened once; a copy of it is opened sooner than a new one is made."""
    place = folder / "workspace"
    open_studio(Settings(workspace=place), start=False).close()
    return place


@contextmanager
def studio_in_copy(empty_workspace: Path, folder: Path) -> Iterator[Studio]:
    """Give a studio in a copy of a workspace."""
    shutil.copytree(empty_workspace, folder / "workspace")
    settings = Settings(workspace=folder / "workspace", disk_reserve_mib=0)
    with open_studio(settings, start=False, passwords=CHEAP) as opened:
        yield opened


def add_pets(studio: Studio, source: Path, side_px: int = 20) -> str:
    """Return the id of a dataset of ten colored images of two classes, 8 for training and 2 for validation.

    Args:
        studio: gets it.
        source: folder where the images are made.
        side_px: shorter side of the images; the other one is half as long again.
    """
    for number in range(10):
        name = source / ("cat", "dog")[number % 2] / f"{number}.png"
        name.parent.mkdir(parents=True, exist_ok=True)
        picture = np.full((side_px, side_px * 3 // 2, 3), 25 * number, np.uint8)
        name.write_bytes(cv2.imencode(".png", picture)[1].tobytes())
    return _added(studio, source, "20260101-000000-0001", 0.2)


def add_photos(studio: Studio, source: Path) -> str:
    """Return the id of a dataset of twelve large colored images of two classes and of several sizes.

    Args:
        studio: gets it.
        source: folder where the images are made.
    """
    noise = np.random.default_rng(1)
    for number in range(12):
        name = source / ("cat", "dog")[number % 2] / f"{number}.png"
        name.parent.mkdir(parents=True, exist_ok=True)
        picture = noise.integers(0, 255, (120 + number, 140, 3), np.uint8)
        name.write_bytes(cv2.imencode(".png", picture)[1].tobytes())
    return _added(studio, source, "20260101-000000-0009", 0.25)


def add_objects(studio: Studio, source: Path) -> str:
    """Return the id of a dataset of one image with a box in it, for object detection.

    Args:
        studio: gets it.
        source: folder where the image is made.
    """
    source.mkdir()
    (source / "one.png").write_bytes(cv2.imencode(".png", np.full((20, 40, 3), 90, np.uint8))[1].tobytes())
    content = {
        "images": [{"id": 1, "file_name": "one.png", "width": 40, "height": 20}],
        "categories": [{"id": 1, "name": "thing"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [6, 4, 14, 8]}],
    }
    (source / "annotations.json").write_text(json.dumps(content))
    return _added(studio, source, "20260101-000000-0002", 0)


def add_arrays(studio: Studio, source: Path) -> str:
    """Return the id of a dataset of four arrays, which no network learns from yet.

    Args:
        studio: gets it.
        source: folder where the arrays are made.
    """
    source.mkdir()
    for number in range(4):
        np.save(source / f"{number}.npy", np.full((2, 3), number, np.float32))
    return _added(studio, source, "20260101-000000-0003", 0)


def _added(studio: Studio, source: Path, job_id: str, val_share: float) -> str:
    folder = studio.root / "datasets" / job_id
    spec = DatasetSpec(source=str(source), name=source.name)
    asked = CreationRequest(source=str(source), name=source.name, rule=SplitRule(val_share=val_share), workers=0)
    create_dataset(asked, folder)
    save_spec(spec, folder / "spec.json")
    content = spec.model_dump(mode="json")
    new = NewJob(id=job_id, kind="dataset", name=source.name, folder=str(folder), spec=content, created=1.0)
    return studio.datasets.take_in(new, {}).id


def add_table(studio: Studio, source: Path, *, has_classes: bool) -> str:
    """Return the id of a dataset of 40 rows with a number, a category, and what is to be predicted.

    Args:
        studio: gets it.
        source: file that is made.
        has_classes: whether a class is to be predicted; a number otherwise.
    """
    rows = [
        f"{row / 7:.3f},{'abc'[row % 3]},{('no', 'yes')[row % 2] if has_classes else row * 1.5}" for row in range(40)
    ]
    source.write_text("\n".join(["size,kind,result", *rows]))
    return _added(studio, source, f"20260101-000000-000{3 + has_classes}", 0.25)


def add_texts(studio: Studio, source: Path) -> str:
    """Return the id of a dataset of 40 short texts in two classes.

    Args:
        studio: gets it.
        source: file that is made.
    """
    lines = [f"{('bad', 'good')[row % 2]}\tthis is the text number {row} of a small set" for row in range(40)]
    source.write_text("\n".join(lines))
    return _added(studio, source, "20260101-000000-0005", 0.25)


def add_masks(studio: Studio, source: Path, rare: int = 0) -> str:
    """Return the id of a dataset of 8 images of 20 x 30 px, each with a mask of two classes.

    Args:
        studio: gets it.
        source: folder that is made.
        rare: masks that have a third class, too.
    """
    for name in ("images", "masks"):
        (source / name).mkdir(parents=True)
    for row in range(8):
        image = np.full((20, 30, 3), 20 * row, np.uint8)
        mask = np.zeros((20, 30), np.uint8)
        mask[5:15, :10] = 1
        if row < rare:
            mask[:2, 20:] = 2
        for name, array in (("images", image), ("masks", mask)):
            (source / name / f"{row}.png").write_bytes(cv2.imencode(".png", array)[1].tobytes())
    return _added(studio, source, "20260101-000000-0006", 0.25)
