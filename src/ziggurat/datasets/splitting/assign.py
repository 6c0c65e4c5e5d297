"""Assignment of a catalog's samples to splits by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ziggurat.datasets.catalogue import Catalogue
from ziggurat.datasets.hashing import NO_HASH
from ziggurat.datasets.samples import SPLITS, Problem
from ziggurat.datasets.splitting.leaks import find_leaks
from ziggurat.datasets.splitting.limits import LEFT_OUT, OPEN, limit_classes
from ziggurat.datasets.splitting.lists import splits_by_lists
from ziggurat.datasets.splitting.rule import SplitRule
from ziggurat.datasets.splitting.shares import class_targets, share_out, split_totals
from ziggurat.datasets.splitting.together import share_out_units
from ziggurat.datasets.splitting.units import units_of
from ziggurat.errors import DataError

__all__ = ["Assignment", "assign_splits"]

_FAR: Final = 0.05
_CHAIN: Final = 0.1
_BOUNDED: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Which sample is in which split.

    Args:
        splits: (N,) int8 in the order of the catalog's numbers: index into ``SPLITS``, -1 for left out.
        problems: why samples or classes are left out; of many of one kind, the first 1000.
        warnings: what a person should know of these splits, a sentence each.
        is_random: whether samples were divided by chance, each by itself.
    """

    splits: np.ndarray
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_random: bool = False

    def counts(self) -> dict[str, int]:
        """Return split → samples, of splits that have some."""
        counted = {split: int((self.splits == number).sum()) for number, split in enumerate(SPLITS)}
        return {split: count for split, count in counted.items() if count}


def assign_splits(
    catalogue: Catalogue,
    rule: SplitRule,
    hashes: np.ndarray | None = None,
    *,
    class_names: Sequence[str] = (),
) -> Assignment:
    """Divide samples by a rule; the same rule and catalog give the same splits. Memory: some tens of bytes a sample.

    Args:
        catalog: of a scan.
        rule: how.
        hashes: (N,) int64 perceptual hashes in the order of the catalog's numbers, -1 for none; None for those of
            the catalog. Where they are given, a split that leaks comes with a warning.
        class_names: by class number, for what is said of classes.

    Raises:
        DataError: where the samples cannot be divided so.
    """
    work = _Work(catalogue, rule, hashes, class_names)
    work.divide()
    return work.finished()


class _Work:
    """The columns that a division needs, and what came of it."""

    def __init__(
        self, catalogue: Catalogue, rule: SplitRule, hashes: np.ndarray | None, class_names: Sequence[str]
    ) -> None:
        self.catalogue, self.rule, self.hashes = catalogue, rule, hashes
        self.random = np.random.default_rng(rule.seed)
        self.classes = catalogue.column("class")
        self.warnings: list[str] = []
        self.is_random = False
        self.splits, self.shares = self._given()
        self.unnamed = np.flatnonzero(self.splits == LEFT_OUT)
        self.problems, notes = limit_classes(self.splits, self.classes, rule, self.random, class_names)
        self.warnings += notes

    def _given(self) -> tuple[np.ndarray, tuple[float, float, float]]:
        """Return what is decided already, (N,) int8 with ``OPEN`` where not, and the shares of the open samples."""
        rule = self.rule
        splits = np.full(len(self.catalogue), OPEN, np.int8)
        if rule.method == "list":
            splits, self.warnings = splits_by_lists(self.catalogue, rule.lists)
            return splits, (1, 0, 0)
        if rule.method != "source":
            return splits, rule.shares
        texts = self.catalogue.texts("split")
        numbers = np.array([SPLITS.index(text) if text in SPLITS else OPEN for text in texts], np.int8)
        if len(splits):
            splits = numbers[self.catalogue.column("split")]
        val = 0.0 if "val" in texts else rule.val_share
        test = 0.0 if "test" in texts else rule.test_share
        if val or test:
            splits[splits == 0] = OPEN
        return splits, (1.0 - val - test, val, test)

    def divide(self) -> None:
        """Give every open sample its split."""
        method = self.rule.method
        places = np.flatnonzero(self.splits == OPEN)
        if not len(places):
            return
        if method == "time":
            self.splits[places] = self._by_time(places)
            return
        strata = self._strata(places)
        targets = class_targets(np.bincount(strata), self.shares)
        if method in ("group", "stem", "cluster"):
            self.splits[places] = self._together(places, strata, targets)
        else:
            self.splits[places] = share_out(strata, targets, self.random)
            self.is_random = int((targets.sum(axis=1) > 0).sum()) > 1

    def _strata(self, places: np.ndarray) -> np.ndarray:
        """Return the class of each of these samples, from 0 without gaps; all 0 where classes do not count."""
        if not self.rule.stratify:
            return np.zeros(len(places), np.int32)
        _, strata, counts = np.unique(self.classes[places], return_inverse=True, return_counts=True)
        if (counts == 1).sum() * 2 > len(places) > 1:
            self.warnings.append(
                "More than half of the samples are the only one of their class: classes were not looked at."
            )
            return np.zeros(len(places), np.int32)
        return strata.reshape(-1).astype(np.int32)

    def _by_time(self, places: np.ndarray) -> np.ndarray:
        times = self.catalogue.column("time")[places]
        dated = np.flatnonzero(~np.isnan(times))
        if not len(dated):
            raise DataError(
                "The method `time` needs samples with a time.",
                received="no time",
                advice="Name the column of the time when importing, or split by another method.",
            )
        if len(dated) < len(places):
            self.warnings.append(f"{len(places) - len(dated)} samples without a time are in training.")
        splits = np.zeros(len(places), np.int8)
        order = dated[np.argsort(times[dated], kind="stable")]
        splits[order] = np.repeat(np.arange(len(SPLITS), dtype=np.int8), split_totals(len(order), self.shares))
        return splits

    def _together(self, places: np.ndarray, strata: np.ndarray, targets: np.ndarray) -> np.ndarray:
        _, units = np.unique(units_of(self.catalogue, self.rule, self.hashes)[places], return_inverse=True)
        units = units.reshape(-1)
        sizes = np.bincount(units)
        wanted = int((targets.sum(axis=1) > 0).sum())
        if len(sizes) < wanted:
            raise DataError(
                f"The method `{self.rule.method}` needs a {self.rule.method} for each split at least.",
                received=f"{len(sizes)} for {wanted} splits",
                advice="All samples would be in one split. Choose another method, or another pattern or distance.",
            )
        splits = share_out_units(units, strata, targets, self.random)
        self._warn_of_shares(splits, targets, int(sizes.max()))
        if self.rule.method == "cluster" and sizes.max() > max(_CHAIN * len(places), 2):
            self.warnings.append(
                f"One cluster has {sizes.max() / len(places):.1%} of the samples: the hashes hardly tell such images "
                f"apart. A smaller `max_distance` than {self.rule.max_distance} makes smaller clusters."
            )
        return splits

    def _warn_of_shares(self, splits: np.ndarray, targets: np.ndarray, largest: int) -> None:
        shares = np.bincount(splits, minlength=len(SPLITS)) / len(splits)
        asked = targets.sum(axis=1) / len(splits)
        far = int(np.argmax(np.abs(shares - asked)))
        if abs(shares[far] - asked[far]) > _FAR:
            self.warnings.append(
                f"The split {SPLITS[far]} has {shares[far]:.1%} of the samples where {asked[far]:.1%} were asked for: "
                f"the largest {self.rule.method} has {largest} samples, which stay together."
            )

    def finished(self) -> Assignment:
        """Return the assignment, with what is to be said of it."""
        if self.rule.method == "list":
            self._say_unnamed()
        if len(self.splits) and not (self.splits == 0).any():
            self.warnings.append("No sample is in training.")
        self._warn_of_leaks()
        return Assignment(splits=self.splits, problems=self.problems, warnings=self.warnings, is_random=self.is_random)

    def _say_unnamed(self) -> None:
        if not len(self.unnamed):
            return
        numbers = self.catalogue.column("number")[self.unnamed[:_BOUNDED]]
        reason = "No list of a split names it."
        self.problems += [
            Problem(key=entry.key, kind="not-listed", reason=reason, left_out=True)
            for entry in self.catalogue.entries(numbers.tolist())
        ]
        self.warnings.append(f"{len(self.unnamed)} samples are in no list and are left out.")

    def _warn_of_leaks(self) -> None:
        texts = self.catalogue.texts("group")
        groups = None
        if any(texts):
            groups = self.catalogue.column("group")
            groups = np.where(groups == texts.index(""), -1, groups) if "" in texts else groups
        hashes = None if self.rule.method == "cluster" else self.hashes  # clusters do not leak by hashes
        if groups is None and hashes is None:
            return
        if hashes is None:
            hashes = np.full(len(self.splits), NO_HASH, np.int64)
        report = find_leaks(hashes, self.splits, groups, max_distance=self.rule.max_distance)
        if report.text:
            self.warnings.append(report.text)
