"""Units of samples that must stay in one split: by group, by the stem of the name, or by cluster."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

import numpy as np

from ziggurat.datasets.catalogue import Catalogue
from ziggurat.datasets.hashing import clusters
from ziggurat.datasets.splitting.rule import SplitRule
from ziggurat.errors import DataError

__all__ = ["digests", "stem_of", "units_of"]

_NUMBER_AT_END = re.compile(r"[-_. ]*\d+$")


def units_of(catalogue: Catalogue, rule: SplitRule, hashes: np.ndarray | None) -> np.ndarray:
    """Return the unit of each sample, (N,) int32: samples of one unit go to one split.

    Raises:
        DataError: where the catalog has not what the rule needs.
    """
    if rule.method == "stem":
        return _numbers(digests(catalogue, lambda key: stem_of(key, rule.pattern)))
    if rule.method == "cluster":
        if hashes is None:
            hashes = catalogue.column("picture_hash")
        if len(hashes) and (hashes == -1).all():
            raise DataError(
                "Clusters of near duplicates need the perceptual hashes of images.",
                received="no hash",
                advice="Split datasets without images by `group`, `stem` or `share`.",
            )
        return clusters(hashes, rule.max_distance)
    texts = catalogue.texts("group")
    if not any(texts):
        raise DataError(
            "The method `group` needs samples with a group.",
            received="no group",
            advice="Name the group when importing (a column, for tables), or split by `stem` or `cluster`.",
        )
    groups = catalogue.column("group")
    return _numbers(np.where(groups == texts.index(""), -1, groups) if "" in texts else groups)


def stem_of(key: str, pattern: str = "") -> str:
    """Return what samples that belong together have in common in their keys; empty for one that stands alone.

    Args:
        key: of a sample.
        pattern: regular expression, see ``SplitRule``; empty for folder and file name without the number at its end.
    """
    if pattern:
        match = re.search(pattern, key)
        if match is None:
            return ""
        return (match.group(1) if match.re.groups else match.group()) or ""
    path = PurePosixPath(key)
    stem = _NUMBER_AT_END.sub("", path.stem)
    return f"{path.parent}/{stem}" if stem else ""


def digests(catalogue: Catalogue, text_of: Callable[[str], str]) -> np.ndarray:
    """Return 64 bits for a text made of each sample's key, (N,) int64; -1 where the text is empty."""
    return digests_of(text_of(entry.key) for entry in catalogue.walk())


def digests_of(texts: Iterable[str]) -> np.ndarray:
    """Return 64 bits for each text, (N,) int64; -1 for an empty one. Eight bytes stand for a name of any length."""
    return np.fromiter((_digest(text) for text in texts), np.int64)


def _digest(text: str) -> int:
    if not text:
        return -1
    found = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(found, "big", signed=True)


def _numbers(names: np.ndarray) -> np.ndarray:
    """Return units from 0; every sample whose name is -1 is a unit of its own."""
    _, numbers = np.unique(names, return_inverse=True)
    numbers = numbers.reshape(-1).astype(np.int64)
    alone = np.flatnonzero(names == -1)
    numbers[alone] = numbers.max(initial=0) + 1 + np.arange(len(alone))
    _, dense = np.unique(numbers, return_inverse=True)
    return dense.reshape(-1).astype(np.int32)
