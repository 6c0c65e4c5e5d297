"""Export to TFRecord shards of ``tf.train.Example``, readable by TensorFlow's tools."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.datasets.dataset import Dataset, StoredSample
from ziggurat.datasets.formats.shared.detection_export import turned_note
from ziggurat.datasets.formats.shared.exports import Export, ExportReport, encoded_part, line_names, suffix_of
from ziggurat.datasets.formats.tfrecord.records import KEY, LABEL, PART_FEATURES, Feature, pack_features
from ziggurat.datasets.image_size import size_of, stored_size
from ziggurat.errors import ConfigurationError, DatapointError
from ziggurat.protobuf_wire import tfrecord_frame
from ziggurat.records.objects import objects_from_json

__all__ = ["export_tfrecord"]

_KINDS: Final = (
    "image-classification",
    "detection",
    "segmentation",
    "image-to-image",
    "image-pairs",
    "image-regression",
)
_FORMATS: Final = {".jpg": b"jpeg", ".png": b"png", ".bmp": b"bmp", ".gif": b"gif"}


def export_tfrecord(dataset: Dataset, folder: Path, *, records_per_shard: int = 10_000) -> ExportReport:
    """Write shards such as ``train-00000-of-00008``, and the names of the classes.

    The features are those that ``ziggurat.datasets.formats.tfrecord.records`` lists. Classes are numbered from 0, and
    those of objects from 1, as TensorFlow's tools expect; ``labels.txt`` has lines ``number:name``, and
    ``label_map.pbtxt`` the same for detection.

    Args:
        dataset: with images.
        folder: new or empty.
        records_per_shard: at most.

    Raises:
        DataError: where the dataset has no images.
        ConfigurationError: where a shard is to have no records.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    if records_per_shard < 1:
        raise ConfigurationError("A shard has at least one record.", received=str(records_per_shard))
    export = Export(dataset, folder, "tfrecord", _KINDS)
    first = int(dataset.kind == "detection")
    names = line_names(dataset.schema.class_names)
    turned = 0
    unread: Counter[str] = Counter()
    for split in dataset.splits:
        shards = max(1, -(-dataset.size(split) // records_per_shard))
        with _shard_files(export.folder, split or "all", shards) as files:
            for sample in export.samples(split):
                try:
                    features = _features(dataset, sample, names)
                except DatapointError as error:
                    export.leave_out(sample.key, "unreadable", error.rule)
                    continue
                files.write(sample.row // records_per_shard, tfrecord_frame(pack_features(features)))
                export.counts[split] += 1
                unread.update(_unread(dataset.kind, sample))
                first_part = features[PART_FEATURES[dataset.schema.parts[0]]][0]
                turned += isinstance(first_part, bytes) and stored_size(first_part).orientation != 1
    export.write_class_names("labels.txt", numbered_from=first)
    if dataset.kind == "detection":
        items = (f"item {{\n  id: {number}\n  name: {json.dumps(name)}\n}}\n" for number, name in enumerate(names, 1))
        export.write("label_map.pbtxt", "".join(items))
    if dataset.kind == "image-to-image" and len(dataset.schema.parts) == 1:
        unread["that an image is its own target"] = sum(export.counts.values())
    export.notes += [f"Only our own importer reads {what}: {count}." for what, count in sorted(unread.items())]
    if turned:
        export.notes.append(turned_note(turned))
    return export.report()


class _Shards:
    """Writes shards one after the other; each exists, also where it has no record."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths
        self._number = -1
        self._file: BinaryIO | None = None

    def write(self, number: int, content: bytes) -> None:
        self.go_to(number)
        assert self._file is not None
        self._file.write(content)

    def go_to(self, number: int) -> None:
        while self._number < number:
            self.close()
            self._number += 1
            self._file = self._paths[self._number].open("xb", buffering=1 << 20)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@contextmanager
def _shard_files(folder: Path, split: str, shards: int) -> Iterator[_Shards]:
    files = _Shards([folder / f"{split}-{number:05d}-of-{shards:05d}" for number in range(shards)])
    with storage_errors(folder):
        try:
            yield files
            files.go_to(shards - 1)
        finally:
            files.close()


def _features(dataset: Dataset, sample: StoredSample, names: list[str]) -> dict[str, Feature]:
    contents = [encoded_part(part, sample.key) for part in sample.parts]
    height, width = size_of(contents[0], sample.key)
    features: dict[str, Feature] = {
        "image/height": [height],
        "image/width": [width],
        "image/format": [_FORMATS.get(suffix_of(contents[0]), b"other")],
        "image/filename": [sample.key.encode()],
        "image/source_id": [sample.key.encode()],
        KEY: [sample.key.encode()],
        LABEL: [json.dumps(sample.label, ensure_ascii=False).encode()],
    }
    for part, content in zip(dataset.schema.parts, contents, strict=False):
        features[PART_FEATURES[part]] = [content]
    if dataset.kind == "image-classification":
        features["image/class/label"] = [sample.label]
        features["image/class/text"] = [names[sample.label].encode()]
    elif dataset.kind == "detection":
        features.update(_objects(sample, (height, width), names))
    return features


def _unread(kind: str, sample: StoredSample) -> Iterator[str]:
    """Yield what a record holds in our own feature alone, once for each object."""
    for each in objects_from_json(sample.label) if kind == "detection" else ():
        there = {
            "outlines": each.polygons,
            "run lengths": each.mask,
            "regions without a class": each.class_number < 0,
            "further fields of objects": each.details,
        }
        yield from (what for what, is_there in there.items() if is_there)


def _objects(sample: StoredSample, size: tuple[int, int], names: list[str]) -> dict[str, Feature]:
    objects = [each for each in objects_from_json(sample.label) if each.class_number >= 0]
    boxes = np.array([each.box for each in objects], np.float64).reshape(-1, 4) / (size[1], size[0], size[1], size[0])
    features: dict[str, Feature] = {
        f"image/object/bbox/{side}": [float(value) for value in boxes[:, column]]
        for column, side in enumerate(("xmin", "ymin", "xmax", "ymax"))
    }
    features["image/object/class/label"] = [each.class_number + 1 for each in objects]
    features["image/object/class/text"] = [names[each.class_number].encode() for each in objects]
    features["image/object/difficult"] = [int(each.difficult) for each in objects]
    features["image/object/is_crowd"] = [int(each.crowd) for each in objects]
    return features
