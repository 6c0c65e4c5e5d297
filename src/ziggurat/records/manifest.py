"""``manifest.json``: the content of a dataset's folder; a reader needs nothing else to use the dataset.

The manifest has no times and no absolute paths except that of the source, so that the same creation gives the same
bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, Self

from ziggurat.atomic import AtomicFile, file_signature, storage_errors
from ziggurat.errors import DataError, UnknownNameError
from ziggurat.records.schema import Schema

__all__ = ["MANIFEST_NAME", "ImageForm", "Manifest", "Parent", "SourceNote", "SplitNote", "StoreNote"]

MANIFEST_NAME: Final = "manifest.json"
_VERSION: Final = 1
_HALF: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class StoreNote:
    """One file of records.

    Args:
        path: relative to the folder of the dataset.
        record_format: ``lmdb``, ``hdf5`` or ``tfrecord``.
        count: records in it.
        size_bytes: size of the file.
        sha256: checksum of the file, hexadecimal.
    """

    path: str
    record_format: str
    count: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class SplitNote:
    """One split.

    Args:
        count: its samples.
        stores: its files; their records are numbered on from one to the next.
        rows: file (``.npy``, int64) with the number of the record of each sample, where samples were left out, moved or
            joined after creation; empty where sample and record have the same numbers.
        labels: file (JSON lines, ``[row, label]``) with labels that were changed after creation; empty for none.
        class_counts: samples by class number (of a detection set: objects).
    """

    count: int
    stores: tuple[StoreNote, ...]
    rows: str = ""
    labels: str = ""
    class_counts: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImageForm:
    """How images are stored.

    Args:
        encoding: ``png``, ``jpeg``, ``raw`` (an array), ``original`` (the bytes of the file; PNG where the source has
            arrays and no files), or ``reference`` (the file itself, where it is).
        resize_mode: ``squash``, ``crop``, ``fill``, ``half_crop``, or ``none``.
        height_px: of every image; None where sizes differ.
        width_px: of every image; None where sizes differ.
        channels: 1 or 3; None where that differs.
        quality: of JPEG, from 1 to 100.
        bits: number of bits that the values of 16-bit images use, the same for all; 16 without such images.
    """

    encoding: str
    resize_mode: str = "none"
    height_px: int | None = None
    width_px: int | None = None
    channels: int | None = None
    quality: int = 90
    bits: int = 16


@dataclass(frozen=True, kw_only=True)
class SourceNote:
    """Where the samples came from.

    Args:
        uri: as a person gave it.
        format: name of the importer.
        root: folder that references are relative to; empty where nothing is referenced.
        options: of the importer.
    """

    uri: str
    format: str
    root: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Parent:
    """The version that this one was made of.

    Args:
        id: of the parent's manifest.
        name: of the parent.
        changes: what was done, one sentence each.
    """

    id: str
    name: str
    changes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a dataset's folder holds.

    Args:
        name: what people call it.
        schema: what its records mean.
        splits: ``train``, ``val``, ``test`` → what is in it.
        image: how images are stored; None for sets without images.
        mean: file (``.npy``) with the mean image of the training split, (H, W, C) float32; empty for none.
        pixel_mean: mean of the training split's pixels, one number a channel; empty for none.
        index: file (SQLite) for exploring; training does not need it.
        source: where the samples came from; None for a version that was made of several.
        spec: what was asked for.
        problems: kind of problem → how many samples have it; the index lists them.
        losses: what stands in the source and not in the dataset, by unit and reason: ``unit`` (``objects``,
            ``samples``, ``names``), ``kind`` (of the problems), ``lost``, ``total`` (None where unknown), ``text`` and
            ``warns`` (whether it is much). Datasets of 0.2 have none: what they lost stands in their problems.
        parents: the versions that this one was made of.
        release: version of Ziggurat that made it.
        rules: number of the rules by which its source was read (``ziggurat.datasets.rules``); of 0.2 and before: 0.
        id: SHA-256 of all the rest, hexadecimal.
    """

    name: str
    schema: Schema
    splits: Mapping[str, SplitNote]
    image: ImageForm | None = None
    mean: str = ""
    pixel_mean: tuple[float, ...] = ()
    index: str = ""
    source: SourceNote | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    problems: Mapping[str, int] = field(default_factory=dict)
    losses: tuple[Mapping[str, Any], ...] = ()
    parents: tuple[Parent, ...] = ()
    release: str = ""
    rules: int = 0
    id: str = ""

    def save(self, folder: Path) -> Manifest:
        """Write ``manifest.json`` whole or not at all; return it with its id.

        Raises:
            StorageError: where one is there already, or the disk refuses.
        """
        complete = replace(self, id=self.content_id())
        target = AtomicFile(folder / MANIFEST_NAME)
        try:
            with storage_errors(target.final):
                target.path.write_text(_text(complete.as_json()) + "\n", "utf-8")
            target.publish()
        except BaseException:
            target.discard()
            raise
        return complete

    def content_id(self) -> str:
        """Return the SHA-256 of everything but the id itself."""
        content = json.loads(json.dumps(self.as_json() | {"id": ""}))  # as it is read again: keys become texts
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """Return the form on disk; what lies in it is shared by all callers, and is not to be changed."""
        return dict(self._content)

    @cached_property
    def _content(self) -> dict[str, Any]:
        return {"version": _VERSION, **asdict(self)}

    @staticmethod
    def load(folder: Path) -> Manifest:
        """Return the manifest of a dataset; it is parsed once for all who read it, until the file changes.

        Raises:
            DataError: where the folder holds no finished dataset, or the manifest was changed.
        """
        path = folder / MANIFEST_NAME
        try:
            return _parsed(path, file_signature(path))
        except OSError as error:
            raise DataError(
                f"`{folder}` holds no finished dataset: {error.strerror}.",
                advice="Make one with: ziggurat dataset create. An unfinished one goes on by: ziggurat resume JOB.",
            ) from None

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the manifest that a file holds.

        Raises:
            KeyError, TypeError, ValueError, AttributeError, UnknownNameError: where it is no manifest.
        """
        given = {name: value for name, value in content.items() if name != "version"}
        image, source = given["image"], given["source"]
        return cls(
            **given
            | {
                "schema": Schema.from_json(given["schema"]),
                "splits": {name: _split(note) for name, note in given["splits"].items()},
                "image": None if image is None else ImageForm(**image),
                "source": None if source is None else SourceNote(**source),
                "pixel_mean": tuple(given["pixel_mean"]),
                "losses": tuple(given.get("losses", ())),
                "parents": tuple(
                    Parent(**{**parent, "changes": tuple(parent["changes"])}) for parent in given["parents"]
                ),
            }
        )


@lru_cache(maxsize=64)
def _parsed(path: Path, _signature: tuple[int, ...]) -> Manifest:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, error) from None
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        version = content.get("version") if isinstance(content, dict) else None
        raise DataError(f"The manifest `{path}` is of version {version}; this release reads version {_VERSION}.")
    try:
        manifest = Manifest.from_json(content)
    except (KeyError, TypeError, ValueError, AttributeError, UnknownNameError) as error:
        raise _damaged(path, error) from None
    # The text that was read, not the parsed value: a list of a thousand datasets reads a thousand manifests.
    if manifest.id != hashlib.sha256(json.dumps(content | {"id": ""}, sort_keys=True).encode()).hexdigest():
        raise _damaged(path, "its `id` does not belong to its content")
    return manifest


def _text(content: dict[str, Any]) -> str:
    text = json.dumps(content, indent=1, ensure_ascii=False)
    # A path that is not UTF-8 has half characters in Python, which no file may hold but as an escape.
    return text if text.isascii() or not _HALF.search(text) else json.dumps(content, indent=1)


def _split(note: dict[str, Any]) -> SplitNote:
    stores = tuple(StoreNote(**store) for store in note["stores"])
    return SplitNote(**note | {"stores": stores, "class_counts": tuple(note["class_counts"])})


def _damaged(path: Path, reason: object) -> DataError:
    return DataError(
        "A manifest is read as it was written.",
        received=f"`{path}`: {reason}",
        advice="Manifests are never edited: make a new version with `ziggurat dataset`.",
    )
