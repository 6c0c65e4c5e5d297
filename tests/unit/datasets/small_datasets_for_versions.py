"""Small datasets, written through the documented classes, for tests of versions, readers and flows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ziggurat.datasets.catalog import CatalogueWriter, Entry
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.records.codec import FileReference, pack_record
from ziggurat.records.manifest import ImageForm, Manifest, SourceNote, SplitNote, StoreNote
from ziggurat.records.schema import Column, Schema
from ziggurat.records.stores import create_records

ANIMALS = Schema(kind="image-classification", class_names=("cat", "dog", "owl"))
PNG = ImageForm(encoding="png", height_px=6, width_px=8, channels=3)


_opened: list[Dataset] = []


def picture(seed: int, height: int = 6, width: int = 8) -> np.ndarray:
    """Return an image, (H, W, 3) uint8, that no other seed gives."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def png(image: np.ndarray) -> bytes:
    """Return an image, RGB, or a mask as a PNG file."""
    content = cv2.imencode(".png", image[..., ::-1] if image.ndim == 3 else image)[1]
    return content.tobytes()


def animals(count: int, *, first: int = 0, folder: str = "", classes: int = 3) -> list[tuple[str, tuple[bytes], int]]:
    """Return samples (key, parts, label): images of cats, dogs and owls in turn."""
    return [
        (f"{folder}{number:02d}.png", (png(picture(number)),), number % classes)
        for number in range(first, first + count)
    ]


def write_dataset(
    folder: Path,
    splits: Mapping[str, Sequence[tuple[str, tuple[Any, ...], Any]]],
    schema: Schema = ANIMALS,
    *,
    image: ImageForm | None = PNG,
    store: str = "lmdb",
    per_store: int | None = None,
    root: str = "",
    mean: bool = False,
    problems: Sequence[Problem] = (),
    number_step: int = 1,
) -> Dataset:
    """Write a dataset and open it.

    Args:
        folder: to make; its name is the dataset's.
        splits: samples (key, parts, label) of each split.
        schema: what they mean.
        image: how images are stored.
        store: format of the records.
        per_store: records in a file; None for one file.
        root: where references begin.
        mean: whether it has a mean image of its training split.
        problems: that its catalog lists.
        number_step: from one number in the catalog to the next; 2 leaves gaps.
    """
    folder.mkdir(parents=True)
    notes = {name: _write_split(folder, name, samples, store, per_store) for name, samples in splits.items()}
    with CatalogueWriter(folder / "index.sqlite") as catalogue:
        everything = [(split, row, each) for split, samples in splits.items() for row, each in enumerate(samples)]
        for number, (split, row, each) in enumerate(everything):
            catalogue.add(_entry(number * number_step, split, row, each))
        for problem in problems:
            catalogue.add_problem(problem)
    means = np.mean([_pixels(parts[0]) for _, parts, _ in splits["train"]], axis=0).astype(np.float32) if mean else None
    if means is not None:
        np.save(folder / "mean.npy", means)
    Manifest(
        name=folder.name,
        schema=schema,
        splits=notes,
        image=image,
        mean="mean.npy" if mean else "",
        pixel_mean=() if means is None else tuple(float(value) for value in means.mean(axis=(0, 1))),
        index="index.sqlite",
        source=SourceNote(uri=root or f"{folder.name}-source", format="class-folders", root=root),
        problems={each.kind: 1 for each in problems},
    ).save(folder)
    return opened(folder)


def opened(folder: Path) -> Dataset:
    """Open a dataset; ``datasets_are_closed`` closes it after the test."""
    _opened.append(Dataset(folder))
    return _opened[-1]


@pytest.fixture(autouse=True)
def datasets_are_closed() -> Iterator[None]:
    """Close all data sets of a test; import it where ``write_dataset`` or ``opened`` is used."""
    yield
    while _opened:
        _opened.pop().close()


def content(dataset: Dataset) -> dict[str, list[tuple[str, Any]]]:
    """Return split → (key, label) of each sample, as a reader of records sees them."""
    return {
        split: [(sample.key, sample.label) for sample in dataset.samples(split)] for split in dataset.manifest.splits
    }


def catalogued(dataset: Dataset) -> dict[str, list[tuple[str, Any]]]:
    """Return the same, as the catalog knows it."""
    found: dict[str, list[tuple[str, Any]]] = {split: [] for split in dataset.manifest.splits}
    for entry in dataset.catalogue.walk():
        assert entry.row == len(found[entry.split])
        found[entry.split].append((entry.key, entry.label))
    return found


def box(number: int, left: float = 1.0) -> dict[str, Any]:
    """Return an object of a class, as it stands in a label."""
    return {"class": number, "box": [left, 1.0, left + 2.5, 4.0]}


def one_of_each_kind() -> dict[str, tuple[Schema, ImageForm | None, list[tuple[str, tuple[Any, ...], Any]]]]:
    """Return kind → schema, form of images and three samples."""
    pictures = [png(picture(seed)) for seed in range(6)]
    mask = np.array([[0, 1], [2, 255]], np.uint8)
    classes = ("cat", "dog", "owl")
    columns = (Column(name="size", type="number"), Column(name="kind", type="category", categories=classes))
    rows = [json.dumps([1.5 * number, classes[number]]).encode() for number in range(3)]
    one, two = [(each,) for each in pictures], list(zip(pictures, pictures[3:], strict=False))
    masked = [(each, png(mask)) for each in pictures]
    table = Schema(kind="table", class_names=classes, columns=columns, target="kind")
    arrays = [(np.arange(4.0) * number,) for number in range(3)]
    objects = [[box(0), box(2, 3.0)], [], [box(-1)]]
    everything: list[tuple[Schema, ImageForm | None, Sequence[tuple[Any, ...]], list[Any]]] = [
        (ANIMALS, PNG, one, [0, 1, 2]),
        (Schema(kind="image-regression"), PNG, one, [[0.5, 1.0], [2, 3.25], [4, 5]]),
        (Schema(kind="detection", class_names=classes), PNG, one, objects),
        (Schema(kind="segmentation", class_names=classes, ignore_class=255), PNG, masked, [None] * 3),
        (Schema(kind="image-to-image"), PNG, two, [None] * 3),
        (Schema(kind="image-pairs"), PNG, two, [1, 0, 1]),
        (table, None, [(each,) for each in rows], [0, 1, None]),
        (Schema(kind="text-classification", class_names=classes), None, [("Grüße",), ("a b",), ("",)], [0, 1, 2]),
        (Schema(kind="generic"), None, arrays, [0.5, [1, 2], None]),
    ]
    return {
        schema.kind: (
            schema,
            form,
            [(f"sample {place}", one, label) for place, (one, label) in enumerate(zip(some, labels, strict=False))],
        )
        for schema, form, some, labels in everything
    }


def refer_to(root: Path, name: str, data: bytes) -> FileReference:
    """Write a file below a root, and return a reference to it."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return FileReference(name, len(data), path.stat().st_mtime_ns)


def _write_split(
    folder: Path, name: str, samples: Sequence[tuple[str, tuple[Any, ...], Any]], store: str, per_store: int | None
) -> SplitNote:
    stores = []
    step = per_store or max(len(samples), 1)
    for start in range(0, len(samples), step):
        path = folder / (f"{name}.{store}" if per_store is None else f"{name}-{start // step}.{store}")
        with create_records(path, store) as records:
            for key, parts, label in samples[start : start + step]:
                records.append(key, pack_record(parts, label))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        count = len(samples[start : start + step])
        stores.append(
            StoreNote(path=path.name, record_format=store, count=count, size_bytes=path.stat().st_size, sha256=digest)
        )
    return SplitNote(count=len(samples), stores=tuple(stores))


def _entry(number: int, split: str, row: int, each: tuple[str, tuple[Any, ...], Any]) -> Entry:
    key, parts, label = each
    entry = Entry.of_sample(number, Sample(key=key, parts=(key,), label=label, split=split))
    first = parts[0] if isinstance(parts[0], bytes) else repr(parts[0]).encode()
    return replace(entry, row=row, content_hash=hashlib.sha256(first).digest()[:16], width_px=8, height_px=6)


def _pixels(data: bytes) -> np.ndarray:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
