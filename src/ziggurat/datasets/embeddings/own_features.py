"""Features of samples by themselves, without a network: pixels, words, and columns of tables."""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.dataflow.standalone_preprocessing import tokens_of
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.datasets.embeddings.projections import principal_components
from ziggurat.errors import DataError
from ziggurat.records.schema import Schema

__all__ = ["OWN_WORDS", "features_of_pixels", "features_of_rows", "features_of_texts", "small_pixels"]

MOST_OWN: Final = 64
"""Numbers that pixels and words are reduced to."""

OWN_WORDS: Final = {"image": "pixels", "text": "words", "row": "columns", "array": "values"}
"""First part of a record → what its own features are made of."""

_GRAY_SIDE_PX: Final = 32
_COLOR_SIDE_PX: Final = 20
_BUCKETS: Final = 2048
_MOST_CATEGORIES: Final = 100


def small_pixels(image: np.ndarray) -> np.ndarray:
    """Return the pixels of an image in one row, uint8: as they are up to 32 px, else made smaller.

    Args:
        image: (H, W, C) or (H, W) uint8. Images of equal channels and larger than that give rows of one length.
    """
    pixels = image[..., None] if image.ndim == 2 else image
    side = _GRAY_SIDE_PX if pixels.shape[2] == 1 else _COLOR_SIDE_PX
    if max(pixels.shape[:2]) > side:
        pixels = cv2.resize(pixels, (side, side), interpolation=cv2.INTER_AREA)
    return pixels.reshape(-1)


def features_of_pixels(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return (N, D) float32 principal components of rows of numbers; those of another length are made as long.

    Args:
        rows: as ``small_pixels`` gives them.
    """
    width = max(map(len, rows))
    equal = np.zeros((len(rows), width), np.float32)
    for place, row in enumerate(rows):
        equal[place] = (
            row if len(row) == width else np.interp(np.linspace(0, 1, width), np.linspace(0, 1, len(row)), row)
        )
    return principal_components(equal, MOST_OWN)[0]


def features_of_texts(texts: Sequence[str]) -> np.ndarray:
    """Return (N, D) float32 features: TF-IDF of hashed words and pairs of words, reduced by an SVD.

    Counts are damped by a logarithm, and rows have length 1 before they are reduced, as in scikit-learn's
    ``TfidfVectorizer(sublinear_tf=True)``.

    Args:
        texts: any; an empty one is a row of zeros before the reduction.
    """
    found = [_buckets(text) for text in texts]
    frequency = np.zeros(_BUCKETS)
    for buckets in found:
        frequency[list(buckets)] += 1
    weights = np.log((1 + len(texts)) / (1 + frequency)) + 1
    matrix = np.zeros((len(texts), _BUCKETS), np.float32)
    for row, buckets in zip(matrix, found, strict=True):
        numbers = list(buckets)
        row[numbers] = (1 + np.log(list(buckets.values()))) * weights[numbers]
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    return principal_components(matrix, MOST_OWN)[0]


def _buckets(text: str) -> Counter[int]:
    words = tokens_of(text, lower=True)
    pairs = (f"{first} {second}" for first, second in itertools.pairwise(words))
    return Counter(zlib.crc32(word.encode("utf-8", "surrogatepass")) % _BUCKETS for word in (*words, *pairs))


def features_of_rows(schema: Schema, rows: Sequence[Any]) -> np.ndarray:
    """Return (N, D) float32 features of the rows of a table: standardized numbers, and 0 or 1 for each category.

    The target is not among them.

    Args:
        schema: of the table.
        rows: as they are stored.

    Raises:
        DataError: if no column can be used.
    """
    preparing = TablePreprocessing.fit(schema.columns, schema.target, rows)
    finished = preparing.finish(np.array([preparing.decode(row, place) for place, row in enumerate(rows)]))
    parts = list(_columns(finished, preparing.categories))
    if not parts:
        raise DataError(f"This table of {len(schema.columns)} columns has none to make features of.")
    return np.concatenate(parts, axis=1, dtype=np.float32)


def _columns(finished: np.ndarray, categories: Sequence[int]) -> Iterator[np.ndarray]:
    for column, values in zip(finished.T, categories, strict=True):
        if not values:
            yield column[:, None]
            continue
        codes = column.astype(np.int64)
        frequent = np.argsort(-np.bincount(codes, minlength=values), kind="stable")[:_MOST_CATEGORIES]
        yield codes[:, None] == np.sort(frequent)[None, :]
