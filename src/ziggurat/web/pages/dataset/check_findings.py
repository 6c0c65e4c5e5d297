"""Findings of dataset checks as pages show them: titles, severities, and the buttons that lead to a remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ziggurat.errors import UnknownNameError

__all__ = [
    "MADE_BEFORE",
    "CheckFinding",
    "Remedy",
    "finding_of",
    "findings_of",
    "places_of",
    "problem_title",
    "remedies_of",
]

MADE_BEFORE: Final = "made-before"
_TITLES: Final[Mapping[str, str]] = {
    "duplicate": "Duplicates",
    "duplicate-across-splits": "Duplicates across splits",
    "duplicate-with-other-label": "Duplicates with different labels",
    "near-duplicate": "Near duplicates",
    "near-duplicate-with-other-label": "Near duplicates with different labels",
    "leak": "Leaks between splits",
    "zero-size-box": "Boxes of zero size",
    "tiny-box": "Tiny boxes",
    "box-outside": "Boxes outside the image",
    "duplicate-box": "Duplicate boxes",
    "unknown-class": "Unknown classes",
    "no-objects": "Images without objects",
    "empty-label": "Samples without label",
    "small-class": "Classes with few samples",
    "empty-class": "Empty classes",
    "imbalance": "Class imbalance",
    "changed-store": "Changed records",
    "size-outlier": "Images of an unusual size",
    "label-error": "Likely label errors",
    "unreadable": "Unreadable samples",
    "excluded": "Excluded by a user",
    "no-label": "No label",
    "bad-line": "Unreadable lines",
    "no-picture": "Missing images",
    "missing-value": "Missing values",
    "duplicate-key": "Duplicate names",
    "swapped-corners": "Boxes with swapped corners",
    "box-of-outline": "Boxes made of outlines",
    "exif-turned": "Images that EXIF turns",
    "other-size": "Labels of another image size",
    "other-name": "Files found by another name",
    "same-name": "Classes of one name",
    "no-split": "Missing splits",
    "no-box": "Annotations without boxes",
    "two-splits": "Images in two splits",
    MADE_BEFORE: "Made by an earlier release",
}
_AT_CREATION: Final = "at-creation-"
_SEVERITIES: Final[Mapping[str, str]] = {"error": "Error", "warning": "Warning", "note": "Note"}


@dataclass(frozen=True, kw_only=True)
class CheckFinding:
    """A finding as the page shows it.

    Args:
        finding: as ``ziggurat.datasets.checks.Finding`` has it.
        title: for people.
        severity: for people.
        exclude_count: samples without which it would be gone; 0 where leaving some out does not mend it.
        problem: kind of problem to look at in the explorer; empty for none.
    """

    finding: Any
    title: str
    severity: str
    exclude_count: int
    problem: str


def findings_of(report: Any) -> list[CheckFinding]:
    """Return the findings of a check, the severe ones first."""
    return [_shown(finding) for finding in report.findings]


def finding_of(report: Any, kind: str) -> Any:
    """Return the finding of a kind.

    Raises:
        UnknownNameError: where nothing of this kind was found.
    """
    for finding in report.findings:
        if finding.kind == kind:
            return finding
    raise UnknownNameError("finding of this check", kind, [finding.kind for finding in report.findings])


def places_of(finding: Any) -> list[str]:
    """Return the samples without which a finding would be gone, as ``SPLIT/ROW``."""
    excluded: Mapping[str, Sequence[int]] = finding.exclude
    return [f"{split}/{row}" for split, rows in excluded.items() for row in rows]


def problem_title(kind: str) -> str:
    """Return the name of a kind of problem for people."""
    return _TITLES.get(kind) or kind.replace("-", " ").capitalize()


def _shown(finding: Any) -> CheckFinding:
    problem = finding.kind.removeprefix(_AT_CREATION) if finding.kind.startswith(_AT_CREATION) else ""
    title = problem_title(problem or finding.kind)
    return CheckFinding(
        finding=finding,
        title=f"At creation: {title}" if problem else title,
        severity=_SEVERITIES[finding.severity],
        exclude_count=sum(len(rows) for rows in finding.exclude.values()),
        problem=problem,
    )


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A button beside a finding.

    Args:
        title: of the button.
        path: of the page that it leads to.
        query: of it.
        anchor: place on it; empty for its top.
        changes: whether only users who may change something get it.
    """

    title: str
    path: str
    query: Mapping[str, Any]
    anchor: str = ""
    changes: bool = False


_SPLIT_KINDS: Final = ("leak", "duplicate-across-splits", "two-splits")
_BOX_KINDS: Final = ("zero-size-box", "tiny-box", "box-outside", "duplicate-box", "swapped-corners")


def remedies_of(shown: CheckFinding, job_id: str, *, can_weigh: bool) -> list[Remedy]:
    """Return what can be done about a finding, the best first; there is always something.

    Args:
        shown: the finding.
        job_id: of the dataset.
        can_weigh: whether its classes can be weighted in the loss.
    """
    finding, place = shown.finding, f"/datasets/{job_id}"
    kept = [case for case in finding.cases if case.row is not None]
    review = Remedy(title="Review", path=f"{place}/check", query={}, anchor=f"finding-{finding.kind}")
    first = [Remedy(title="Open", path=f"{place}/samples/{each.split}/{each.row}", query={}) for each in kept[:1]]
    named = replace(review, title="Review and exclude") if shown.exclude_count else review
    kind = shown.problem or finding.kind
    if kind in _SPLIT_KINDS:
        again = Remedy(title="Split again in a clone", path="/datasets/new", query={"clone": job_id}, changes=True)
        if "`cluster`" in finding.text:  # near duplicates are kept together by how they look
            again = replace(again, title="Split again by visual similarity", query={**again.query, "method": "cluster"})
        return [named, again]
    if kind in _BOX_KINDS:
        return [*(replace(each, title="Correct boxes") for each in first), review]
    if kind == "imbalance" and can_weigh:
        query = {"dataset": job_id}
        return [Remedy(title="Train with class weights", path="/models/new", query=query, changes=True), review]
    if kind == MADE_BEFORE:
        return [replace(review, title="Create again")]
    if shown.problem and kept:
        return [Remedy(title="Show in the explorer", path=f"{place}/explore", query={"problem": shown.problem})]
    if shown.problem:
        return [Remedy(title="Show files", path=f"{place}/problems", query={"kind": shown.problem})]
    if kind == "label-error" or kind.endswith("with-other-label"):
        return [replace(review, title="Review labels"), *(replace(each, title="Correct the first") for each in first)]
    return [named]
