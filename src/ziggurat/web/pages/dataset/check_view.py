"""View model of dataset check findings: their names, their samples, and their fixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.errors import UnknownNameError

__all__ = ["CheckFinding", "finding_of", "findings_of", "places_of", "problem_title"]

_TITLES: Final[Mapping[str, str]] = {
    "duplicate": "Samples that are there twice",
    "duplicate-across-splits": "The same sample in two splits",
    "duplicate-with-other-label": "The same sample with another label",
    "near-duplicate": "Images that look alike",
    "near-duplicate-with-other-label": "Images that look alike, with other labels",
    "leak": "Leaks between the splits",
    "zero-size-box": "Boxes without a size",
    "tiny-box": "Tiny boxes",
    "box-outside": "Boxes outside of their image",
    "duplicate-box": "Boxes that are there twice",
    "unknown-class": "Labels that no class has",
    "no-objects": "Images without an object",
    "empty-label": "Samples without a label",
    "small-class": "Classes with few samples",
    "empty-class": "Classes without a sample",
    "imbalance": "Classes of very different size",
    "changed-store": "Records that have changed",
    "size-outlier": "Images of an unusual size",
    "label-error": "Labels that are probably wrong",
    "unreadable": "Samples that cannot be read",
    "excluded": "Left out by a person",
    "no-label": "No label",
    "bad-line": "Lines that cannot be read",
    "no-picture": "Images that are not there",
    "missing-value": "Missing values",
    "duplicate-key": "Names that came twice",
}
_AT_CREATION: Final = "at-creation-"
_SEVERITIES: Final[Mapping[str, tuple[str, str]]] = {
    "error": ("Error", "error"),
    "warning": ("Warning", "warning"),
    "note": ("Note", ""),
}


@dataclass(frozen=True, kw_only=True)
class CheckFinding:
    """A finding as the page shows it.

    Args:
        finding: as ``ziggurat.datasets.checks.Finding`` has it.
        title: for people.
        severity: for people.
        tone: class of its note in the style sheet.
        exclude_count: samples without which it would be gone; 0 where leaving some out does not mend it.
        problem: kind of problem to look at in the explorer; empty for none.
    """

    finding: Any
    title: str
    severity: str
    tone: str
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
    severity, tone = _SEVERITIES[finding.severity]
    return CheckFinding(
        finding=finding,
        title=f"When it was made: {title}" if problem else title,
        severity=severity,
        tone=tone,
        exclude_count=sum(len(rows) for rows in finding.exclude.values()),
        problem=problem,
    )
