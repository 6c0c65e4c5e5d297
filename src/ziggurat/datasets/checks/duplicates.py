"""Checks for exact duplicates, near duplicates, and leaks between splits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ziggurat.datasets.checks.report import Facts, Finding
from ziggurat.datasets.hashing import NO_HASH, clusters, stored_hashes
from ziggurat.datasets.samples import SPLITS
from ziggurat.datasets.splitting.leaks import find_leaks
from ziggurat.formatting import plural

__all__ = ["check_duplicates"]


def check_duplicates(facts: Facts, *, verify: bool) -> Iterator[Finding]:
    """Yield findings on equal content, on near duplicates, and on leaks.

    Args:
        facts: of the samples.
        verify: whether images without a perceptual hash are read and get one.
    """
    groups = _equal_contents(facts)
    first = _first_of(groups)
    repeated = np.flatnonzero((groups >= 0) & (first != np.arange(len(groups))))
    if len(repeated):
        yield from _other_labels(facts, groups, first)
        yield from _across(facts, groups, first)
        yield from _within(facts, groups)
    hashes = stored_hashes(facts.dataset, compute=verify)
    yield from _without_hash(facts, hashes)
    yield from _near(facts, hashes, repeated)
    yield from _leaks(facts, hashes)


def _without_hash(facts: Facts, hashes: np.ndarray) -> Iterator[Finding]:
    """Say what is not looked at: a dataset without hashes must not pass for one without near duplicates."""
    places = np.flatnonzero(hashes == NO_HASH)
    if len(places) and facts.dataset.manifest.image is not None:
        finding = facts.finding(
            "no-picture-hash",
            "note",
            places,
            f"{plural(len(places), 'sample has', 'samples have')} no perceptual hash: near duplicates and their leaks "
            "are not found.",
            "Run the full check, which reads them, or create the dataset again.",
            exclude=places[:0],
        )
        yield finding


def _equal_contents(facts: Facts) -> np.ndarray:
    """Return the number of the content of each sample, (N,), the same where contents are equal; -1 where unknown."""
    groups = np.full(len(facts.numbers), -1, np.int64)
    if facts.known_contents.any():
        halves = facts.contents[facts.known_contents].view(np.int64).reshape(-1, 2)
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        fresh = np.ones(len(order), bool)
        fresh[1:] = (halves[order[1:]] != halves[order[:-1]]).any(axis=1)
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.cumsum(fresh) - 1
        groups[facts.known_contents] = numbers
    return groups


def _first_of(groups: np.ndarray) -> np.ndarray:
    """Return the first place of the group of each place; its own where it has none."""
    first = np.arange(len(groups))
    known = np.flatnonzero(groups >= 0)
    _, starts, inverse = np.unique(groups[known], return_index=True, return_inverse=True)
    first[known] = known[starts][inverse.reshape(-1)]
    return first


def _several(groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the places whose group has more than one of the values."""
    known = np.flatnonzero(groups >= 0)
    order = known[np.lexsort((values[known], groups[known]))]
    differs = (groups[order[1:]] == groups[order[:-1]]) & (values[order[1:]] != values[order[:-1]])
    return np.flatnonzero(np.isin(groups, groups[order[1:]][differs]) & (groups >= 0))


def _twins(facts: Facts, places: np.ndarray, groups: np.ndarray, first: np.ndarray) -> dict[int, str]:
    """Return notes that name, for each place, another one of its group."""
    notes = {}
    for place in places[: facts.limits.most_cases].tolist():
        mates = np.flatnonzero(groups == groups[place])
        twin = mates[mates != place][:1] if first[place] == place else first[place : place + 1]
        notes[place] = f"equal to {facts.keys(twin)[0]} ({facts.split(int(twin[0]))})"
    return notes


def _other_labels(facts: Facts, groups: np.ndarray, first: np.ndarray) -> Iterator[Finding]:
    places = _several(groups, facts.labels)
    if len(places):
        yield facts.finding(
            "duplicate-with-other-label",
            "error",
            places,
            f"{plural(len(places), 'sample has', 'samples have')} the content of another sample, but not its label.",
            "Give them one label, or leave them out: a network cannot learn both.",
            notes=_twins(facts, places, groups, first),
        )


def _across(facts: Facts, groups: np.ndarray, first: np.ndarray) -> Iterator[Finding]:
    """Those to leave out are in training: what is measured on stays as it is."""
    places = _several(groups, facts.splits)
    if not len(places):
        return
    train = facts.dataset.splits.index("train") if "train" in facts.dataset.splits else -1
    in_train = places[facts.splits[places] == train]
    others = places[facts.splits[places] != train]
    later = others[_first_of(groups[others]) != np.arange(len(others))]
    again = ", or split again by visual similarity (`cluster`)" if facts.dataset.manifest.image is not None else ""
    yield facts.finding(
        "duplicate-across-splits",
        "error",
        places,
        f"{plural(len(places), 'sample has', 'samples have')} the content of a sample in another split.",
        f"Leave out those in training{again}: results on known samples look better than they are.",
        notes=_twins(facts, places, groups, first),
        exclude=np.concatenate([in_train, later]),
    )


def _within(facts: Facts, groups: np.ndarray) -> Iterator[Finding]:
    of_split = np.where(groups >= 0, groups * len(SPLITS) + facts.splits, -1)
    first = _first_of(of_split)
    places = np.flatnonzero(first != np.arange(len(first)))
    if len(places):
        yield facts.finding(
            "duplicate",
            "warning",
            places,
            f"{plural(len(places), 'sample has', 'samples have')} the content of an earlier sample of the same split.",
            "Leave them out unless they are to count more than once.",
            notes=_twins(facts, places, of_split, first),
        )


def _near(facts: Facts, hashes: np.ndarray, repeated: np.ndarray) -> Iterator[Finding]:
    hashes = hashes.copy()
    hashes[repeated] = NO_HASH  # they were found as exact duplicates
    groups = clusters(hashes, facts.limits.max_distance).astype(np.int64)
    first = _first_of(groups)
    places = np.flatnonzero(first != np.arange(len(first)))
    if not len(places):
        return
    yield from _near_with_other_labels(facts, groups, first)
    shown = places[: facts.limits.most_cases]
    keys = facts.keys(first[shown])
    notes = {
        place: f"like {key} ({facts.split(mate)})"
        for place, key, mate in zip(shown.tolist(), keys, first[shown].tolist(), strict=True)
    }
    yield facts.finding(
        "near-duplicate",
        "note",
        places,
        f"{plural(len(places), 'sample is a near duplicate', 'samples are near duplicates')} of an earlier one.",
        "They teach little that is new; leave them out, or split by visual similarity (`cluster`).",
        notes=notes,
    )


def _near_with_other_labels(facts: Facts, groups: np.ndarray, first: np.ndarray) -> Iterator[Finding]:
    places = _several(groups, facts.labels)
    if len(places):
        notes = {
            place: note.replace("equal to", "like") for place, note in _twins(facts, places, groups, first).items()
        }
        yield facts.finding(
            "near-duplicate-with-other-label",
            "warning",
            places,
            f"{plural(len(places), 'sample is a near duplicate', 'samples are near duplicates')} of a sample with "
            "another label.",
            "Look at them: one of the labels may be wrong, or both may be in the image.",
            notes=notes,
        )


def _leaks(facts: Facts, hashes: np.ndarray) -> Iterator[Finding]:
    order = np.array([SPLITS.index(split) for split in facts.dataset.splits], np.int8)
    splits = order[facts.splits] if len(facts.splits) else facts.splits
    report = find_leaks(
        hashes,
        splits,
        facts.groups(),
        max_distance=facts.limits.max_distance,
        most_pairs=facts.limits.most_cases,
    )
    if not report.text:
        return
    keys = facts.keys(np.array([pair.train_number for pair in report.pairs], np.int64))
    notes = {pair.number: f"{pair.reason} of {key} (train)" for pair, key in zip(report.pairs, keys, strict=True)}
    noted = np.array(list(notes), np.int64)
    finding = facts.finding("leak", "warning", report.leaking, report.text, "Or leave out what leaks.")
    yield Finding(**{**vars(finding), "cases": facts.cases(noted, notes)})
