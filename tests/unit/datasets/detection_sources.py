"""Shared parts of the detection-format tests: small images, an in-memory dataset, scans as plain values."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
import pytest

from ziggurat.datasets.samples import Problem, Sample
from ziggurat.records.objects import ImageObject, objects_from_json, objects_to_json
from ziggurat.records.schema import Schema

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))


def shared(name):
    if not (SHARED / name).is_dir():
        pytest.skip(f"the shared dataset {name} is not here")
    return SHARED / name


def encoded(width, height, ending=".jpg"):
    return cv2.imencode(ending, np.zeros((height, width, 3), np.uint8))[1].tobytes()


def save_picture(path, width=100, height=80):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(width, height, path.suffix))


def save_text(path, text, encoding="utf-8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))


@dataclass
class Scanned:
    """What a scan gave."""

    samples: dict[str, Sample]
    problems: list[Problem]
    schema: Schema

    def objects(self, key):
        return objects_from_json(self.samples[key].label)

    def boxes(self, key):
        return [each.box for each in self.objects(key)]

    def names(self, key):
        return [
            None if each.class_number < 0 else self.schema.class_names[each.class_number] for each in self.objects(key)
        ]

    def kinds(self):
        return [problem.kind for problem in self.problems]

    def count(self):
        return sum(len(sample.label) for sample in self.samples.values())

    def splits(self):
        return {key: sample.split for key, sample in self.samples.items()}


def confidence(importer, source):
    """Return the confidence of a guess, 0 where there is none."""
    guess = importer.guess(source)
    return 0.0 if guess is None else guess.confidence


def scan(importer, source, **options):
    """Scan a source; twice, to see that the second scan says the same."""
    first, second = (importer.scan(source, importer.checked_options(options)) for _ in range(2))
    found = list(first)
    assert found == list(second)
    samples = [each for each in found if isinstance(each, Sample)]
    assert len({sample.key for sample in samples}) == len(samples)
    problems = [each for each in found if isinstance(each, Problem)]
    return Scanned({sample.key: sample for sample in samples}, problems, first.schema)


@dataclass
class MemorySample:
    """A sample as a dataset gives it."""

    key: str
    parts: tuple
    label: list | None


@dataclass
class MemoryDataset:
    """The part of a dataset that exporters use."""

    schema: Schema
    pictures: dict[str, list[MemorySample]] = field(default_factory=dict)

    @property
    def splits(self):
        return tuple(self.pictures)

    def samples(self, split=None):
        for name in self.splits if split is None else (split,):
            yield from self.pictures[name]


def dataset(class_names, pictures, details=None):
    """Return a dataset of split → key → ((width, height), objects)."""
    samples = {
        split: [
            MemorySample(
                key=key,
                parts=(encoded(size[0], size[1], ".jpg" if key.endswith(".jpg") else ".png"),),
                label=objects_to_json(objects),
            )
            for key, (size, objects) in content.items()
        ]
        for split, content in pictures.items()
    }
    return MemoryDataset(Schema(kind="detection", class_names=tuple(class_names), details=details or {}), samples)


def box(class_number, left, top, right, bottom, **fields):
    return ImageObject(class_number=class_number, box=(left, top, right, bottom), **fields)


def imported(importer, source, **options):
    """Return what a scan gave as a dataset in memory that keeps the files as they are, and the scan."""
    found = scan(importer, source, **options)
    reader = importer.reader(source, importer.checked_options(options))
    pictures: dict[str, list[MemorySample]] = {}
    for sample in found.samples.values():
        content = tuple(reader.read(str(part)) for part in sample.parts)
        pictures.setdefault(sample.split or "train", []).append(MemorySample(sample.key, content, sample.label))
    return MemoryDataset(found.schema, pictures), found
