"""Assignment of a catalog's samples to splits by a rule, stratified by class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from ziggurat.datasets.catalog import Catalogue
from ziggurat.datasets.hashing import NO_HASH
from ziggurat.datasets.samples import SPLITS, Problem
from ziggurat.datasets.splitting.leaks import find_leaks
from ziggurat.datasets.splitting.rule import SplitRule, digests, digests_of, units_of
from ziggurat.errors import DataError
from ziggurat.formatting import plural

__all__ = ["Assignment", "assign_splits", "class_targets", "share_out_units", "split_totals"]

_SHOWN = 5

LEFT_OUT: Final = -1
OPEN: Final = -2
"""Stands for a sample that has no split yet."""

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
    catalog: Catalogue,
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
    work = _Work(catalog, rule, hashes, class_names)
    work.divide()
    return work.finished()


class _Work:
    """The columns that a division needs, and what came of it."""

    def __init__(
        self, catalog: Catalogue, rule: SplitRule, hashes: np.ndarray | None, class_names: Sequence[str]
    ) -> None:
        self.catalog, self.rule, self.hashes = catalog, rule, hashes
        self.random = np.random.default_rng(rule.seed)
        self.classes = catalog.column("class")
        self.warnings: list[str] = []
        self.is_random = False
        self.splits, self.shares = self._given()
        self.unnamed = np.flatnonzero(self.splits == LEFT_OUT)
        self.problems, notes = limit_classes(self.splits, self.classes, rule, self.random, class_names)
        self.warnings += notes

    def _given(self) -> tuple[np.ndarray, tuple[float, float, float]]:
        """Return what is decided already, (N,) int8 with ``OPEN`` where not, and the shares of the open samples."""
        rule = self.rule
        splits = np.full(len(self.catalog), OPEN, np.int8)
        if rule.method == "list":
            splits, self.warnings = splits_by_lists(self.catalog, rule.lists)
            return splits, (1, 0, 0)
        if rule.method != "source":
            return splits, rule.shares
        texts = self.catalog.texts("split")
        numbers = np.array([SPLITS.index(text) if text in SPLITS else OPEN for text in texts], np.int8)
        if len(splits):
            splits = numbers[self.catalog.column("split")]
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
        times = self.catalog.column("time")[places]
        dated = np.flatnonzero(~np.isnan(times))
        if not len(dated):
            raise DataError(
                "The method `time` needs samples with a time.",
                received="no time",
                advice="Name the column of the time when importing, or split by another method.",
            )
        if len(dated) < len(places):
            undated = plural(len(places) - len(dated), "sample without a time is", "samples without a time are")
            self.warnings.append(f"{undated} in training.")
        splits = np.zeros(len(places), np.int8)
        order = dated[np.argsort(times[dated], kind="stable")]
        splits[order] = np.repeat(np.arange(len(SPLITS), dtype=np.int8), split_totals(len(order), self.shares))
        return splits

    def _together(self, places: np.ndarray, strata: np.ndarray, targets: np.ndarray) -> np.ndarray:
        _, units = np.unique(units_of(self.catalog, self.rule, self.hashes)[places], return_inverse=True)
        units = units.reshape(-1)
        sizes = np.bincount(units)
        wanted = int((targets.sum(axis=1) > 0).sum())
        if len(sizes) < wanted:
            raise DataError(
                f"The samples have {len(sizes)} {self.rule.method}(s), too few for {wanted} splits by the method "
                f"`{self.rule.method}`.",
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
                f"the largest {self.rule.method} has {plural(largest, 'sample')}, which stay together."
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
        numbers = self.catalog.column("number")[self.unnamed[:_BOUNDED]]
        reason = "No list of a split names it."
        self.problems += [
            Problem(key=entry.key, kind="not-listed", reason=reason, left_out=True)
            for entry in self.catalog.entries(numbers.tolist())
        ]
        self.warnings.append(f"{plural(len(self.unnamed), 'sample is', 'samples are')} in no list and left out.")

    def _warn_of_leaks(self) -> None:
        texts = self.catalog.texts("group")
        groups = None
        if any(texts):
            groups = self.catalog.column("group")
            groups = np.where(groups == texts.index(""), -1, groups) if "" in texts else groups
        hashes = None if self.rule.method == "cluster" else self.hashes  # clusters do not leak by hashes
        if groups is None and hashes is None:
            return
        if hashes is None:
            hashes = np.full(len(self.splits), NO_HASH, np.int64)
        report = find_leaks(hashes, self.splits, groups, max_distance=self.rule.max_distance)
        if report.text:
            self.warnings.append(report.text)


def splits_by_lists(catalog: Catalogue, lists: Mapping[str, str]) -> tuple[np.ndarray, list[str]]:
    """Return the split of each sample, (N,) int8, -1 for a sample that no file names, and warnings.

    A line is a key, a file name, or one of both without its ending; a name without folder stands for all the files
    that have it. Without a file for training, training gets what the others leave. A sample keeps 32 bytes in memory.

    Args:
        catalog: of the samples.
        lists: split → text file in UTF-8.

    Raises:
        DataError: where a file cannot be read, names nothing, or names a sample of another split.
    """
    splits = np.full(len(catalog), -1, np.int8)
    warnings: list[str] = []
    names = [digests(catalog, form) for form in _FORMS]
    for split, file in sorted(lists.items(), key=lambda item: SPLITS.index(item[0])):
        wanted = digests_of(_lines(Path(file)))
        found = np.zeros(len(splits), bool)
        for each in names:
            found |= np.isin(each, wanted)
        if not found.any():
            raise DataError(f"The list `{file}` for {split} names no sample of the source.")
        _check_single(catalog, splits, found, split)
        splits[found] = SPLITS.index(split)
        missing = _missing(Path(file), wanted, names)
        if missing:
            warnings.append(missing)
    if "train" not in lists:
        splits[splits == -1] = 0
    return splits, warnings


def _without_ending(key: str) -> str:
    path = PurePosixPath(key)
    return str(path.with_suffix("")) if path.name else key


_FORMS = (str, _without_ending, lambda key: PurePosixPath(key).name, lambda key: PurePosixPath(key).stem)


def _lines(path: Path) -> Iterator[str]:
    """Yield the names in a file: lines that are not empty, in either style of line ends, folders with ``/``."""
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                name = line.strip().replace("\\", "/").removeprefix("./")
                if name:
                    yield name
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            "A list of samples is a text file in UTF-8 with a name a line.", received=f"`{path}`: {error}"
        ) from None


def _check_single(catalog: Catalogue, splits: np.ndarray, found: np.ndarray, split: str) -> None:
    twice = np.flatnonzero(found & (splits >= 0))
    if len(twice):
        number = int(catalog.column("number")[twice[0]])
        key = catalog.entries([number])[0].key
        raise DataError(
            "A sample is in one split only.",
            received=f"{plural(len(twice), 'sample')} that the lists name for {split} and for another split, "
            f"such as `{key}`",
            advice="Take them out of one of the lists.",
        )


def _missing(path: Path, wanted: np.ndarray, names: list[np.ndarray]) -> str:
    """Return a warning of names that no sample has."""
    known = np.zeros(len(wanted), bool)
    for each in names:
        known |= np.isin(wanted, each)
    if known.all():
        return ""
    shown = [name for name, is_known in zip(_lines(path), known, strict=True) if not is_known][:_SHOWN]
    count = plural(int((~known).sum()), "name")
    return f"{count} in `{path}` without a sample, such as {', '.join(f'`{name}`' for name in shown)}."


def share_out_units(
    units: np.ndarray, strata: np.ndarray, targets: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Choose the split of each unit: (N,) int8, numbers of splits, the same for all samples of a unit.

    The units are taken by size, the largest first, those of equal size in random order. Each goes to the split that
    lacks most of the unit's classes, against the size of the class, and most samples over all, against their number.
    Units of one sample come last and fill up every class exactly, as far as they go.

    Args:
        units: (N,) number of the unit of each sample, from 0.
        strata: (N,) number of the class of each sample, from 0.
        targets: (S, K) samples of class k that split s should get.
        random: chooses.
    """
    sizes = np.bincount(units)
    chosen = np.zeros(len(sizes), np.int8)
    need = targets.astype(np.float64)
    class_sizes = np.maximum(targets.sum(axis=0), 1)
    members = np.argsort(units, kind="stable").astype(np.int32)
    starts = np.cumsum(sizes) - sizes
    large = random.permutation(np.flatnonzero(sizes > 1))
    for unit in large[np.argsort(-sizes[large], kind="stable")]:
        classes, counts = np.unique(strata[members[starts[unit] : starts[unit] + sizes[unit]]], return_counts=True)
        of_classes = (need[:, classes] * (counts / class_sizes[classes])).sum(axis=1)
        split = int(np.argmax(of_classes + need.sum(axis=1) * (counts.sum() / class_sizes.sum())))
        chosen[unit] = split
        need[split, classes] -= counts
    splits = chosen[units]
    single = np.flatnonzero(sizes[units] == 1)
    if len(single):
        available = np.bincount(strata[single], minlength=targets.shape[1])
        splits[single] = share_out(strata[single], _filled(need, available), random)
    return _without_empty(splits, units, targets, random)


def _filled(need: np.ndarray, available: np.ndarray) -> np.ndarray:
    """Return how many single samples of each class each split gets, (S, K): what it lacks, as far as there are some."""
    wanted = np.maximum(np.rint(need).astype(np.int64), 0)
    for _ in range(int(max(0, (wanted.sum(axis=0) - available).max(initial=0)))):
        over = np.flatnonzero(wanted.sum(axis=0) > available)
        wanted[np.argmax(wanted[:, over], axis=0), over] -= 1
    wanted[0] += available - wanted.sum(axis=0)
    return wanted


def _without_empty(
    splits: np.ndarray, units: np.ndarray, targets: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Give a unit to each split that should have samples and has none: the smallest of the fullest that has several."""
    sizes = np.bincount(units)
    chosen = np.zeros(len(sizes), np.int8)
    chosen[units] = splits
    for split in np.flatnonzero(targets.sum(axis=1) > 0):
        held = np.bincount(chosen, minlength=len(targets))
        if held[split]:
            continue
        counts = np.bincount(chosen, weights=sizes, minlength=len(targets))
        fullest = int(np.argmax(np.where(held > 1, counts, 0)))
        there = random.permutation(np.flatnonzero(chosen == fullest))
        if len(there) > 1:
            chosen[there[np.argmin(sizes[there])]] = split
    return chosen[units]


def limit_classes(
    splits: np.ndarray,
    classes: np.ndarray,
    rule: SplitRule,
    random: np.random.Generator,
    class_names: Sequence[str] = (),
) -> tuple[list[Problem], list[str]]:
    """Set samples to ``LEFT_OUT`` where their class is too small or too large; return problems and notes.

    Args:
        splits: (N,) int8 what is decided already; changed here.
        classes: (N,) numbers of classes, -1 for none.
        rule: has the limits.
        random: chooses.
        class_names: by number.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    numbers, counts = np.unique(classes[(classes >= 0) & (splits != LEFT_OUT)], return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        name = str(class_names[number]) if number < len(class_names) else str(number)
        if count < rule.min_per_class:
            splits[classes == number] = LEFT_OUT
            reason = (
                f"Class {name} has {plural(count, 'sample')} of the at least {rule.min_per_class}, and is left out."
            )
            problems.append(Problem(key=name, kind="small-class", reason=reason, left_out=True))
        elif rule.max_per_class is not None and count > rule.max_per_class:
            free = np.flatnonzero((classes == number) & ((splits == OPEN) | (splits == 0)))
            leave = min(count - rule.max_per_class, len(free))
            splits[random.permutation(free)[:leave]] = LEFT_OUT
            notes.append(f"{leave} of {count} samples of class {name} are left out by `max_per_class`.")
    return problems, notes


def share_out(strata: np.ndarray, targets: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Choose samples at random for each split: (N,) int8, numbers of splits.

    Args:
        strata: (N,) number of the class of each sample, from 0.
        targets: (S, K) samples of class k for split s; what they leave goes to split 0.
        random: chooses.
    """
    splits = np.zeros(len(strata), np.int8)
    shuffled = random.permutation(len(strata)).astype(np.int32)
    by_class = shuffled[np.argsort(strata[shuffled], kind="stable")]
    starts = np.searchsorted(strata[by_class], np.arange(targets.shape[1]))
    for split in range(1, len(targets)):
        before = targets[1:split].sum(axis=0)
        for number, start in enumerate(starts):
            first = start + before[number]
            splits[by_class[first : first + targets[split, number]]] = split
    return splits


def split_totals(count: int, shares: Sequence[float]) -> np.ndarray:
    """Return the samples of each split, (S,): the share of it to one, and one at least where a share is not zero.

    Largest remainders; where there are fewer samples than splits, the first splits get them.
    """
    wanted = np.asarray(shares, np.float64) * count
    totals = np.floor(wanted + 1e-9).astype(np.int64)
    remainders = np.argsort(-(wanted - totals), kind="stable")
    totals[remainders[: count - totals.sum()]] += 1
    for split in np.flatnonzero((totals == 0) & (np.asarray(shares) > 0)):
        fullest = int(np.argmax(totals))
        if totals[fullest] > 1:
            totals[fullest] -= 1
            totals[split] += 1
    return totals


def class_targets(counts: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Return the samples of each class for each split, (S, K).

    Each is its share of the class to one, and the sums over the classes are ``split_totals``, as far as both can be.
    The rest of a class of one sample goes to training: what is only validated cannot be learned.

    Args:
        counts: (K,) samples of each class.
        shares: (S,) parts, 1 together, training first.
    """
    wanted = np.asarray(shares, np.float64)[:, None] * counts
    targets = np.floor(wanted + 1e-9).astype(np.int64)
    need = split_totals(int(counts.sum()), shares) - targets.sum(axis=1)
    left = counts - targets.sum(axis=0)
    open_places = wanted - targets > 1e-9
    for number in np.argsort(counts, kind="stable"):
        for _ in range(left[number]):
            places = np.flatnonzero(open_places[:, number])
            split = 0 if 0 in places and targets[0, number] == 0 else places[np.argmax(need[places])]
            targets[split, number] += 1
            need[split] -= 1
            open_places[split, number] = False
    _settle(targets, need, wanted)
    _fill_empty(targets, wanted)
    return targets


def _settle(targets: np.ndarray, need: np.ndarray, wanted: np.ndarray) -> None:
    """Move samples from splits that have too many to those that have too few, while each stays right to one."""
    while need.max(initial=0) > 0:
        short, over = int(np.argmax(need)), int(np.argmin(need))
        gain = targets[short] + 1 - wanted[short]
        loss = wanted[over] - (targets[over] - 1)
        may = np.flatnonzero((gain < 1 + 1e-9) & (loss < 1 + 1e-9) & (targets[over] > int(over == 0)))
        if not len(may):
            return
        chosen = may[np.argmin((gain + loss)[may])]
        _move(targets, over, short, int(chosen))
        need[short] -= 1
        need[over] += 1


def _fill_empty(targets: np.ndarray, wanted: np.ndarray) -> None:
    """Give one sample to each split that has a share and got nothing: of the largest class there is."""
    for split in np.flatnonzero((targets.sum(axis=1) == 0) & (wanted.sum(axis=1) > 0)):
        fullest = int(np.argmax(targets.sum(axis=1)))
        if targets[fullest].sum() > 1:
            _move(targets, fullest, int(split), int(np.argmax(targets[fullest])))


def _move(targets: np.ndarray, start: int, end: int, number: int) -> None:
    targets[start, number] -= 1
    targets[end, number] += 1
