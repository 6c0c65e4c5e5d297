"""Small datasets for every task, each made through its importer from files as people have them."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule

__all__ = ["MAKERS", "SIDE", "make_dataset"]

SIDE = 28
"""Height and width of the images."""
_SAMPLES = 40
_VAL_SHARE = 0.25

Options = dict[str, Any]


def make_dataset(name: str, folder: Path) -> Path:
    """Return the folder of a dataset of 40 samples, 30 for training and 10 for validation.

    Args:
        name: in ``MAKERS``.
        folder: where its files and the dataset go; ``files`` below it holds what was imported.
    """
    source = folder / "files"
    source.mkdir(parents=True)
    random = np.random.default_rng(5)
    chosen = MAKERS[name](source, random)
    options = {key: value for key, value in chosen.items() if key not in ("source", "format")}
    request = CreationRequest(
        source=str(chosen.get("source", source)),
        name=name,
        format=chosen["format"],
        options=options,
        rule=SplitRule(method="share", val_share=_VAL_SHARE, test_share=0, seed=1, stratify=False),
        near_duplicates=False,
        workers=0,
    )
    create_dataset(request, folder / "dataset")
    return folder / "dataset"


def _drawn(random: np.random.Generator) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield number, image (H, W, 3) uint8, and where its bright rectangle is (H, W)."""
    for number in range(_SAMPLES):
        image = random.integers(0, 120, (SIDE, SIDE, 3), np.uint8)
        inside = np.zeros((SIDE, SIDE), bool)
        top, left = random.integers(0, SIDE // 2, 2)
        inside[top : top + random.integers(6, 14), left : left + random.integers(6, 14)] = True
        image[inside] += 130
        yield number, image, inside


def _write(path: Path, image: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(".png", image)[1].tobytes())
    return path


def _objects(source: Path, random: np.random.Generator) -> Options:
    images, annotations = [], []
    for number, image, inside in _drawn(random):
        _write(source / "images" / f"{number}.png", image)
        images.append({"id": number, "file_name": f"{number}.png", "height": SIDE, "width": SIDE})
        (top, left), (bottom, right) = np.argwhere(inside).min(axis=0), np.argwhere(inside).max(axis=0) + 1
        box = [int(each) for each in (left, top, right - left, bottom - top)]
        annotation = {"id": number + 1, "image_id": number, "category_id": 1 + number % 2, "iscrowd": 0}
        if number % 7:  # some images have no object
            annotations.append({**annotation, "bbox": box, "area": box[2] * box[3]})
    categories = [{"id": 1, "name": "even"}, {"id": 2, "name": "odd"}]
    content = {"images": images, "annotations": annotations, "categories": categories}
    (source / "instances.json").write_text(json.dumps(content))
    return {"format": "coco"}


def _masks(source: Path, random: np.random.Generator) -> Options:
    for number, image, inside in _drawn(random):
        mask = inside.astype(np.uint8) * (1 + number % 2)
        mask[:2] = 255
        _write(source / "images" / f"{number}.png", image)
        _write(source / "masks" / f"{number}.png", mask)
    (source / "classes.txt").write_text("nothing\nleft\nright\n")
    return {"format": "masks"}


def _measured_images(source: Path, random: np.random.Generator) -> Options:
    lines = []
    for number, image, inside in _drawn(random):
        _write(source / f"{number}.png", image)
        lines.append(f"{number}.png {inside.mean():.4f} {image.mean() / 255:.4f}\n")
    (source / "train.txt").write_text("".join(lines))
    return {"format": "text_list", "kind": "image-regression"}


def _rows(source: Path, random: np.random.Generator, *, classes: bool) -> Options:
    with (source / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["width", "height", "color", "result"])
        for _ in range(_SAMPLES):
            width, height, color = random.normal(10, 3), random.normal(0, 1), random.choice(["red", "green", "blue"])
            value = 40 + 2 * width - height + 5 * (color == "red")
            writer.writerow([f"{width:.4f}", f"{height:.4f}", color, ("low", "high")[value > 60] if classes else value])
    return {
        "source": source / "rows.csv",
        "format": "table",
        "target": "result",
        "task": "classes" if classes else "number",
    }


def _measured_rows(source: Path, random: np.random.Generator) -> Options:
    return _rows(source, random, classes=False)


def _classified_rows(source: Path, random: np.random.Generator) -> Options:
    return _rows(source, random, classes=True)


def _texts(source: Path, random: np.random.Generator) -> Options:
    words = {"good": ["fine", "lovely", "bright"], "bad": ["dull", "grim", "weak"]}
    with (source / "texts.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(_SAMPLES):
            label = ("good", "bad")[number % 2]
            chosen = [*random.choice(words[label], 2), *random.choice(["the", "film", "was", "it"], 5)]
            writer.writerow([" ".join(random.permutation(chosen)), label])
    return {"source": source / "texts.csv", "format": "text", "text": "text", "label": "label"}


def _several_labels(source: Path, random: np.random.Generator) -> Options:
    with tarfile.open(source / "shard-000000.tar", "w") as shard:
        for number, image, _ in _drawn(random):
            labels = random.integers(0, 2, 3).tolist()
            image = (image * (0.4 + 0.6 * np.array(labels))).astype(np.uint8)
            own = {"kind": "image-regression", "label": labels}
            members = {"png": cv2.imencode(".png", image)[1].tobytes(), "json": json.dumps(own).encode()}
            for ending, content in members.items():
                entry = tarfile.TarInfo(f"{number:06}.{ending}")
                entry.size = len(content)
                shard.addfile(entry, io.BytesIO(content))
    (source / "classes.txt").write_text("blue\ngreen\nred\n")
    return {"format": "webdataset"}


def _own_targets(source: Path, random: np.random.Generator) -> Options:
    for number, image, _ in _drawn(random):
        _write(source / f"{number}.png", image[:, :, 0])
    return {"format": "image_pairs", "auto_encoder": True}


def _noisy_pairs(source: Path, random: np.random.Generator) -> Options:
    for number, image, _ in _drawn(random):
        noise = random.normal(0, 25, image.shape)
        _write(source / "noisy" / f"{number}.png", np.clip(image + noise, 0, 255).astype(np.uint8))
        _write(source / "clean" / f"{number}.png", image)
    return {"format": "image_pairs"}


def _class_folders(source: Path, random: np.random.Generator) -> Options:
    for number, image, inside in _drawn(random):
        shape = inside if number % 2 else inside.T
        _write(
            source / ("one", "other")[number % 2] / f"{number}.png", np.where(shape, image[:, :, 0], 20 * (number % 2))
        )
    return {"format": "class_folders"}


def _pairs(source: Path, random: np.random.Generator) -> Options:
    lines = []
    for number, image, _ in _drawn(random):
        same = number % 2
        _write(source / f"{number}a.png", image[:, :, 0])
        _write(source / f"{number}b.png", image[:, :, 1] if same else 255 - image[:, :, 0])
        lines.append(f"{number}a.png {number}b.png {same}\n")
    (source / "train.txt").write_text("".join(lines))
    return {"format": "siamese_pairs"}


MAKERS: dict[str, Callable[[Path, np.random.Generator], Options]] = {
    "masks": _masks,
    "objects": _objects,
    "measured images": _measured_images,
    "measured rows": _measured_rows,
    "classified rows": _classified_rows,
    "texts": _texts,
    "several labels": _several_labels,
    "own targets": _own_targets,
    "noisy pairs": _noisy_pairs,
    "class folders": _class_folders,
    "pairs": _pairs,
}
"""Name → writes the files of a dataset; returns its format, and the options of the importer."""
