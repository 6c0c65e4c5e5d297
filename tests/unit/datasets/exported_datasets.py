"""Small finished datasets for exporters, made by the documented classes, and what an importer reads back."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.format_registry import guess_format
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.records.codec import pack_record
from ziggurat.records.manifest import ImageForm, Manifest, SplitNote, StoreNote
from ziggurat.records.schema import Schema
from ziggurat.records.stores import create_records

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


def shared_folder(name):
    """Return a real dataset, or skip the test."""
    if not (SHARED / name).is_dir():
        pytest.skip(f"needs the datasets for tests: no {name} in {SHARED.name}")
    return SHARED / name


def dataset_with(folder, splits, schema, *, form=None, mean=None):
    """Return a finished dataset.

    Args:
        folder: to make it in.
        splits: split → list of (key, parts, label).
        schema: what they mean.
        form: of the images.
        mean: the mean image, (H, W, C).
    """
    folder.mkdir(parents=True)
    notes = {}
    for split, points in splits.items():
        with create_records(folder / f"{split}.lmdb") as writer:
            for key, parts, label in points:
                writer.append(key, pack_record(parts, label))
        store = StoreNote(path=f"{split}.lmdb", record_format="lmdb", count=len(points), size_bytes=0, sha256="")
        notes[split] = SplitNote(count=len(points), stores=(store,))
    if mean is not None:
        np.save(folder / "mean.npy", mean.astype(np.float32))
    Manifest(
        name="small",
        schema=schema if isinstance(schema, Schema) else Schema(kind=schema),
        splits=notes,
        image=form or ImageForm(encoding="original", channels=3),
        mean="" if mean is None else "mean.npy",
    ).save(folder)
    return Dataset(folder)


@dataclass
class ReadBack:
    """What an importer found: key → (split, parts, label), in order, its schema, and problems."""

    samples: dict
    schema: Schema
    problems: list


def read_back(importer, source, **options):
    """Scan a source and read every part."""
    complete = importer.checked_options(options)
    scan = importer.scan(source, complete)
    found = list(scan)
    samples = {}
    with importer.reader(source, {**complete, **scan.found_options}) as reader:
        for each in found:
            if isinstance(each, Sample):
                parts = tuple(part if isinstance(part, bytes) else reader.read(part) for part in each.parts)
                samples[each.key] = (each.split, parts, each.label)
    return ReadBack(samples, scan.schema, [each for each in found if isinstance(each, Problem)])


def expected(splits):
    """Return what must come back of a dataset that was made with these splits."""
    return {key: (split, tuple(parts), label) for split, points in splits.items() for key, parts, label in points}


def kinds_of(problems):
    """Return key → kind of problem."""
    return {problem.key: problem.kind for problem in problems}


def guessed(source):
    """Return name and kind of the format that a source is taken for."""
    guess = guess_format(source)
    return guess.format, guess.kind
