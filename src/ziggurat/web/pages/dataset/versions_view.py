"""View model of the dataset versions page: version chain, counts side by side, differences between two versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import DataError
from ziggurat.workspace.dataset_versions import what_differs
from ziggurat.workspace.datasets import describe
from ziggurat.workspace.studio import Studio

__all__ = ["DatasetVersion", "differences_of", "versions_of"]

_MOST: Final = 30


@dataclass(frozen=True, kw_only=True)
class DatasetVersion:
    """One version in the chain.

    Args:
        note: what the chain says of it: ``name``, ``changes``, ``parents``.
        job: its job; None where it was deleted.
        splits: split → samples; empty where it was deleted.
        classes: name → samples (or objects) of all splits.
    """

    note: Any
    job: Job | None
    splits: Mapping[str, int]
    classes: Mapping[str, int]

    @property
    def total(self) -> int:
        """Samples of all splits."""
        return sum(self.splits.values())


def versions_of(studio: Studio, job_id: str) -> list[DatasetVersion]:
    """Return a dataset and all that it came from, newest first."""
    notes = studio.datasets.versions(job_id)[:_MOST]
    jobs = studio.jobs.some(note.folder.name for note in notes if note.folder is not None)
    return [_version(studio, note, jobs) for note in notes]


def differences_of(older: Path, newer: Path) -> list[tuple[str, int, Sequence[str]]]:
    """Return what differs between two versions: in words, how many, and the first names of each."""
    found = what_differs(older, newer)
    words = {
        "added": "Added",
        "removed": "Left out",
        "moved": "In another split",
        "relabelled": "With another label",
        "replaced": "With other content",
    }
    lists = [(title, found.counts[name], getattr(found, name)) for name, title in words.items()]
    lists += [
        ("Classes added", len(found.classes_added), found.classes_added),
        ("Classes left out", len(found.classes_removed), found.classes_removed),
    ]
    return [(title, count, names) for title, count, names in lists if count]


def _version(studio: Studio, note: Any, jobs: Mapping[str, Job]) -> DatasetVersion:
    folder: Path | None = note.folder
    described = _described(folder) if folder is not None else None
    if folder is None or described is None:
        return DatasetVersion(note=note, job=None, splits={}, classes={})
    splits = described["splits"]
    classes = {each["name"]: sum(each.get(split, 0) for split in splits) for each in described["classes"]}
    return DatasetVersion(note=note, job=jobs.get(folder.name), splits=splits, classes=classes)


def _described(folder: Path) -> dict[str, Any] | None:
    try:
        return describe(folder)
    except DataError:  # deleted while we looked
        return None
