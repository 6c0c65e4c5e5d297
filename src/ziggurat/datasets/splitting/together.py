"""Group-aware stratified split: indivisible units, with shares as close as whole units permit."""

from __future__ import annotations

import numpy as np

from ziggurat.datasets.splitting.shares import share_out

__all__ = ["share_out_units"]


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
