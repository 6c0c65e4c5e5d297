"""Dataset check: all checks in order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from ziggurat.datasets.catalogue import Entry
from ziggurat.datasets.checks.boxes import BoxLook, check_masks
from ziggurat.datasets.checks.classes import LabelLook, check_classes
from ziggurat.datasets.checks.duplicates import check_duplicates
from ziggurat.datasets.checks.facts import Facts
from ziggurat.datasets.checks.label_errors import check_labels
from ziggurat.datasets.checks.predictions import Predictions, read_predictions
from ziggurat.datasets.checks.records import check_records, check_stores
from ziggurat.datasets.checks.report import SEVERITIES, Case, CheckLimits, CheckReport, Finding
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.hashing import MOST_DISTANCE, NEAR_DISTANCE

__all__ = ["check_dataset"]


_FACTOR: Final = 4.0
_DEVIATIONS: Final = 5.0


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
        f"{len(places)} images have another size or form than most, which have about {usual} pixels.",
        "Look at them: thumbnails, icons and banners are often no samples.",
        notes={place: f"{width[place]:g} x {height[place]:g}" for place in shown},
    )


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
        verify: whether every record and file is read and decoded.
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
    yield from _told_before(facts)
    if predictions is not None:
        yield from check_labels(facts, predictions)


def _told_before(facts: Facts) -> Iterator[Finding]:
    """Yield what was noted when the dataset was made."""
    catalogue = facts.dataset.catalogue
    for kind, count in catalogue.problem_counts().items():
        problems = catalogue.problems(kind, limit=facts.limits.most_cases)
        yield Finding(
            kind=f"at-creation-{kind}",
            severity="note",
            count=count,
            text=f"{count} problems of kind {kind} were noted when the dataset was made.",
            advice="Mend the source and make the dataset again, if they matter.",
            cases=tuple(Case(key=problem.key, note=problem.reason) for problem in problems),
        )
