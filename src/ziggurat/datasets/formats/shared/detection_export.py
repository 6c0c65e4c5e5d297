"""Shared parts of the detection exporters: the new folder, image paths, and what the format cannot hold."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from PIL import Image

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.formats.shared.detection_import import DETECTION_SUFFIXES, KEYS_NAME
from ziggurat.datasets.formats.shared.exports import ExportReport, new_folder, suffixes_of
from ziggurat.datasets.image_size import stored_size
from ziggurat.datasets.samples import Problem
from ziggurat.errors import DataError
from ziggurat.records.objects import ImageObject, objects_from_json
from ziggurat.records.schema import Schema

__all__ = ["TREES", "DetectionExport", "PlacedSample", "SampleSource", "number_text", "turned_note", "xml_text"]

TREES: Final = frozenset(
    ("images", "image", "jpegimages", "imgs", "img", "image_2", "labels", "label_2", "annotations", "segmentationclass")
)
"""Folders that formats with two trees keep images and labels in, in lower case.

Programs find the label file of an image by another word for such a folder in its path, so that it must be there once.
"""

_UNWRITABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_LONGEST_NAME_BYTES: Final = 200  # file systems take 255; a number and an ending follow


class SourceSample(Protocol):
    """A sample as ``ziggurat.datasets.dataset.StoredSample`` is one."""

    @property
    def key(self) -> str:
        """Its name."""
        ...

    @property
    def parts(self) -> tuple[bytes | str | np.ndarray, ...]:
        """The encoded image, or an array (H, W, C) uint8."""
        ...

    @property
    def label(self) -> Any:
        """Its objects, as JSON values."""
        ...


class SampleSource(Protocol):
    """The part of ``ziggurat.datasets.dataset.Dataset`` that exporters need."""

    @property
    def schema(self) -> Schema:
        """What the samples mean."""
        ...

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""
        ...

    def samples(self, split: str | None = None) -> Iterator[SourceSample]:
        """Yield the samples of a split."""
        ...


class PlacedSample:
    """One sample on its way out.

    Args:
        path: of its image below the new folder.
        size: (width, height) of the image in pixels.
        sample: as it is stored.
    """

    def __init__(self, path: str, size: tuple[int, int], sample: SourceSample) -> None:
        self.key = sample.key
        self.path = path
        self.size = size
        self.parts = sample.parts
        self.objects: list[ImageObject] = objects_from_json(sample.label or ())

    def stem(self, prefix: str) -> str:
        """Return its path without the ending, below a folder."""
        return posixpath.splitext(self.path[len(prefix) :])[0]


class DetectionExport:
    """Writes images and counts what was lost.

    Args:
        dataset: to be written.
        folder: new or empty.
        name: of the format.
        kind: that the dataset must have.

    Raises:
        DataError: where the dataset has another kind.
        StorageError: where the folder is not empty, or the disk refuses.
    """

    def __init__(self, dataset: SampleSource, folder: Path, name: str, kind: str = "detection") -> None:
        if dataset.schema.kind != kind:
            raise DataError(
                f"The format {name} holds datasets of the kind {kind}.",
                received=f"one of the kind {dataset.schema.kind}",
                advice="Choose a format for that kind.",
            )
        self.dataset = dataset
        self.folder = new_folder(folder)
        self.converted = 0
        self._turned = 0
        self._name = name
        self._taken: set[int] = set()
        self._lost: Counter[str] = Counter()
        self._moved: list[tuple[str, str]] = []
        self._counts: dict[str, int] = {}
        self._problems: list[Problem] = []

    @property
    def moved_count(self) -> int:
        """Images whose path is not their key."""
        return len(self._moved)

    def samples(
        self,
        split: str,
        prefix: str = "",
        *,
        without: Collection[str] = (),
        as_png: Collection[str] = (),
        flat: bool = False,
    ) -> Iterator[PlacedSample]:
        """Write the images of a split, and yield each sample when its image is there.

        Args:
            split: one of the dataset's.
            prefix: folder that they must be in, such as ``JPEGImages/``; keys that begin so stay as they are.
            without: names of folders, in lower case, that the paths below ``prefix`` must not have.
            as_png: suffixes of the formats that are written as PNG instead.
            flat: whether all lie in the folder ``prefix`` itself.
        """
        self._counts[split] = 0
        for sample in self.dataset.samples(split):
            part = sample.parts[0]
            data = encode_image(part, "png") if isinstance(part, np.ndarray) else part
            try:
                stored = stored_size(data if isinstance(data, bytes) else b"")
            except ValueError as error:
                reason = f"Its image has no header that tells its size ({error})."
                self._problems.append(Problem(key=sample.key, kind="unreadable", reason=reason, left_out=True))
                continue
            assert isinstance(data, bytes)
            if suffixes_of(data)[0] in as_png:
                data = _as_png(data)
                self.converted += 1
            path = self._place(sample.key, prefix, data, without, flat=flat)
            target = self.folder / path
            with storage_errors(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            if path != sample.key:
                self._moved.append((path, sample.key))
            self._counts[split] += 1
            self._turned += stored.orientation != 1
            yield PlacedSample(path, stored.upright, sample)

    def lose(self, what: str) -> None:
        """Count something that the format cannot hold, such as ``outlines``."""
        self._lost[what] += 1

    def leave_out(self, key: str, count: int, kind: str, what: str) -> None:
        """List objects that were not written."""
        if count:
            self._problems.append(Problem(key=key, kind=kind, reason=f"{count} {what} could not be written."))

    def drop(self, split: str, key: str, kind: str, reason: str) -> None:
        """List a sample that could not be written after its image was."""
        self._counts[split] -= 1
        self._problems.append(Problem(key=key, kind=kind, reason=reason, left_out=True))

    def write(self, path: str, text: str) -> None:
        """Write a text file."""
        target = self.folder / path
        with storage_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode("utf-8"))

    def write_keys(self) -> None:
        """Write the keys of the images that do not lie at theirs, so that our own importer gives them back."""
        if self._moved:
            self.write(KEYS_NAME, "".join(f"{json.dumps(pair, ensure_ascii=False)}\n" for pair in self._moved))

    def report(self, *notes: str) -> ExportReport:
        """Return what was done."""
        lost = [f"{self._name} cannot hold {what}: {count} left out." for what, count in sorted(self._lost.items())]
        turned = [turned_note(self._turned)] if self._turned else []
        notes = (*notes, *turned, *lost)
        return ExportReport(format=self._name, counts=self._counts, problems=self._problems, notes=list(notes))

    def _place(self, key: str, prefix: str, data: bytes, without: Collection[str], *, flat: bool) -> str:
        """Return a path for an image: below the prefix, no other file's, and with the ending of its form."""
        inner = key[len(prefix) :] if key.startswith(prefix) else key
        *folders, name = [_safe(part) for part in inner.split("/") if part not in ("", ".", "..")] or ["picture"]
        kept = [*(each for each in folders if each.lower() not in without), name]
        stem, ending = os.path.splitext(("_" if flat else "/").join(kept))
        suffixes = suffixes_of(data)
        # Tools for detection know the common suffixes only, .jpg and not .jfif.
        fitting = [suffix for suffix in suffixes if suffix in DETECTION_SUFFIXES] or suffixes[:1]
        if ending.lower() not in fitting:
            stem = stem if ending.lower() in DETECTION_SUFFIXES else stem + ending
            ending = fitting[0]
        free, count = stem, 1
        # Label files are named by stems, and some file systems know no case; a chance hit costs a suffix only.
        while hash((prefix + free).lower()) in self._taken:
            count += 1
            free = f"{stem}_{count}"
        self._taken.add(hash((prefix + free).lower()))
        return f"{prefix}{free}{ending}"


def turned_note(count: int) -> str:
    """Return the note on images that EXIF turns."""
    images = "One image is" if count == 1 else f"{count} images are"
    return f"{images} turned by EXIF: labels and sizes are those of the upright image, as most programs show it."


def xml_text(text: str) -> str:
    """Return a text that XML can hold: what it cannot is ``_``."""
    return _UNWRITABLE.sub("_", text)


def number_text(value: float) -> str:
    """Return the shortest text that gives the same number when it is read."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _as_png(data: bytes) -> bytes:
    """Return an image, the first one of several, as PNG with the same pixels."""
    file = BytesIO()
    with Image.open(BytesIO(data)) as image:
        image.save(file, "PNG")
    return file.getvalue()


def _safe(part: str) -> str:
    """Return a part of a path that every file system takes."""
    plain = re.sub(r'[\x00-\x1f\\:*?"<>|]', "_", part).encode("utf-8", "replace").decode()
    if len(plain.encode()) > _LONGEST_NAME_BYTES:
        stem, ending = os.path.splitext(plain)
        plain = stem.encode()[:_LONGEST_NAME_BYTES].decode("utf-8", "ignore") + ending[:8]
    return f"_{plain}" if plain.startswith((".", "__MACOSX")) else plain
