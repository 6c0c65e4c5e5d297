"""Masks of COCO on their whole way: into a dataset, with its images, and out again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.unit.datasets.small_sources import fitted, photo, request
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.coco.exporter import export_coco
from ziggurat.datasets.formats.yolo.exporter import export_yolo
from ziggurat.datasets.splitting import SplitRule
from ziggurat.records.run_lengths import mask_pixels, run_lengths

SIZE = (20, 40)


def ring() -> np.ndarray:
    mask = np.zeros(SIZE, np.uint8)
    mask[4:12, 6:20] = 1
    mask[6:9, 9:13] = 0
    return mask


def corner() -> np.ndarray:
    mask = np.zeros(SIZE, np.uint8)
    mask[0:3, 0:9] = 1
    mask[0:7, 0:2] = 1
    return mask


def as_list(mask: np.ndarray) -> dict[str, Any]:
    """Return run lengths as a list, as COCO writes them for crowds."""
    flat = mask.ravel(order="F").astype(int)
    ends = [*(np.flatnonzero(np.diff(flat)) + 1).tolist(), flat.size]
    lengths = np.diff([0, *ends]).tolist()
    return {"size": list(mask.shape), "counts": [0, *lengths] if flat[0] else lengths}


def source(folder: Path, *segmentations: Any, about_size: bool = True) -> Path:
    folder.mkdir()
    Image.fromarray(photo(1, *SIZE)).save(folder / "one.png")
    size = {"width": SIZE[1], "height": SIZE[0]} if about_size else {}
    content = {
        "images": [{"id": 1, "file_name": "one.png", **size}],
        "categories": [{"id": 1, "name": "thing"}],
        "annotations": [
            {"id": number, "image_id": 1, "category_id": 1, "bbox": [0, 0, 30, 20], "iscrowd": 1, "segmentation": each}
            for number, each in enumerate(segmentations, 1)
        ],
    }
    (folder / "annotations.json").write_text(json.dumps(content))
    return folder


def made(place: Path, folder: Path, **fields: Any) -> Dataset:
    create_dataset(request(place, rule=SplitRule(method="share", val_share=0), **fields), folder)
    return Dataset(folder)


def test_masks_go_to_coco_and_come_back_as_they_were(tmp_path: Path) -> None:
    place = source(tmp_path / "source", as_list(ring()), as_list(corner()), run_lengths(ring()))
    with made(place, tmp_path / "set") as dataset:
        export_coco(dataset, tmp_path / "coco")
    written = json.loads((tmp_path / "coco" / "instances_train.json").read_text())["annotations"]
    assert [each["segmentation"] for each in written] == [run_lengths(each) for each in (ring(), corner(), ring())]
    assert [(each["iscrowd"], each["area"]) for each in written] == [(1, 100), (1, 35), (1, 100)]
    with made(tmp_path / "coco", tmp_path / "again") as dataset:
        label = dataset.sample("train", 0).label
    assert [
        np.array_equal(mask_pixels(each["mask"]), mask) for each, mask in zip(label, (ring(), corner(), ring()))
    ] == [
        True,
        True,
        True,
    ]


def test_a_mask_follows_its_picture_to_the_pixel(tmp_path: Path) -> None:
    with made(
        source(tmp_path / "source", as_list(ring())), tmp_path / "set", image=fitted(40, 80, "squash")
    ) as dataset:
        (found,) = dataset.sample("train", 0).label
    assert found["mask"]["size"] == [40, 80]
    assert np.array_equal(mask_pixels(found["mask"]), np.kron(ring(), np.ones((2, 2), np.uint8)))


def test_a_mask_of_another_picture_is_listed_and_left_out(tmp_path: Path) -> None:
    place = source(tmp_path / "source", {"size": [4, 3], "counts": "525"}, as_list(ring()), about_size=False)
    with made(place, tmp_path / "set", image=fitted(10, 20, "squash")) as dataset:
        label = dataset.sample("train", 0).label
        problems = dataset.catalogue.problems("bad-mask")
    assert ["mask" in each for each in label] == [False, True]
    assert [each.reason for each in problems] == ["annotation 1: its mask is 3 x 4 pixels, not as large as its image."]


@pytest.mark.parametrize(
    ("mask", "lost"),
    [(corner, []), (ring, ["yolo cannot hold run lengths: 1 left out."])],
)
def test_yolo_gets_the_outline_of_a_mask(tmp_path: Path, mask: Any, lost: list[str]) -> None:
    with made(source(tmp_path / "source", as_list(mask())), tmp_path / "set") as dataset:
        report = export_yolo(dataset, tmp_path / "yolo", outlines=True)
    number, *values = (tmp_path / "yolo" / "labels" / "train" / "one.txt").read_text().split()
    points = np.array(values, float).reshape(-1, 2) * (SIZE[1], SIZE[0])
    outer = {corner: [0, 0, 9, 0, 9, 3, 2, 3, 2, 7, 0, 7], ring: [6, 4, 20, 4, 20, 12, 6, 12]}[mask]
    assert (number, points.ravel().tolist()) == ("0", pytest.approx(outer, abs=1e-6))
    assert [note for note in report.notes if "run lengths" in note] == lost
