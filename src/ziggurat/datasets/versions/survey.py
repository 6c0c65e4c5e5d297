"""Conflicts between joined datasets: keys shared by several samples, and duplicate samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final, Literal, get_args

import numpy as np

from ziggurat.datasets.samples import Problem
from ziggurat.datasets.versions.draft import LEFT_OUT, Draft, Origin
from ziggurat.errors import UsageError

__all__ = ["Duplicates", "Survey", "key_number"]

Duplicates = Literal["keep", "leave-out"]
_NO_CONTENT: Final = 0
_UNLIKE_CONTENT: Final = ("image-pairs",)
_MOST_PREFIXES: Final = 100


class Survey:
    """Looks once at all samples of a draft; costs 16 bytes a sample.

    Args:
        draft: of several datasets.
        duplicates: ``keep`` lists samples of a later dataset with the content of one of an earlier; ``leave-out``
            lists them and leaves them out.
    """

    def __init__(self, draft: Draft, duplicates: Duplicates) -> None:
        if duplicates not in get_args(Duplicates):
            raise UsageError("`duplicates` is keep or leave-out.", received=repr(duplicates))
        self._draft = draft
        self._leaves_out = duplicates == "leave-out"
        self._keys = np.empty(len(draft.splits), np.uint64)
        self._contents = np.empty(len(draft.splits), np.uint64)
        for origin in draft.origins:
            self._walk(origin)
        self.twins = np.zeros(0, np.int64)
        """Samples with the content of one of an earlier dataset, in order."""
        self._firsts = np.zeros(0, np.int64)

    def apply(self) -> None:
        """Find duplicates, leave them out where that was asked for, and give prefixes to keys that would conflict."""
        if self._draft.schema.kind not in _UNLIKE_CONTENT:
            self._find_twins()
        if self._leaves_out:
            self._draft.splits[self.twins] = LEFT_OUT
            self._draft.sentences.append(f"Left out {len(self.twins)} samples that came twice.")
        self._choose_prefixes()

    def problems(self) -> Iterator[Problem]:
        """Yield a problem for each duplicate, in order."""
        for twin, first in zip(self.twins.tolist(), self._firsts.tolist(), strict=True):
            key, other = self._draft.key(twin), self._draft.key(first)
            reason = f"It has the content of {other}."
            yield Problem(key=key, kind="duplicate", reason=reason, left_out=self._leaves_out)

    def _walk(self, origin: Origin) -> None:
        for place, entry in enumerate(origin.dataset.catalogue.walk()):
            content = entry.content_hash
            self._keys[origin.first + place] = key_number(entry.key)
            self._contents[origin.first + place] = int.from_bytes(content[:8], "big") if content else _NO_CONTENT

    def _find_twins(self) -> None:
        known, firsts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        twins, originals = [self.twins], [self._firsts]
        for origin in self._draft.origins:
            contents = self._contents[origin.first : origin.first + len(origin)]
            inside = np.flatnonzero((contents != _NO_CONTENT) & np.isin(contents, known))
            twins.append(origin.first + inside)
            originals.append(firsts[np.searchsorted(known, contents[inside])])
            everything = np.concatenate([known, contents[contents != _NO_CONTENT]])
            numbers = np.concatenate([firsts, origin.first + np.flatnonzero(contents != _NO_CONTENT)])
            known, at = np.unique(everything, return_index=True)
            firsts = numbers[at]
        self.twins, self._firsts = np.concatenate(twins), np.concatenate(originals)

    def _choose_prefixes(self) -> None:
        still = self._draft.splits != LEFT_OUT
        taken = np.zeros(0, np.uint64)
        for origin in self._draft.origins:
            place = slice(origin.first, origin.first + len(origin))
            attempt = 0
            while np.isin(self._keys[place][still[place]], taken).any():
                attempt += 1
                self._rename(origin, attempt)
            if origin.prefix:
                self._draft.sentences.append(f"Put {origin.prefix} before the keys of {origin.dataset.name}.")
            taken = np.union1d(taken, self._keys[place][still[place]])

    def _rename(self, origin: Origin, attempt: int) -> None:
        if attempt > _MOST_PREFIXES:
            raise UsageError("Datasets that become one have different names.", received=origin.dataset.name)
        name = origin.dataset.name.replace("/", "-") or "joined"
        origin.prefix = f"{name}/" if attempt == 1 else f"{name}-{attempt}/"
        for place, entry in enumerate(origin.dataset.catalogue.walk()):
            self._keys[origin.first + place] = key_number(origin.prefix + entry.key)


def key_number(text: str) -> int:
    """Return 64 bits of a text's BLAKE2b: two of a million texts share them with a probability of 3e-8."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
