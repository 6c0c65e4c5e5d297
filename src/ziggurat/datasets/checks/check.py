"""Dataset check: all checks in order, with those of image sizes, stores and records."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.record_data import decode_mask
from ziggurat.datasets.catalog import Entry
from ziggurat.datasets.checks.duplicates import check_duplicates
from ziggurat.datasets.checks.labels import (
    BoxLook,
    LabelLook,
    Predictions,
    check_classes,
    check_labels,
    check_masks,
    read_predictions,
)
from ziggurat.datasets.checks.made_before import check_made_before
from ziggurat.datasets.checks.report import SEVERITIES, Case, CheckLimits, CheckReport, Facts, Finding
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.hashing import MOST_DISTANCE, NEAR_DISTANCE
from ziggurat.errors import DataError, DatapointError
from ziggurat.formatting import plural
from ziggurat.records.codec import FileReference

__all__ = ["check_dataset"]

_FACTOR: Final = 4.0  # an unusual area or aspect is this many times the median, or that part of it
_DEVIATIONS: Final = 5.0  # and this many median deviations off, as sizes of some datasets vary much
_ADVICE = "Leave them out, or bring the files back as they were and check again."
_CHANGED = "to a file that is gone, has changed, or cannot be decoded."


def check_dataset(
    dataset: Dataset,
    *,
    predictions: Predictions | str | os.PathLike[str] | None = None,
    verify: bool = False,
    limits: CheckLimits | None = None,
) -> CheckReport:
    """Look for what is wrong or doubtful in a dataset.

    The catalog is read once; of masks, some are read. Memory is some ninety bytes a sample, and more where much is
    wrong.

    Args:
        dataset: to look at.
        predictions: class probabilities of its samples, or a file of them (see ``read_predictions``), to find labels
            that are probably wrong.
        verify: whether every record and file is read and decoded, and the source of a dataset that an earlier release
            made is read again, however large it is.
        limits: from where on a check has something to say. None: the usual ones, but near duplicates are those of the
            split by clusters where the dataset was divided so.

    Raises:
        DataError: where the predictions are not of this dataset.
        MissingDependencyError: where there are predictions, and the package that judges them is not installed.
    """
    if predictions is not None and not isinstance(predictions, Predictions):
        predictions = read_predictions(predictions, dataset)
    facts = Facts(dataset, limits or CheckLimits(max_distance=_max_distance(dataset)))
    findings = list(_findings(facts, predictions, verify=verify))
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    return CheckReport(
        dataset=dataset.name,
        dataset_id=dataset.manifest.id,
        samples=len(facts.numbers),
        verified=verify,
        findings=tuple(findings),
    )


def _max_distance(dataset: Dataset) -> int:
    """Return the bits in which hashes of near duplicates may differ, as the dataset was divided by them."""
    splits = dataset.manifest.spec.get("splits")
    given = splits.get("max_distance") if isinstance(splits, Mapping) and splits.get("method") == "cluster" else None
    return given if type(given) is int and 0 <= given <= MOST_DISTANCE else NEAR_DISTANCE


def _findings(facts: Facts, predictions: Predictions | None, *, verify: bool) -> Iterator[Finding]:
    boxes, labels = BoxLook(facts), LabelLook(facts)

    def look(place: int, entry: Entry) -> None:
        boxes.look(place, entry)
        labels.look(place, entry)

    facts.walk(look)
    yield from check_stores(facts, verify=verify)
    if verify:
        yield from check_records(facts)
    yield from check_duplicates(facts, verify=verify)
    yield from boxes.findings()
    yield from labels.findings()
    yield from check_classes(facts)
    yield from check_masks(facts, every=verify)
    yield from check_sizes(facts)
    yield from check_made_before(facts, verify=verify)
    yield from _told_before(facts)
    if predictions is not None:
        yield from check_labels(facts, predictions)


def _told_before(facts: Facts) -> Iterator[Finding]:
    """Yield what was noted when the dataset was made."""
    catalog = facts.dataset.catalogue
    for kind, count in catalog.problem_counts().items():
        problems = catalog.problems(kind, limit=facts.limits.most_cases)
        yield Finding(
            kind=f"at-creation-{kind}",
            severity="note",
            count=count,
            text=f"{plural(count, f'problem of kind {kind} was', f'problems of kind {kind} were')} noted when the "
            "dataset was made.",
            advice="Mend the source and make the dataset again, if they matter.",
            cases=tuple(Case(key=problem.key, note=problem.reason) for problem in problems),
        )


def check_sizes(facts: Facts) -> Iterator[Finding]:
    """Yield a finding on images as they came whose area or form is more than 4 times another than the median.

    It must also be 5 median deviations away, so that sets of all sizes have no outliers.
    """
    width, height = facts.column("width").astype(np.float64), facts.column("height").astype(np.float64)
    known = np.flatnonzero((width > 0) & (height > 0))
    if len(known) < 3:
        return
    far = np.zeros(len(known), bool)
    for value in (width[known] * height[known], width[known] / height[known]):
        off = np.abs(np.log(value) - np.log(np.median(value)))
        far |= off > max(np.log(_FACTOR), _DEVIATIONS * float(np.median(off)))
    places = known[far]
    if not len(places):
        return
    usual = f"{np.median(width[known]):g} x {np.median(height[known]):g}"
    shown = places[: facts.limits.most_cases].tolist()
    yield facts.finding(
        "size-outlier",
        "note",
        places,
        f"{plural(len(places), 'image has', 'images have')} another size or form than most, which have about "
        f"{usual} pixels.",
        "Look at them: thumbnails, icons and banners are often no samples.",
        notes={place: f"{width[place]:g} x {height[place]:g}" for place in shown},
    )


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
            text=f"{plural(len(wrong), 'file is not as it was', 'files are not as they were')} made: "
            f"{'; '.join(wrong[:10])}.",
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
    for kind, notes, words in (
        ("corrupt-record", damaged, ("sample cannot be read or decoded.", "samples cannot be read or decoded.")),
        ("changed-file", changed, (f"sample refers {_CHANGED}", f"samples refer {_CHANGED}")),
    ):
        if notes:
            places = np.array(list(notes), np.int64)
            yield facts.finding(kind, "error", places, plural(len(notes), *words), _ADVICE, notes=notes)


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
