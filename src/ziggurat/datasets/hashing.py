"""Perceptual hashes of images and of the samples of a dataset, and the search for near-duplicate images by hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

import cv2
import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.errors import DataError, DatapointError, UsageError

__all__ = [
    "MOST_DISTANCE",
    "NEAR_DISTANCE",
    "NO_HASH",
    "clusters",
    "distinct_hashes",
    "near_distinct",
    "near_pairs",
    "picture_hash",
    "stored_hashes",
]

NO_HASH: Final = -1
"""Stands for a sample without a hash: no image has this one, and it is near to nothing."""
NEAR_DISTANCE: Final = 6
"""Bits in which the hashes of near duplicates may differ; ``docs/how-to/datasets/split-without-leaks.md`` measures."""
MOST_DISTANCE: Final = 16
"""Bits up to which near hashes are looked for."""
_SMALL_PX: Final = 64
_SIDE: Final = 32
_MOST_PIXELS: Final = 2**23  # whose sum has 31 bits
_NOISE: Final = 1.0  # of a coefficient; what is below changes with every compression
_STRUCTURE: Final = 32  # coefficients that must be above the noise
_COARSE: Final = 16.0  # rounds off what compression changes
_PAIRS_AT_ONCE: Final = 2_000_000  # bounds the memory of a comparison to some tens of MB

# Bits of each 16-bit number, so that four look-ups count those of a hash.
_TABLE: Final = np.array([number.bit_count() for number in range(1 << 16)], np.uint8)


# ---- hashes


def picture_hash(image: np.ndarray) -> int:
    """Return the perceptual hash of an image as a signed number of 64 bits.

    Args:
        image: (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) uint8; RGB, of which a fourth channel is left out.

    Raises:
        UsageError: where ``image`` is something else.
    """
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or not image.size or image.shape[2:] > (4,):
        raise UsageError("An image is (H, W, C) uint8.", received=f"{image.dtype} of shape {image.shape}")
    color = np.ascontiguousarray(image[:, :, :3] if image.ndim == 3 else image)
    if min(color.shape[:2]) < _SMALL_PX:
        return _digest(repr(image.shape).encode() + color.tobytes())
    grey = cv2.cvtColor(color, cv2.COLOR_RGB2GRAY) if color.shape[2:] == (3,) else color
    found = _hash_of_grey(grey)
    if found is not None:
        return found
    # Little structure: alike is what has the same mean color and, coarsely, the same coefficients.
    tone = np.rint(color.reshape(-1, *color.shape[2:]).mean(axis=0) / _COARSE).astype(np.int16)
    return _digest(tone.tobytes() + np.rint(_coefficients(grey) / _COARSE).astype(np.int16).tobytes())


def _hash_of_grey(grey: np.ndarray) -> int | None:
    """Return the hash of (H, W) uint8, None where it has too little structure for one."""
    coefficients = _coefficients(grey)[1:, 1:].ravel()
    coefficients[np.abs(coefficients) < _NOISE] = 0
    if np.count_nonzero(coefficients) < _STRUCTURE:
        return None
    bits = np.packbits(coefficients > np.median(coefficients))  # half of the bits at most: never NO_HASH
    return int.from_bytes(bits.tobytes(), "big", signed=True)


def _coefficients(grey: np.ndarray) -> np.ndarray:
    """Return the lowest frequencies, (9, 9) float32; the first row and column are those of slopes and stripes."""
    small = _small(grey).astype(np.float32)
    return cv2.dct(small - small.mean())[:9, :9]


def _small(grey: np.ndarray) -> np.ndarray:
    """Return the means of areas, (32, 32) uint8."""
    height, width = grey.shape[:2]
    if height % _SIDE == 0 and width % _SIDE == 0:
        return cv2.resize(grey, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA)
    # The same numbers as by INTER_AREA, which takes six times as long where areas have edges inside of pixels: sums
    # up to any place are linear between the corners of pixels.
    sums = cv2.integral(grey, sdepth=cv2.CV_32S if grey.size <= _MOST_PIXELS else cv2.CV_64F)
    edges = np.arange(_SIDE + 1)
    row, row_share = np.divmod(edges * height, _SIDE)
    column, column_share = np.divmod(edges * width, _SIDE)
    row_share, column_share = row_share[:, None] / _SIDE, column_share / _SIDE
    next_row, next_column = np.minimum(row + 1, height), np.minimum(column + 1, width)
    lines = sums[row] * (1 - row_share) + sums[next_row] * row_share
    corners = lines[:, column] * (1 - column_share) + lines[:, next_column] * column_share
    areas = np.diff(np.diff(corners, axis=0), axis=1)
    return np.rint(areas * (_SIDE * _SIDE / (height * width))).astype(np.uint8)


def _digest(content: bytes) -> int:
    number = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big", signed=True)
    return 0 if number == NO_HASH else number


# ---- near duplicates


def near_pairs(hashes: np.ndarray, max_distance: int = NEAR_DISTANCE, *, at_most: int | None = None) -> np.ndarray:
    """Return pairs of near duplicates: (M, 2) int64, the smaller number first, in order.

    Of samples with equal hashes, each is paired with the first of them only, and only the first with near others:
    a thousand plain white images make 999 pairs, not half a million.

    Args:
        hashes: (N,) int64; ``NO_HASH`` is near to nothing.
        max_distance: bits in which near hashes may differ, 0 to 16.
        at_most: pairs to return at most; None for all.
    """
    values, inverse, first = distinct_hashes(hashes)
    known = np.flatnonzero(inverse >= 0)
    later = known[first[inverse[known]] != known]
    found = [np.stack([first[inverse[later]], later], axis=1)]
    for one, other in near_distinct(values, max_distance):
        pairs = np.stack([first[one], first[other]], axis=1)
        found.append(np.sort(pairs, axis=1))
        if at_most is not None and sum(map(len, found)) >= at_most:
            break
    pairs = np.concatenate(found)[:at_most]
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def clusters(hashes: np.ndarray, max_distance: int = NEAR_DISTANCE) -> np.ndarray:
    """Return the cluster of each sample: (N,) int32, numbered as they appear.

    Samples are in one cluster where a chain of near duplicates joins them. One without a hash is alone.

    Args:
        hashes: (N,) int64.
        max_distance: bits in which near hashes may differ, 0 to 16.
    """
    values, inverse, _first = distinct_hashes(hashes)
    roots = np.arange(len(values))
    for one, other in near_distinct(values, max_distance):
        _join(roots, one, other)
    labels = np.where(inverse >= 0, roots[inverse] if len(roots) else -1, np.arange(len(hashes)) + len(values))
    _, start, numbers = np.unique(labels, return_index=True, return_inverse=True)
    order = np.empty(len(start), np.int32)
    order[np.argsort(start)] = np.arange(len(start), dtype=np.int32)
    return order[numbers.reshape(-1)]


def distinct_hashes(hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the different hashes (K,) uint64, the number among them of each sample (N,), and their first samples (K,).

    A sample without a hash has the number -1.
    """
    hashes = np.asarray(hashes, np.int64)
    known = np.flatnonzero(hashes != NO_HASH)
    values, first, numbers = np.unique(hashes[known].view(np.uint64), return_index=True, return_inverse=True)
    inverse = np.full(len(hashes), -1, np.int64)
    inverse[known] = numbers.reshape(-1)
    return values, inverse, known[first]


def near_distinct(values: np.ndarray, max_distance: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield all pairs of near hashes in blocks, each pair once: (M,) and (M,) numbers of ``values``.

    The search is exact (multi-index hashing, Norouzi, Punjani and Fleet, 2012): of ``d // 2 + 1`` bands of bits, one
    at least differs in one bit at most, so that only hashes with near bands are compared. Memory is bounded.

    Args:
        values: (K,) uint64, all different.
        max_distance: bits in which near hashes may differ, 0 to 16.
    """
    if not 0 <= max_distance <= MOST_DISTANCE:
        raise UsageError("Near hashes differ in 0 to 16 bits of 64.", received=str(max_distance))
    if max_distance == 0:
        return
    bands = max_distance // 2 + 1
    # The bits of a band are spread over the hash: neighboring bits say much of the same.
    masks = [np.uint64(sum(1 << bit for bit in range(band, 64, bands))) for band in range(bands)]
    for band, mask in enumerate(masks):
        for one, other in _candidates(values, mask):
            difference = values[one] ^ values[other]
            near = np.flatnonzero(_bits(difference) <= max_distance)
            difference = difference[near]
            fresh = np.ones(len(near), bool)
            for earlier in masks[:band]:  # a pair belongs to the first band that finds it
                fresh &= _bits(difference & earlier) > 1
            if fresh.any():
                yield one[near[fresh]], other[near[fresh]]


def _candidates(values: np.ndarray, mask: np.uint64) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs whose bits under ``mask`` differ in one place at most."""
    band = values & mask
    order = np.argsort(band, kind="stable")
    keys, starts, counts = np.unique(band[order], return_index=True, return_counts=True)
    ends = starts + counts
    own = np.repeat(np.arange(len(keys)), counts)  # the bucket of each place in `order`
    yield from _expanded(order, np.arange(len(order)) + 1, ends[own])
    for bit in range(64):
        flip = np.uint64(1 << bit)
        if not mask & flip:
            continue
        lower = np.flatnonzero(keys & flip == 0)
        partner = np.searchsorted(keys, keys[lower] | flip)
        there = partner < len(keys)
        there[there] = keys[partner[there]] == (keys[lower[there]] | flip)
        low = np.zeros(len(keys), np.int64)
        high = np.zeros(len(keys), np.int64)
        low[lower[there]], high[lower[there]] = starts[partner[there]], ends[partner[there]]
        yield from _expanded(order, low[own], high[own])


def _expanded(order: np.ndarray, low: np.ndarray, high: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs of each place with the places from ``low`` up to ``high``, in blocks of bounded size."""
    places = np.flatnonzero(high > low)
    counts = (high - low)[places]
    done = np.cumsum(counts)
    start = 0
    while start < len(places):
        before = int(done[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(done, before + _PAIRS_AT_ONCE, side="right")))
        block, sizes = places[start:stop], counts[start:stop]
        shift = np.repeat(low[block] - (done[start:stop] - sizes - before), sizes)
        yield order[np.repeat(block, sizes)], order[np.arange(len(shift)) + shift]
        start = stop


def _join(roots: np.ndarray, one: np.ndarray, other: np.ndarray) -> None:
    """Bring pairs under one root; ``roots`` has for every place its root, before and after."""
    while True:
        first, second = roots[one], roots[other]
        apart = np.flatnonzero(first != second)
        if not len(apart):
            return
        one, other, first, second = one[apart], other[apart], first[apart], second[apart]
        np.minimum.at(roots, np.maximum(first, second), np.minimum(first, second))
        while True:
            further = roots[roots]
            if np.array_equal(further, roots):
                break
            roots[:] = further


def _bits(numbers: np.ndarray) -> np.ndarray:
    """Return how many bits are set: (N,) uint64 -> (N,) uint8."""
    if hasattr(np, "bitwise_count"):  # not before NumPy 2
        return np.bitwise_count(numbers)
    return _TABLE[np.ascontiguousarray(numbers).view(np.uint16)].reshape(-1, 4).sum(axis=1, dtype=np.uint8)


def stored_hashes(dataset: Dataset, *, compute: bool) -> np.ndarray:
    """Return the perceptual hash of each sample in the order of the catalog, (N,) int64; ``NO_HASH`` for none.

    Release 0.1 kept none of images that stay in their source, and a person may ask for none.

    Args:
        dataset: it.
        compute: whether images without a hash are read and get one. Images that were fitted are hashed as they are
            stored, for what they were made of is not there.

    Raises:
        DataError: where the catalog cannot be read.
    """
    catalog = dataset.catalogue
    hashes = catalog.column("picture_hash")
    missing = np.flatnonzero(hashes == NO_HASH)
    if not compute or dataset.manifest.image is None or not len(missing):
        return hashes
    for place, entry in zip(missing.tolist(), catalog.entries(catalog.column("number")[missing].tolist())):
        if entry.row is None:
            continue
        try:
            hashes[place] = picture_hash(dataset.picture(entry.split, entry.row))
        except (DatapointError, DataError):  # a damaged image is found by other checks
            continue
    return hashes
