"""Exact stratified split: the number of samples of each class in each split, and their random choice."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["class_targets", "share_out", "split_totals"]


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
