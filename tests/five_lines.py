"""The same five lines for each kind of data, on files as people have them; the sessions of both frameworks run them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import ziggurat as zig

__all__ = ["KINDS", "check_five_lines"]

SIDE = 32
COUNT = 24


def check_five_lines(kind: str, framework: str, folder: Path) -> None:
    """Make a dataset, train one epoch, evaluate, predict, and look at what a notebook would show.

    Args:
        kind: Name in ``KINDS``.
        framework: ``tensorflow`` or ``torch``.
        folder: Gets the files and the workspace.
    """
    make, network, settings = KINDS[kind]
    source, inputs, given = make(folder / "source")
    zig.connect(folder / "workspace")

    data = zig.dataset(source, progress=False, **given)
    run = zig.train(data, network, epochs=1, framework=framework, progress=False, batch_size=8, **settings)
    found = run.evaluate()
    predictions = run.predict(inputs)
    one = run.predict(inputs[0])

    assert run.state == "done"
    assert found.samples == data.splits["val"] == 6
    assert found.metrics["cost"] > 0
    assert len(predictions) == 2
    assert repr(one) == repr(predictions[0])
    CHECKS[kind](found, one)
    for shown in (data, run, found, predictions, one, run.curves):
        html = shown._repr_html_()
        assert "<script" not in html
        assert "http" not in html.replace("http://www.w3.org", "")
        assert "\n" not in repr(shown)
    assert "<svg" in run._repr_html_()
    assert "cost" in run.curves
    assert zig.load(run.name).id == run.id


def drawn(number: int) -> tuple[np.ndarray, tuple[int, int, int, int]]:
    """Return an image with a bright rectangle (SIDE, SIDE, 3) uint8, and its left, top, right, bottom in px."""
    random = np.random.default_rng(number)
    image = random.integers(0, 80, (SIDE, SIDE, 3), np.uint8)
    left, top = (int(each) for each in random.integers(0, SIDE // 2, 2))
    right, bottom = left + 12, top + (6 if number % 2 else 14)
    image[top:bottom, left:right] += 150
    return image, (left, top, right, bottom)


def write(path: Path, image: np.ndarray) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), image)
    return str(path)


def photos(folder: Path) -> Any:
    files = [
        write(folder / ("tall", "wide")[number % 2] / f"{number}.png", drawn(number)[0]) for number in range(COUNT)
    ]
    return folder, files[:2], {}


def boxes(folder: Path) -> Any:
    images, annotations, files = [], [], []
    for number in range(COUNT):
        image, (left, top, right, bottom) = drawn(number)
        files.append(write(folder / "images" / f"{number}.png", image))
        images.append({"id": number, "file_name": f"{number}.png", "height": SIDE, "width": SIDE})
        box = [left, top, right - left, bottom - top]
        about = {"id": number + 1, "image_id": number, "category_id": 1 + number % 2, "iscrowd": 0}
        annotations.append({**about, "bbox": box, "area": box[2] * box[3]})
    categories = [{"id": 1, "name": "tall"}, {"id": 2, "name": "wide"}]
    (folder / "instances.json").write_text(
        json.dumps({"images": images, "annotations": annotations, "categories": categories})
    )
    return folder, files[:2], {}


def masks(folder: Path) -> Any:
    files = []
    for number in range(COUNT):
        image, (left, top, right, bottom) = drawn(number)
        files.append(write(folder / "images" / f"{number}.png", image))
        mask = np.zeros((SIDE, SIDE), np.uint8)
        mask[top:bottom, left:right] = 1
        write(folder / "masks" / f"{number}.png", mask)
    (folder / "classes.txt").write_text("nothing\nrectangle\n")
    return folder, files[:2], {}


def table(folder: Path) -> Any:
    random = np.random.default_rng(3)
    rows = [
        {"width": float(width), "color": ("red", "blue")[int(width) % 2]} for width in random.integers(1, 99, COUNT)
    ]
    folder.mkdir(parents=True)
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["width", "color", "result"])
        writer.writeheader()
        writer.writerows({**row, "result": "low" if row["width"] < 50 else "high"} for row in rows)
    return folder / "rows.csv", rows[:2], {"target": "result", "format": "table"}


def texts(folder: Path) -> Any:
    random = np.random.default_rng(4)
    lines = [" ".join(random.choice(WORDS[number % 2], 5)) for number in range(COUNT)]
    folder.mkdir(parents=True)
    with (folder / "texts.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows((line, ("good", "bad")[number % 2]) for number, line in enumerate(lines))
    return folder / "texts.csv", lines[:2], {"format": "text", "text": "text", "label": "label"}


WORDS = (["fine", "lovely", "bright"], ["dull", "grim", "weak"])

Maker = Callable[[Path], Any]

KINDS: dict[str, tuple[Maker, str, dict[str, Any]]] = {
    "photos": (photos, "convnet", {}),
    "boxes": (boxes, "detector_nano", {}),
    "masks": (masks, "unet_small", {}),
    "table": (table, "table_mlp", {}),
    "texts": (texts, "text_cnn", {}),
}
"""Kind → what makes its files, its network, and further settings."""


def check_classes(found: Any, one: Any) -> None:
    assert found.accuracy is not None
    assert found.confusion.sum() == found.samples
    assert "Confusion matrix" in found._repr_html_()
    assert one.label == one.classes[0].label
    assert one.label in one._repr_html_()


def check_boxes(found: Any, one: Any) -> None:
    assert 0 <= found.metrics["map"] <= 1
    assert one.label is None
    assert all(0 <= box.left <= box.right <= SIDE for box in one.boxes)
    assert "data:image/png;base64," in one._repr_html_()


def check_mask(found: Any, one: Any) -> None:
    assert 0 <= found.metrics["mean_iou"] <= 1
    assert one.picture.size == (SIDE, SIDE)
    assert sum(each.share for each in one.classes) > 0.999
    assert one._repr_html_().count("data:image/png;base64,") == 2


CHECKS = {
    "photos": check_classes,
    "boxes": check_boxes,
    "masks": check_mask,
    "table": check_classes,
    "texts": check_classes,
}
