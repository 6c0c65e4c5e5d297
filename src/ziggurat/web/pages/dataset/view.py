"""View model of a dataset page without its charts: description, source, and the jobs that use it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job, JobFilter
from ziggurat.errors import JobError
from ziggurat.web.dataset_kinds import KIND_NAMES
from ziggurat.workspace.datasets import problems_so_far
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.training_checks import why_not_trainable

__all__ = ["DatasetAbout", "DatasetProblems", "dataset_about", "dataset_problems", "dataset_spec", "next_name"]

_BAD_FILES: Final = 500
_CHILDREN: Final = 50
_STORES: Final[Mapping[str, str]] = {"lmdb": "LMDB", "hdf5": "HDF5", "tfrecord": "TFRecord"}
_ENCODINGS: Final[Mapping[str, str]] = {
    "png": "PNG (lossless)",
    "jpeg": "JPEG",
    "raw": "not encoded",
    "original": "the bytes of the files",
    "reference": "the files themselves, where they are",
}
_RESIZES: Final[Mapping[str, str]] = {
    "squash": "squashed",
    "crop": "cropped",
    "fill": "with a frame",
    "half_crop": "half cropped, half with a frame",
}


@dataclass(frozen=True, kw_only=True)
class DatasetAbout:
    """What a dataset is.

    Args:
        described: as the studio's ``datasets.describe`` returns it.
        kind: its name for people.
        size_bytes: of its folder; records that versions share count in each.
        store: kind of file that holds the records.
        pictures: how images are stored: encoding, size, channels; empty for sets without.
        parents: name and changes of each version that it was made of.
        parent: the dataset that it was made of; None where there is none any more.
        children: versions that were made of it.
        users: jobs that need it.
        why_not_trainable: why no network is trained on it; empty where one can be.
    """

    described: Mapping[str, Any]
    kind: str
    size_bytes: int
    store: str
    pictures: Mapping[str, str]
    parents: Sequence[Mapping[str, Any]]
    parent: Job | None
    children: Sequence[Job]
    users: Sequence[Job]
    why_not_trainable: str

    @property
    def total(self) -> int:
        """Samples of all splits."""
        return sum(self.described["splits"].values())

    @property
    def problem_count(self) -> int:
        """Problems that were found when it was made."""
        return sum(self.described["problems"].values())


@dataclass(frozen=True, kw_only=True)
class DatasetProblems:
    """What was wrong with a source whose dataset was not made.

    Args:
        shown: the first ones.
        total: how many there are.
    """

    shown: Sequence[Any]
    total: int


def dataset_about(studio: Studio, job: Job) -> DatasetAbout:
    """Return what a dataset that is done is."""
    described = studio.datasets.describe(job.id)
    children = JobFilter(kinds=("dataset",), conditions=(("parent", "=", job.id),), limit=_CHILDREN)
    return DatasetAbout(
        described=described,
        kind=KIND_NAMES.get(described["kind"], described["kind"]),
        size_bytes=_size_bytes(Path(job.folder)),
        store=", ".join(_STORES.get(name) or name for name in described["stores"]),
        pictures=_pictures(described["image"]),
        parents=described["parents"],
        parent=_find(studio, job.parent),
        children=studio.jobs.page(children).jobs,
        users=studio.jobs.dependents(job.id),
        why_not_trainable=why_not_trainable(described["kind"]),
    )


def dataset_problems(job: Job) -> DatasetProblems:
    """Return what was found in the source of a dataset that failed."""
    if job.state not in ("failed", "stopped"):
        return DatasetProblems(shown=(), total=0)
    shown, total = problems_so_far(Path(job.folder), limit=_BAD_FILES)
    return DatasetProblems(shown=shown, total=total)


def dataset_spec(job: Job) -> list[tuple[str, str]]:
    """Return what was asked for, in words, for a dataset that is not there yet."""
    spec = job.spec
    size = spec.get("size")
    known = [
        ("Source", str(spec.get("source") or "")),
        ("Format", str(spec.get("format") or "as it is recognized")),
        ("Stored in", _STORES.get(str(spec.get("store")), str(spec.get("store") or ""))),
        ("Size", "" if not isinstance(size, Sequence) else " × ".join(str(side) for side in reversed(size)) + " px"),
    ]
    return [(name, value) for name, value in known if value]


def next_name(name: str) -> str:
    """Return what the next version may be called.

    >>> next_name("pets"), next_name("pets v2")
    ('pets v2', 'pets v3')
    """
    found = re.fullmatch(r"(.*) v(\d{1,6})", name, re.DOTALL)
    return f"{found[1]} v{int(found[2]) + 1}" if found else f"{name} v2"


def _pictures(image: Mapping[str, Any] | None) -> dict[str, str]:
    if image is None:
        return {}
    quality = f", quality {image['quality']}" if image["encoding"] == "jpeg" else ""
    sized = image["width_px"] and image["height_px"]
    resize = _RESIZES.get(image["resize_mode"], "")
    channels = {1: "gray (1 channel)", 3: "color (3 channels)"}.get(image["channels"], "as each image has")
    return {
        "Stored as": _ENCODINGS.get(image["encoding"], image["encoding"]) + quality,
        "Size": f"{image['width_px']} × {image['height_px']} px{', ' + resize if resize else ''}"
        if sized
        else "each image has its own",
        "Channels": channels,
    }


def _find(studio: Studio, job_id: str) -> Job | None:
    try:
        return studio.jobs.get(job_id) if job_id else None
    except JobError:  # deleted since
        return None


def _size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
