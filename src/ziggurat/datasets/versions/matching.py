"""Matching of the samples of two datasets by their content, such as those of two versions of one dataset."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.versions.joining import key_number
from ziggurat.errors import DataError

__all__ = ["Matching", "SplitSamples", "match_samples", "split_samples"]

_LABEL_PARTS: Final = ("mask", "target")
"""Parts of a sample that are its label; the catalog knows nothing of them."""

_SEVERAL_IMAGES: Final = ("image-pairs",)
"""Kinds whose samples differ where their first parts are equal: the hash of the content is that of the first part."""


@dataclass(frozen=True, kw_only=True)
class SplitSamples:
    """What tells the samples of a split, row by row.

    Args:
        contents: (N) uint64, 64 bits of the hash of each content; of the key where the content is not known.
        keys: (N) uint64, 64 bits of the hash of content and key.
        labels: (N) uint64, 64 bits of the hash of each label, with classes by their names.
        has_labels: whether the labels are compared; masks and target images are not.
    """

    contents: np.ndarray
    keys: np.ndarray
    labels: np.ndarray
    has_labels: bool = True

    def of_rows(self, rows: np.ndarray) -> SplitSamples:
        """Return the same of some rows, in their order.

        Raises:
            DataError: where the split has no such row.
        """
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self.contents):
            raise DataError(
                "Samples are found in the split by their rows.",
                received=f"the row {rows.max()} of a split of {len(self.contents)}",
                advice="Evaluate again: the dataset is not the one that was evaluated.",
            )
        return SplitSamples(
            contents=self.contents[rows],
            keys=self.keys[rows],
            labels=self.labels[rows],
            has_labels=self.has_labels,
        )


@dataclass(frozen=True, kw_only=True)
class Matching:
    """Which samples of two lists are the same.

    Args:
        first: (M) int64, places in the first list, rising.
        second: (M) int64, places of the same samples in the second list.
        only_first: (K) int64, places of samples that only the first list has, rising.
        only_second: (L) int64, the same of the second list.
        unmatched: samples among these whose content the other list has as well, but not as often.
    """

    first: np.ndarray
    second: np.ndarray
    only_first: np.ndarray
    only_second: np.ndarray
    unmatched: int


def split_samples(dataset: Dataset, split: str) -> SplitSamples:
    """Return what tells the samples of a split; costs 24 bytes a sample."""
    schema = dataset.schema
    count = dataset.manifest.splits[split].count
    contents, keys, labels = (np.zeros(count, np.uint64) for _ in range(3))
    of_classes = [_label_number(name) for name in schema.class_names]
    is_by_key = schema.kind in _SEVERAL_IMAGES
    for row, (key, content, label) in enumerate(dataset.catalogue.identities(split)):
        named = key.encode("utf-8", "surrogatepass")
        same = b"key " + named if content is None else content + named if is_by_key else content
        contents[row] = _number(same)
        keys[row] = _number((content or b"") + b" " + named)
        is_class = type(label) is int and 0 <= label < len(of_classes)
        labels[row] = of_classes[label] if is_class else _label_number(_named(label, schema.class_names))
    return SplitSamples(
        contents=contents,
        keys=keys,
        labels=labels,
        has_labels=not any(part in _LABEL_PARTS for part in schema.parts),
    )


def match_samples(first: SplitSamples, second: SplitSamples) -> Matching:
    """Return which samples of two lists are the same.

    Samples with the same content and key are; of the others those with the same content, in their order: the first of
    one list with the first of the other. What is left over of a content that occurs more often in one list is only
    there.

    Args:
        first: of one list.
        second: of the other.
    """
    ours, theirs = _in_order(first.keys, second.keys)
    left, right = _others(ours, len(first.keys)), _others(theirs, len(second.keys))
    more_ours, more_theirs = _in_order(first.contents[left], second.contents[right])
    ours, theirs = np.concatenate([ours, left[more_ours]]), np.concatenate([theirs, right[more_theirs]])
    by_place = np.argsort(ours)
    only_first, only_second = _others(ours, len(first.keys)), _others(theirs, len(second.keys))
    known = np.isin(first.contents[only_first], second.contents).sum()
    known += np.isin(second.contents[only_second], first.contents).sum()
    return Matching(
        first=ours[by_place],
        second=theirs[by_place],
        only_first=only_first,
        only_second=only_second,
        unmatched=int(known),
    )


def _in_order(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of equal numbers in two lists; the n-th of a number in one with the n-th in the other."""
    one, other = _numbered(first, second)
    _, ours, theirs = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return ours, theirs


def _numbered(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each entry that tells its value and how many of that value stand before it in its list."""
    _, values = np.unique(np.concatenate([first, second]), return_inverse=True)
    most = max(len(first), len(second), 1)
    return tuple(  # pyright: ignore[reportReturnType]
        part.astype(np.int64) * most + _before(part) for part in (values[: len(first)], values[len(first) :])
    )


def _before(values: np.ndarray) -> np.ndarray:
    """Return (N) how many equal values stand before each one."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, len(ordered)])
    found = np.empty(len(values), np.int64)
    found[order] = np.arange(len(ordered)) - np.repeat(starts, lengths)
    return found


def _others(places: np.ndarray, count: int) -> np.ndarray:
    left = np.ones(count, bool)
    left[places] = False
    return np.flatnonzero(left)


def _number(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


def _label_number(label: Any) -> int:
    return key_number(json.dumps(label, sort_keys=True))


def _named(label: Any, names: tuple[str, ...]) -> Any:
    """Return the label of a sample with objects, whose classes have names in place of numbers; others as they are."""
    if not isinstance(label, list) or not names:
        return label
    return [
        {**each, "class": names[each["class"]]}
        if isinstance(each, dict) and isinstance(each.get("class"), int) and 0 <= each["class"] < len(names)
        else each
        for each in label
    ]
