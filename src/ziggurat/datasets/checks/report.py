"""Check report: findings by kind, with cases and advice, and the facts on all samples that the checks share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

import numpy as np

from ziggurat.datasets.catalog import Entry
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.hashing import NEAR_DISTANCE
from ziggurat.errors import UnknownNameError
from ziggurat.formatting import plural

__all__ = ["SEVERITIES", "Case", "CheckLimits", "CheckReport", "Facts", "Finding", "Severity"]

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

    def as_text(self) -> str:
        """Return it for a terminal."""
        how = "every record was read" if self.verified else "records were not read; ask for it to find damaged ones"
        lines = [f"{self.dataset}: {plural(self.samples, 'sample')}, {plural(len(self.findings), 'finding')} ({how})."]
        for finding in self.findings:
            lines.append(f"{finding.severity}: {finding.kind} ({finding.count}): {finding.text}")
            lines += [f"  {each}" for each in finding.cases[:3]]
            lines += [f"  {finding.advice}"] if finding.advice else []
        return "\n".join(lines)


class Facts:
    """The samples of a dataset in the order of its catalog; a place is a number in that order.

    Args:
        dataset: to look at.
        limits: of the checks.

    Attributes:
        numbers: (N,) int64 in the catalog.
        splits: (N,) int8, places in ``dataset.splits``.
        rows: (N,) int64 in the split.
        classes: (N,) int32, -1 for none.
        contents: (N,) 16 bytes, hash of the first part as it came; ``known_contents`` says where there is one.
        labels: (N,) int64 digests of the labels; of objects, only their classes: two people draw two boxes.
    """

    def __init__(self, dataset: Dataset, limits: CheckLimits) -> None:
        self.dataset, self.limits = dataset, limits
        catalog = dataset.catalogue
        self.numbers = catalog.column("number")
        names = catalog.texts("split")
        place_of = np.array([dataset.splits.index(name) if name in dataset.splits else -1 for name in names], np.int8)
        self.splits = place_of[catalog.column("split")] if len(self.numbers) else np.zeros(0, np.int8)
        self.rows = catalog.column("row")
        self.classes = catalog.column("class")
        self.contents = np.zeros(len(self.numbers), "V16")
        self.known_contents = np.zeros(len(self.numbers), bool)
        self.labels = np.zeros(len(self.numbers), np.int64)

    def walk(self, look: Callable[[int, Entry], None]) -> None:
        """Read the catalog once: note contents and labels, and show each entry with its place to ``look``."""
        for place, entry in enumerate(self.dataset.catalogue.walk()):
            if entry.content_hash is not None:
                self.contents[place] = np.void(entry.content_hash)
                self.known_contents[place] = True
            self.labels[place] = _digest(entry.label if entry.objects is None else _classes(entry.label))
            look(place, entry)

    def column(self, name: str) -> np.ndarray:
        """Return a column of the catalog."""
        return self.dataset.catalogue.column(name)

    def groups(self) -> np.ndarray | None:
        """Return the number of the group of each sample, -1 for none; None where no sample has one."""
        texts = self.dataset.catalogue.texts("group")
        if not any(texts):
            return None
        groups = self.column("group")
        return np.where(groups == texts.index(""), -1, groups) if "" in texts else groups

    def keys(self, places: np.ndarray) -> list[str]:
        """Return the keys of samples."""
        return [entry.key for entry in self.dataset.catalogue.entries(self.numbers[places].tolist())]

    def cases(self, places: np.ndarray, notes: Mapping[int, str] | None = None) -> tuple[Case, ...]:
        """Return the first of some samples, with what is noted of each place."""
        shown = np.asarray(places, np.int64)[: self.limits.most_cases]
        return tuple(
            Case(key=key, split=self.split(place), row=int(self.rows[place]), note=(notes or {}).get(place, ""))
            for key, place in zip(self.keys(shown), shown.tolist(), strict=True)
        )

    def split(self, place: int) -> str:
        """Return the split of a sample."""
        return self.dataset.splits[self.splits[place]]

    def by_split(self, places: np.ndarray) -> dict[str, tuple[int, ...]]:
        """Return split → rows in order, of samples."""
        places = np.asarray(places, np.int64)
        found = {}
        for number, split in enumerate(self.dataset.splits):
            rows = np.unique(self.rows[places[self.splits[places] == number]])
            if len(rows):
                found[split] = tuple(rows.tolist())
        return found

    def finding(
        self,
        kind: str,
        severity: Severity,
        places: np.ndarray,
        text: str,
        advice: str = "",
        *,
        notes: Mapping[int, str] | None = None,
        exclude: np.ndarray | None = None,
    ) -> Finding:
        """Return a finding on samples; ``exclude`` are those to leave out, by default all of them."""
        return Finding(
            kind=kind,
            severity=severity,
            count=len(places),
            text=text,
            advice=advice,
            cases=self.cases(places, notes),
            exclude=self.by_split(places if exclude is None else exclude),
        )


def _digest(label: Any) -> int:
    if type(label) is int:
        return label
    return int.from_bytes(hashlib.blake2b(repr(label).encode(), digest_size=8).digest(), "big", signed=True)


def _classes(objects: list[dict[str, Any]]) -> list[int]:
    return sorted(each["class"] for each in objects)
