"""Small catalogs and datasets, made by the documented classes, for the tests of splits and checks."""

import hashlib
import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from ziggurat.dataflow.image_codec import decode_image, encode_image
from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.hashing import picture_hash
from ziggurat.datasets.samples import Sample
from ziggurat.records.codec import pack_record
from ziggurat.records.manifest import ImageForm, Manifest, SplitNote, StoreNote
from ziggurat.records.schema import Schema
from ziggurat.records.stores import create_records

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


def shared_files(pattern):
    """Return real files, or skip the test."""
    files = sorted(SHARED.glob(pattern))
    if not files:
        pytest.skip(f"needs the datasets for tests: no {pattern} in {SHARED.name}")
    return files


def catalogue_of(path, samples):
    """Return the catalog of a scan that found these samples."""
    with CatalogueWriter(path) as writer:
        for number, sample in enumerate(samples):
            writer.add(Entry.of_sample(number, sample))
    return Catalogue(path)


def sample(key, label=None, **facts):
    """Return a sample that is one file."""
    return Sample(key=key, parts=(key,), label=label, **facts)


def picture(seed, size=(96, 128)):
    """Return an image with structure, (H, W, 3) uint8: colored patches that no other seed has."""
    patches = np.random.default_rng(seed).integers(0, 256, (10, 10, 3), np.uint8)
    return cv2.resize(patches, (size[1], size[0]), interpolation=cv2.INTER_CUBIC)


def frames(seed, count, size=(96, 128)):
    """Return frames of a video, a burst of images that differ in noise and a little movement."""
    random = np.random.default_rng([7, seed])
    still = picture(seed, size).astype(np.int16)
    return [
        (np.roll(still, step % 2, axis=1) + random.integers(-4, 5, still.shape)).clip(0, 255).astype(np.uint8)
        for step in range(count)
    ]


def jpeg(image, quality=90):
    return encode_image(image, "jpeg", quality=quality)


def dataset_of(folder, splits, *, kind="image-classification", class_names=(), readable=True, hashes=True, schema=None):
    """Return a finished dataset.

    Args:
        folder: to make it in.
        splits: split → list of (key, parts, label).
        kind: of the dataset.
        class_names: by number.
        readable: whether the images are such that they can be looked at.
        hashes: whether the catalog has perceptual hashes.
        schema: in the place of kind and class names.
    """
    folder.mkdir(parents=True)
    schema = schema or Schema(kind=kind, class_names=tuple(class_names))
    notes, number = {}, 0
    with CatalogueWriter(folder / "index.sqlite") as catalogue:
        for split, points in splits.items():
            store = folder / f"{split}.lmdb"
            with create_records(store) as writer:
                for row, (key, parts, label) in enumerate(points):
                    writer.append(key, pack_record(parts, label))
                    catalogue.add(_entry(number, split, row, (key, parts, label), readable=readable, hashes=hashes))
                    number += 1
            note = StoreNote(path=store.name, record_format="lmdb", count=len(points), size_bytes=0, sha256="")
            notes[split] = SplitNote(count=len(points), stores=(note,))
    image = ImageForm(encoding="original") if "image" in schema.parts else None
    Manifest(name=folder.name, schema=schema, splits=notes, image=image, index="index.sqlite").save(folder)
    return Dataset(folder)


def _entry(number, split, row, point, *, readable, hashes):
    key, parts, label = point
    first = parts[0] if isinstance(parts[0], bytes) else b""
    decoded = decode_image(first) if first and readable else None
    size = (None, None) if decoded is None else decoded.shape[:2]
    return Entry(
        number=number,
        split=split,
        row=row,
        key=key,
        parts=(key,),
        label=label,
        class_number=label if type(label) is int else None,
        objects=len(label) if isinstance(label, list) and all(isinstance(each, dict) for each in label) else None,
        source_bytes=len(first),
        height_px=size[0],
        width_px=size[1],
        content_hash=hashlib.sha256(first).digest()[:16] if first else None,
        picture_hash=picture_hash(decoded) if hashes and decoded is not None else None,
    )
