"""Check report: findings by kind, each with count, cases, advice, and the rows to exclude."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from ziggurat.datasets.hashing import NEAR_DISTANCE
from ziggurat.errors import UnknownNameError

__all__ = ["SEVERITIES", "Case", "CheckLimits", "CheckReport", "Finding", "Severity"]

Severity = Literal["error", "warning", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""From what must be mended to what should be known."""


@dataclass(frozen=True, kw_only=True)
class CheckLimits:
    """From where on a check has something to say.

    Args:
        max_distance: bits in which perceptual hashes of near duplicates may differ.
        min_per_class: samples (or objects) that a class should have in training.
        max_imbalance: how many times larger than the smallest the largest class may be.
        tiny_box_px: boxes that are narrower or lower are tiny.
        most_cases: of each finding.
        most_masks: masks that are read where not everything is.
        seed: of the choice of these masks.
    """

    max_distance: int = NEAR_DISTANCE
    min_per_class: int = 10
    max_imbalance: float = 10.0
    tiny_box_px: float = 3.0
    most_cases: int = 20
    most_masks: int = 200
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Case:
    """One sample of a finding.

    Args:
        key: its name.
        split: that it is in; empty where it is not in the dataset.
        row: its number in the split; None where it is not in the dataset.
        note: what is to be said of it.
    """

    key: str
    split: str = ""
    row: int | None = None
    note: str = ""

    def __str__(self) -> str:
        place = [] if self.row is None else [self.split, str(self.row)]
        return " ".join([*place, self.key, *([self.note] if self.note else [])])


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is wrong or doubtful.

    Args:
        kind: one word for all of its like, such as ``duplicate``.
        severity: ``error``, ``warning`` or ``note``.
        count: samples (boxes, classes, files: the text says) that it is about.
        text: one sentence.
        advice: what to do, one sentence.
        cases: some of the samples.
        exclude: split → rows, in order, without which the finding would be gone; empty where leaving samples out
            does not mend it.
    """

    kind: str
    severity: Severity
    count: int
    text: str
    advice: str = ""
    cases: tuple[Case, ...] = ()
    exclude: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """What a check found.

    Args:
        dataset: name of the dataset.
        dataset_id: its id.
        samples: that were looked at.
        verified: whether every record and file was read.
        findings: the severe ones first.
    """

    dataset: str
    dataset_id: str
    samples: int
    verified: bool
    findings: tuple[Finding, ...]

    def __getitem__(self, kind: str) -> Finding:
        """Return the finding of a kind.

        Raises:
            UnknownNameError: where nothing of this kind was found.
        """
        for finding in self.findings:
            if finding.kind == kind:
                return finding
        raise UnknownNameError("finding of this check", kind, [finding.kind for finding in self.findings])

    def __contains__(self, kind: str) -> bool:
        return any(finding.kind == kind for finding in self.findings)

    @property
    def counts(self) -> dict[str, int]:
        """Findings by severity."""
        return {severity: sum(each.severity == severity for each in self.findings) for severity in SEVERITIES}

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        content = asdict(self)
        for finding in content["findings"]:
            finding["exclude"] = {split: list(rows) for split, rows in finding["exclude"].items()}
            finding["cases"] = list(finding["cases"])
        return {**content, "findings": list(content["findings"]), "counts": self.counts}

    def _count(self) -> str:
        return "1 finding" if len(self.findings) == 1 else f"{len(self.findings)} findings"

    def as_text(self) -> str:
        """Return it for a terminal."""
        how = "every record was read" if self.verified else "records were not read; ask for it to find damaged ones"
        lines = [f"{self.dataset}: {self.samples} samples, {self._count()} ({how})."]
        for finding in self.findings:
            lines.append(f"{finding.severity}: {finding.kind} ({finding.count}): {finding.text}")
            lines += [f"  {each}" for each in finding.cases[:3]]
            lines += [f"  {finding.advice}"] if finding.advice else []
        return "\n".join(lines)
