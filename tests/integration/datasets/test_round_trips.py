"""A dataset that is exported and made again is the same: keys, splits, classes in their order, labels, images."""

import json

import cv2
import numpy as np
import pytest
from dataset_shell import photo

from ziggurat.datasets.dataset import Dataset

SHARES = ("--set", "splits.method=share", "--val-share", 0.25, "--test-share", 0.25)


def round_trip(ziggurat, tmp_path, source, form, *words):
    """Make a dataset, export it, make one of the export; return both."""
    first = ziggurat.create(source, tmp_path / "first", *SHARES)
    assert ziggurat("dataset", "export", tmp_path / "first", "--format", form, "--out", tmp_path / "out") == 0
    second = ziggurat.create(tmp_path / "out", tmp_path / "second", "--val-share", 0, *words)
    assert second["source"]["format"] == form, "an export is recognized"
    assert (first["kind"], first["splits"]) == (second["kind"], second["splits"])
    return samples(tmp_path / "first"), samples(tmp_path / "second")


def samples(folder):
    """Return names of the classes, and key → split, parts and label."""
    with Dataset(folder) as dataset:
        found = {each.key: (each.split, each.parts, each.label) for each in dataset.samples()}
        return dataset.schema.class_names, found


def boxes(folder):
    """Return key → (class, left, top, right, bottom) of its objects, rounded to a hundredth of a pixel."""
    names, found = samples(folder)
    return {
        key: [(names[each["class"]], *np.round(each["box"], 2).tolist()) for each in label]
        for key, (_split, _parts, label) in found.items()
    }


def test_class_folders(ziggurat, tmp_path, pets):
    first, second = round_trip(ziggurat, tmp_path, pets, "class_folders")
    assert first == second


@pytest.mark.nightly
def test_lists_of_pictures(ziggurat, tmp_path, pets):
    first, second = round_trip(ziggurat, tmp_path, pets, "text_list")
    assert first == second


@pytest.fixture
def street(tmp_path):
    """Images with boxes, in COCO's form."""
    root = tmp_path / "street"
    (root / "images").mkdir(parents=True)
    images, annotations = [], []
    for number in range(8):
        name = f"weg {number}.png"
        cv2.imwrite(str(root / "images" / name), photo(number, 40, 60))
        images.append({"id": number, "file_name": name, "width": 60, "height": 40})
        for one in range(number % 3):
            box = [3 + number, 4 + 2 * one, 20 + number, 11]
            made = {"id": len(annotations), "image_id": number, "category_id": 7 + one, "bbox": box, "iscrowd": 0}
            annotations.append({**made, "area": box[2] * box[3]})
    categories = [{"id": 7, "name": "car"}, {"id": 8, "name": "bicycle"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (root / "boxes.json").write_text(json.dumps(content))
    return root


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["coco", "voc", "yolo", "kitti"])
def test_boxes(ziggurat, tmp_path, street, form):
    (names, first), (names_after, second) = round_trip(ziggurat, tmp_path, street, form)
    assert list(names) == list(names_after) == ["car", "bicycle"]
    assert {key: value[:2] for key, value in first.items()} == {key: value[:2] for key, value in second.items()}
    assert boxes(tmp_path / "first") == boxes(tmp_path / "second")
    assert sum(len(each) for each in boxes(tmp_path / "first").values()) == 7


def test_masks(ziggurat, tmp_path):
    for number in range(8):
        for folder, content in (("pictures", photo(number)), ("masks", np.full((20, 24), number % 3, np.uint8))):
            path = tmp_path / "land" / folder / f"see {number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(path), content)
    (tmp_path / "land/classes.txt").write_text("water\nmeadow\nwood\n")
    (names, first), (names_after, second) = round_trip(ziggurat, tmp_path, tmp_path / "land", "masks")
    assert names == names_after
    assert first == second


def test_tables(ziggurat, tmp_path):
    rows = [f"{number}.5,{'rot' if number % 3 else 'blau, hell'},{number * number}" for number in range(20)]
    (tmp_path / "maße.csv").write_text("\n".join(["größe,farbe,preis", *(f"{r}" for r in quoted(rows))]), "utf-8")
    first, second = round_trip(ziggurat, tmp_path, tmp_path / "maße.csv", "table")
    assert first == second


def quoted(rows):
    """Return rows with the cell that has a comma in quotes."""
    return [row.replace("blau, hell", '"blau, hell"') for row in rows]
