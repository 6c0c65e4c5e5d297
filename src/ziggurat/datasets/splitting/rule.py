"""Split rule as plain values, and the units of samples that it keeps in one split."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

import numpy as np

from ziggurat.datasets.catalog import Catalogue
from ziggurat.datasets.hashing import NEAR_DISTANCE, clusters
from ziggurat.datasets.samples import SPLITS
from ziggurat.errors import ConfigurationError, DataError, UnknownNameError

__all__ = ["METHODS", "SplitRule", "digests", "stem_of", "units_of"]

METHODS: Final = ("source", "share", "group", "stem", "time", "cluster", "list")
"""Names of the methods."""

_NUMBER_AT_END = re.compile(r"[-_. ]*\d+$")


@dataclass(frozen=True, kw_only=True)
class SplitRule:
    """How samples are divided.

    Methods:

    - ``source``: as the source says. Where it says nothing of validation, the share of it is taken from the training
      samples; of test likewise, where a share was asked for. Where it says nothing at all, ``share``.
    - ``share``: at random.
    - ``group``: at random, but samples of one group stay together.
    - ``stem``: at random, but samples whose file names begin alike stay together.
    - ``time``: the oldest are for training, the newest for test.
    - ``cluster``: at random, but near duplicates stay together.
    - ``list``: text files name the samples of each split.

    Args:
        method: one of these.
        val_share: part of all samples for validation, 0 to 1.
        test_share: part of all samples for test, 0 to 1.
        seed: of the random choice; the same seed gives the same splits.
        stratify: whether every class is divided by the same shares, where samples have one class each.
        pattern: of ``stem``: a regular expression, searched in the key; what its first group matches (without a group,
            all it matches) is the same for samples that belong together. Empty: folder and file name without the
            number at its end.
        lists: of ``list``: split → text file with a key, a file name, or one of both without its ending, a line.
        max_distance: of ``cluster``: bits in which hashes of near duplicates may differ.
        min_per_class: classes with fewer samples are left out.
        max_per_class: of larger classes, so many samples are chosen at random; None for all. Samples that the source
            put into validation or test are not touched.

    Raises:
        ConfigurationError: where a value cannot be.
        UnknownNameError: where there is no such method or split.
    """

    method: str = "source"
    val_share: float = 0.25
    test_share: float = 0.0
    seed: int = 0
    stratify: bool = True
    pattern: str = ""
    lists: Mapping[str, str] = field(default_factory=dict)
    max_distance: int = NEAR_DISTANCE
    min_per_class: int = 0
    max_per_class: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownNameError("method of splitting", self.method, METHODS)
        _check_share("val_share", self.val_share)
        _check_share("test_share", self.test_share)
        if self.val_share + self.test_share > 1 + 1e-9:
            raise ConfigurationError(
                "The shares of validation and test are 1 together at most.",
                received=f"val_share {self.val_share:g}, test_share {self.test_share:g}",
                advice="Training gets what they leave.",
            )
        self._check_names()
        if self.min_per_class < 0 or (self.max_per_class is not None and self.max_per_class < 1):
            raise ConfigurationError(
                "Limits of a class are `min_per_class` from 0 and `max_per_class` from 1.",
                received=f"{self.min_per_class} and {self.max_per_class}",
            )

    @property
    def shares(self) -> tuple[float, float, float]:
        """Parts of training, validation and test; 1 together."""
        return max(0.0, 1.0 - self.val_share - self.test_share), self.val_share, self.test_share

    def _check_names(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ConfigurationError(
                "`pattern` must be a regular expression.", received=f"`{self.pattern}`: {error}"
            ) from None
        for split in self.lists:
            if split not in SPLITS:
                raise UnknownNameError("split", split, SPLITS)
        if self.method == "list" and not self.lists:
            raise ConfigurationError("The method `list` needs a text file for a split at least.", received="none")


def _check_share(name: str, share: float) -> None:
    if 0 <= share <= 1:
        return
    if 1 < share <= 100:
        advice = f"It is a part of 1, not per cent: for {share:g} % write {share / 100:g}."
    else:
        advice = "It is a part of 1: for a quarter write 0.25."
    received = "not a number" if math.isnan(share) else f"{share:g}"
    raise ConfigurationError(f"`{name}` must be from 0 to 1.", received=received, advice=advice)


def units_of(catalog: Catalogue, rule: SplitRule, hashes: np.ndarray | None) -> np.ndarray:
    """Return the unit of each sample, (N,) int32: samples of one unit go to one split.

    Raises:
        DataError: where the catalog has not what the rule needs.
    """
    if rule.method == "stem":
        return _numbers(digests(catalog, lambda key: stem_of(key, rule.pattern)))
    if rule.method == "cluster":
        if hashes is None:
            hashes = catalog.column("picture_hash")
        if len(hashes) and (hashes == -1).all():
            raise DataError(
                "Clusters of near duplicates need the perceptual hashes of images.",
                received="no hash",
                advice="Split datasets without images by `group`, `stem` or `share`.",
            )
        return clusters(hashes, rule.max_distance)
    texts = catalog.texts("group")
    if not any(texts):
        raise DataError(
            "The method `group` needs samples with a group.",
            received="no group",
            advice="Name the group when importing (a column, for tables), or split by `stem` or `cluster`.",
        )
    groups = catalog.column("group")
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


def digests(catalog: Catalogue, text_of: Callable[[str], str]) -> np.ndarray:
    """Return 64 bits for a text made of each sample's key, (N,) int64; -1 where the text is empty."""
    return digests_of(text_of(entry.key) for entry in catalog.walk())


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
