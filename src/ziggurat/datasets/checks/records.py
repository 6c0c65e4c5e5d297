"""Checks of files: missing or changed stores, corrupt records, and changed files that records refer to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.checks.facts import Facts
from ziggurat.datasets.checks.report import Finding
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.codec import FileReference

__all__ = ["check_records", "check_stores"]

_ADVICE = "Leave them out, or bring the files back as they were and check again."


def check_stores(facts: Facts, *, verify: bool) -> Iterator[Finding]:
    """Yield a finding on files of the dataset that are not as its manifest says, in size or (``verify``) checksum."""
    wrong = []
    for note in facts.dataset.manifest.splits.values():
        for store in note.stores:
            path = facts.dataset.folder / store.path
            if not path.exists():
                wrong.append(f"`{store.path}` is not there")
            elif path.is_file() and store.size_bytes and path.stat().st_size != store.size_bytes:
                wrong.append(f"`{store.path}` has {path.stat().st_size} bytes, not {store.size_bytes}")
            elif verify and path.is_file() and store.sha256 and _sha256(path) != store.sha256:
                wrong.append(f"`{store.path}` has another checksum")
    if wrong:
        yield Finding(
            kind="changed-store",
            severity="error",
            count=len(wrong),
            text=f"{len(wrong)} files are not as they were made: {'; '.join(wrong[:10])}.",
            advice="Bring them back from a copy, or make the dataset again.",
        )


def check_records(facts: Facts) -> Iterator[Finding]:
    """Yield findings on records and files that cannot be read or decoded; every one is read."""
    damaged: dict[int, str] = {}
    changed: dict[int, str] = {}
    for place in range(len(facts.numbers)):
        is_reference, reason = _read(facts, place)
        if reason:
            (changed if is_reference else damaged)[place] = reason
    for kind, notes, what in (
        ("corrupt-record", damaged, "samples cannot be read or decoded."),
        ("changed-file", changed, "samples refer to a file that is gone, has changed, or cannot be decoded."),
    ):
        if notes:
            places = np.array(list(notes), np.int64)
            yield facts.finding(kind, "error", places, f"{len(notes)} {what}", _ADVICE, notes=notes)


def _read(facts: Facts, place: int) -> tuple[bool, str]:
    """Return whether the first part is a file of the source, and why the sample cannot be read; empty where it can."""
    split, row = facts.split(place), int(facts.rows[place])
    is_reference = False
    try:
        is_reference = isinstance(facts.dataset.reader(split).record(row).parts[0], FileReference)
        sample = facts.dataset.sample(split, row)
        if is_reference and _has_changed(facts, place, sample.parts[0]):
            return True, "its content has changed since the dataset was made."
        if facts.dataset.manifest.image is not None:
            for name, content in zip(facts.dataset.schema.parts, sample.parts, strict=False):
                if isinstance(content, bytes):
                    (decode_mask if name == "mask" else _decode)(content, sample.key)
    except DatapointError as error:
        return is_reference, error.reason
    except DataError as error:  # a store that is not there, or not a store
        return is_reference, str(error)
    return is_reference, ""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _has_changed(facts: Facts, place: int, content: Any) -> bool:
    if not facts.known_contents[place] or not isinstance(content, bytes):
        return False
    return hashlib.sha256(content).digest()[:16] != facts.contents[place].tobytes()


def _decode(content: bytes, key: str) -> np.ndarray:
    return decode_image(content, key=key)
