"""Objects follow when their image is resized: boxes, outlines and masks; those that leave it are listed."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.unit.datasets.small_sources import fitted, photo, request
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.splitting import SplitRule

coco_mask = pytest.importorskip("pycocotools.mask", reason="masks in run lengths need pycocotools")


def coco(folder: Path, annotations: list[dict]) -> Path:
    """Write a COCO source with one image of 40 x 20 pixels."""
    (folder / "images").mkdir(parents=True)
    Image.fromarray(photo(1, 20, 40)).save(folder / "images" / "one.png")
    content = {
        "images": [{"id": 1, "file_name": "one.png", "width": 40, "height": 20}],
        "categories": [{"id": 1, "name": "thing"}],
        "annotations": [
            {"id": number, "image_id": 1, "category_id": 1, "iscrowd": 0, "area": 1, **each}
            for number, each in enumerate(annotations, start=1)
        ],
    }
    (folder / "annotations.json").write_text(json.dumps(content))
    return folder


def made(source: Path, folder: Path, mode: str, height: int = 20, width: int = 20) -> tuple[list[dict], Dataset]:
    """Make a dataset of one fitted image; return its objects."""
    form = fitted(height, width, mode)
    create_dataset(request(source, image=form, rule=SplitRule(method="share", val_share=0)), folder)
    dataset = Dataset(folder)
    return dataset.sample("train", 0).label, dataset


@pytest.mark.parametrize(
    ("mode", "box"),
    [
        ("squash", [2, 4, 7, 10]),  # half as wide
        ("crop", [0, 4, 4, 10]),  # 10 px are cut off on the left
        ("fill", [2, 7, 7, 10]),  # half the size, 5 px below the frame
    ],
)
def test_boxes_and_outlines_follow_the_resize(tmp_path: Path, mode: str, box: list[float]) -> None:
    outline = [4, 4, 14, 4, 14, 10, 4, 10]
    source = coco(tmp_path / "source", [{"bbox": [4, 4, 10, 6], "segmentation": [outline]}])
    (found,), dataset = made(source, tmp_path / "set", mode)
    assert found["box"] == pytest.approx(box, abs=0.01)
    (polygon,) = found["polygons"]
    corners = np.array(polygon).reshape(-1, 2)
    assert [*corners.min(axis=0), *corners.max(axis=0)] == pytest.approx(box, abs=0.01)
    assert dataset.flow("train").datapoint(0)[1].tolist() == [pytest.approx(box, abs=0.01)]
    dataset.close()


def test_an_object_that_the_crop_leaves_out_is_listed(tmp_path: Path) -> None:
    source = coco(tmp_path / "source", [{"bbox": [1, 1, 5, 5]}, {"bbox": [15, 3, 8, 8]}])
    label, dataset = made(source, tmp_path / "set", "crop")
    assert [each["details"]["id"] for each in label] == [2]
    (problem,) = dataset.catalogue.problems("object-lost")
    assert problem.key == "images/one.png"
    assert problem.reason == "1 of 2 objects outside of the fitted image."
    entry = dataset.catalogue.find("images/one.png")
    assert entry is not None
    assert entry.objects == 1
    dataset.close()


def test_masks_in_run_lengths_follow(tmp_path: Path) -> None:
    mask = np.zeros((20, 40), np.uint8, order="F")
    mask[4:10, 4:14] = 1
    encoded = coco_mask.encode(mask)
    run_lengths = {"size": [20, 40], "counts": encoded["counts"].decode()}
    source = coco(tmp_path / "source", [{"bbox": [4, 4, 10, 6], "segmentation": run_lengths, "iscrowd": 1}])
    (found,), dataset = made(source, tmp_path / "set", "squash")
    assert found["crowd"] is True
    assert found["mask"]["size"] == [20, 20]
    assert coco_mask.toBbox({**found["mask"], "counts": found["mask"]["counts"].encode()}).tolist() == [2, 4, 5, 6]
    dataset.close()
