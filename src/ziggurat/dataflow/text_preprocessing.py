"""Preprocessing of texts: tokens, a vocabulary, and token numbers of one length."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np

from ziggurat.dataflow.standalone_preprocessing import PADDING, RESERVED, UNKNOWN, tokens_of
from ziggurat.dataflow.stored_preprocessing import StoredPreprocessing
from ziggurat.errors import ConfigurationError, DataError, DatapointError

__all__ = ["PADDING", "UNKNOWN", "TextPreprocessing"]

_SHARE_OF_LENGTHS: Final = 0.95
_LENGTH_STEP: Final = 8
_LONGEST_GUESS: Final = 256


@dataclass(frozen=True, kw_only=True, eq=False)
class TextPreprocessing(StoredPreprocessing):
    """What is done to every text before a network gets it; made by ``fit``.

    A text becomes ``length`` token numbers: 0 is padding at the end, 1 an unknown token, 2, 3, … the words of the
    vocabulary, the most frequent first. What is longer is cut at the end.

    Args:
        length: tokens of each text.
        words: the vocabulary, without padding and the unknown token.
        lower: whether capital letters count as small ones.
        counts: what this object decoded in this process: ``texts``, how many of them were ``cut`` or ``empty``;
            ``tokens`` that were not cut off, and how many of them were ``unknown``.
    """

    length: int
    words: tuple[str, ...]
    lower: bool = True
    counts: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    # ---- what the network gets

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one text: (length,)."""
        return (self.length,)

    @property
    def dtype(self) -> str:
        """Of the token numbers."""
        return "int32"

    @property
    def categories(self) -> tuple[int, ...]:
        """Empty: a text is no row of a table."""
        return ()

    @property
    def vocabulary_size(self) -> int:
        """Token numbers that there are, padding and the unknown token among them."""
        return len(self.words) + RESERVED

    # ---- fitting

    @classmethod
    def fit(
        cls,
        texts: Iterable[str],
        *,
        length: int | None = None,
        vocabulary_size: int = 20_000,
        lower: bool = True,
        min_count: int = 2,
    ) -> Self:
        """Return the preprocessing for texts; memory grows with the number of different tokens.

        Args:
            texts: of the training split.
            length: tokens of each text; None for what 95 % of the texts do not exceed, up to a multiple of 8, at most
                256.
            vocabulary_size: token numbers at most, padding and the unknown token among them. The most frequent tokens
                are kept; among equally frequent ones, those that come first by their code points.
            lower: whether capital letters count as small ones.
            min_count: how often a token must be in the texts to be kept.

        Raises:
            ConfigurationError: where ``length``, ``vocabulary_size`` or ``min_count`` is too small.
            DatapointError: where one is no text; its key is its place, from 0.
            DataError: where the vocabulary would be empty.
        """
        _check_options({"length": (length, 1), "vocabulary_size": (vocabulary_size, 3), "min_count": (min_count, 1)})
        frequencies: Counter[str] = Counter()
        lengths: Counter[int] = Counter()
        for place, text in enumerate(texts):
            tokens = _tokens(text, place, lower=lower)
            frequencies.update(tokens)
            lengths[len(tokens)] += 1
        kept = sorted((-count, word) for word, count in frequencies.items() if count >= min_count)
        words = tuple(word for _, word in kept[: vocabulary_size - RESERVED])
        if not words:
            raise DataError(
                f"The texts of the training split have at least one token that is there {min_count} times.",
                received=f"{lengths.total()} texts with {len(frequencies)} different tokens",
                advice="Check the dataset, or set `min_count` to 1.",
            )
        return cls(length=_usual_length(lengths) if length is None else length, words=words, lower=lower)

    # ---- applying

    def decode(self, data: Any, key: Any) -> np.ndarray:
        """Return a text as token numbers, (length,) int32.

        Args:
            data: the text.
            key: of the sample, for errors.

        Raises:
            DatapointError: where it is no text.
        """
        tokens = _tokens(data, key, lower=self.lower)
        numbers = [self._numbers.get(token, UNKNOWN) for token in tokens[: self.length]]
        self.counts["texts"] += 1
        self.counts["cut"] += len(tokens) > self.length
        self.counts["empty"] += not tokens
        self.counts["tokens"] += len(numbers)
        self.counts["unknown"] += numbers.count(UNKNOWN)
        found = np.full(self.length, PADDING, np.int32)
        found[: len(numbers)] = numbers
        return found

    def decode_sized(self, data: Any, key: Any) -> tuple[np.ndarray, None]:
        """Return what ``decode`` returns; there is no image that has a size."""
        return self.decode(data, key), None

    def finish(self, batch: np.ndarray) -> np.ndarray:
        """Return texts as the network gets them: (N, length) int32, what ``decode`` gave."""
        return batch.astype(np.int32, copy=False)

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words, RESERVED)}

    # ---- files

    def as_json(self) -> dict[str, Any]:
        """Return everything that ``decode`` depends on, as JSON values."""
        return {"kind": "text", "length": self.length, "lower": self.lower, "words": list(self.words)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the preprocessing that ``as_json`` gave.

        Raises:
            DataError: where the content is none.
        """
        try:
            length, words, lower = content["length"], tuple(content["words"]), content["lower"]
            is_whole = content["kind"] == "text" and isinstance(length, int) and length > 0 and isinstance(lower, bool)
            if not is_whole or not all(isinstance(word, str) for word in words) or len(set(words)) != len(words):
                raise ValueError(f"kind {content['kind']!r}, length {length!r}, {len(words)} words")
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                "The preprocessing of texts is read as it was written.",
                received=f"{type(error).__name__}: {error}",
                advice="Use the folder of a job that has begun to train on texts.",
            ) from None
        return cls(length=length, words=words, lower=lower)


def _check_options(options: Mapping[str, tuple[int | None, int]]) -> None:
    for name, (value, least) in options.items():
        if value is not None and value < least:
            raise ConfigurationError(f"`{name}` must be at least {least}.", received=value, advice="Choose more.")


def _tokens(text: Any, key: Any, *, lower: bool) -> list[str]:
    try:
        return tokens_of(text, lower=lower)
    except ValueError as error:
        raise DatapointError(key, str(error)) from None


def _usual_length(lengths: Counter[int]) -> int:
    """Return the least multiple of 8 that is no less than the lengths of 95 % of the texts, from 8 to 256."""
    left = _SHARE_OF_LENGTHS * lengths.total()
    usual = 0
    for usual, count in sorted(lengths.items()):  # noqa: B007
        left -= count
        if left <= 0:
            break
    return min(_LONGEST_GUESS, max(_LENGTH_STEP, -(-usual // _LENGTH_STEP) * _LENGTH_STEP))
