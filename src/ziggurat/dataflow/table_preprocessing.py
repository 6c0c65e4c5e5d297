"""Preprocessing of the rows of a table: missing values, scaling or whitening, and numbers of categories."""

from __future__ import annotations

import functools
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, Self, get_args

import numpy as np

from ziggurat.dataflow.standalone_preprocessing import (
    PARTS,
    MeasuredColumn,
    RowOrder,
    category_of,
    parts_of,
    row_of_texts,
    scaled,
)
from ziggurat.dataflow.stored_preprocessing import StoredPreprocessing
from ziggurat.errors import ConfigurationError, DataError, DatapointError, UnknownNameError
from ziggurat.records.schema import Column

__all__ = ["SCALINGS", "CategoryColumn", "MeasuredColumn", "Scaling", "TablePreprocessing"]

Scaling = Literal["none", "standardize", "whiten"]
SCALINGS: Final[tuple[str, ...]] = get_args(Scaling)
"""What is done to the measured numbers of a row."""

_LEAST_EIGENVALUE: Final = 1e-8
_LEAST_DEVIATION: Final = 1e-30
_LEAST_RELATIVE_DEVIATION: Final = 1e-12
_NOT_LEARNED: Final = {
    "identifier": "It names the row, and is nothing to learn from.",
    "text": "It holds free texts, which a network for tables cannot read.",
}
_CONSTANT: Final = "It has the same value in the whole training split."
_EMPTY: Final = "It has no value in the training split."


@dataclass(frozen=True, kw_only=True)
class CategoryColumn:
    """A column that becomes the number of its category.

    Args:
        name: of the column.
        values: the categories of the training split, whose numbers are 1, 2, …; 0 is for all others.
        has_missing: whether the training split has rows without a value, so that a network can learn what 0 means.
    """

    name: str
    values: tuple[str, ...]
    has_missing: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class TablePreprocessing(StoredPreprocessing):
    """What is done to every row of a table before a network gets it; made by ``fit``.

    A row becomes F numbers. The measured ones come first, in the order of their columns: numbers; booleans as 0 or 1;
    times as seconds since the earliest of the training split, with the place in day, week and year as sine and cosine.
    A missing value is replaced by the mean of the training split; if there were missing ones in the training split,
    one more number says so, 1 or 0. Numbers that never vary in the training split are not among them.

    Then comes one number for each category column: 1, 2, … for the categories of the training split, 0 for a missing
    value or another category.

    The measured numbers are scaled in one of these ways:

    - ``none``: not at all.
    - ``standardize``: numbers and seconds get mean 0 and deviation 1 over the training split.
    - ``whiten``: all measured numbers get mean 0 and deviation 1, and no correlation with one another, so that
      gradient descent on a linear network reaches the least-squares solution in some hundred steps. It is the
      symmetric form "ZCA-cor" of Kessy, Lewin, Strimmer (2018), *Optimal Whitening and Decorrelation*: PCA whitening of
      the standardized numbers, turned back so that each result stays close to its column. An eigenvalue of the
      correlation matrix counts as at least 1e-8 of the largest: along a direction in which collinear columns do not
      vary, there would only be rounding errors to amplify.

    Args:
        columns: of the table, in the order of a row's values, the target among them.
        target: name of the column that is predicted; empty for none.
        numbers: how the measured numbers are scaled.
        measured: columns of measured numbers.
        categorical: columns of categories.
        left_out: name of a column that the network does not get → the reason.
        offset: (M,) float64, taken off the measured numbers.
        matrix: (M,) or (M, M) float64, by which the result is multiplied, element by element or as a matrix product.
        unseen: name of a column → how many cells held a category that is not in the training split. It counts what
            this object decoded in this process.
        filled: name of a column → how many cells were missing, where none was in the training split, so that a network
            could not learn what that means. It counts as ``unseen`` does.
    """

    columns: tuple[Column, ...]
    target: str
    numbers: Scaling
    measured: tuple[MeasuredColumn, ...]
    categorical: tuple[CategoryColumn, ...]
    left_out: Mapping[str, str]
    offset: np.ndarray
    matrix: np.ndarray
    unseen: Counter[str] = field(default_factory=Counter, init=False, repr=False)
    filled: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    # ---- what the network gets

    @functools.cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Name of each of the F numbers."""
        measured = tuple(name for column in self.measured for name in column.features)
        return (*measured, *(column.name for column in self.categorical))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one finished row: (F,)."""
        return (len(self.feature_names),)

    @property
    def dtype(self) -> str:
        """Of a finished row."""
        return "float32"

    @property
    def categories(self) -> tuple[int, ...]:
        """For each of the F numbers, how many values a category's number can have; 0 for a measured number."""
        return (*(0 for _ in self.offset), *(len(column.values) + 1 for column in self.categorical))

    @property
    def vocabulary_size(self) -> None:
        """None: a row holds no tokens."""
        return None

    # ---- fitting

    @classmethod
    def fit(
        cls,
        columns: Sequence[Column],
        target: str,
        rows: Iterable[Any],
        *,
        numbers: Scaling = "standardize",
    ) -> Self:
        """Return the preprocessing for a table; needs 8 bytes of memory for each measured cell.

        Args:
            columns: of the table, in the order of a row's values, the target among them.
            target: name of the column that is predicted; empty for none.
            rows: of the training split, as ``decode`` takes them.
            numbers: how measured numbers are scaled: none, standardize or whiten.

        Raises:
            ConfigurationError: where ``numbers`` is none of these.
            UnknownNameError: where no column is named as the target is.
            DatapointError: where a row does not fit the columns; its key is its place, from 0.
            DataError: where there is no row, or no column to learn from.
        """
        if numbers not in SCALINGS:
            raise ConfigurationError(
                f"`numbers` must be one of {', '.join(SCALINGS)}.", received=repr(numbers), advice="Choose one of them."
            )
        names = [column.name for column in columns]
        if target and target not in names:
            raise UnknownNameError("column of the table", target, names)
        fitting = _Fitting(columns, target)
        for place, row in enumerate(rows):
            try:
                fitting.add(row)
            except ValueError as error:
                raise DatapointError(place, str(error)) from None
        measured, categorical, left_out, values = fitting.result()
        offset, matrix = _scaling(measured, values, numbers)
        return cls(
            columns=tuple(columns),
            target=target,
            numbers=numbers,
            measured=tuple(measured),
            categorical=tuple(categorical),
            left_out=left_out,
            offset=offset,
            matrix=matrix,
        )

    # ---- applying

    def decode(self, data: Any, key: Any) -> np.ndarray:
        """Return a row as numbers, not scaled yet.

        Args:
            data: a list in the order of the columns, with or without the target; or name → value, in which the target
                and the columns in ``left_out`` may be absent. A missing value is None.
            key: of the row, for errors.

        Returns:
            (F,) float64, since float32 has too few digits for seconds over years.

        Raises:
            DatapointError: where the row has other columns, or a cell is of another type.
        """
        try:
            return self._decoded(data)
        except ValueError as error:
            raise DatapointError(key, str(error)) from None

    def decode_sized(self, data: Any, key: Any) -> tuple[np.ndarray, None]:
        """Return what ``decode`` returns; there is no image that has a size."""
        return self.decode(data, key), None

    def decode_texts(self, texts: Mapping[str, str], key: Any) -> np.ndarray:
        """Return a row whose values come as texts, from a CSV file or a form, as ``decode`` does.

        Args:
            texts: name of a column → text; an empty one, ``NA`` and the like stand for a missing value.
            key: of the row, for errors.

        Raises:
            DatapointError: as ``decode`` does, and where a text is no number, time or boolean as its column needs.
        """
        try:
            return self._decoded(row_of_texts(self._json, texts))
        except ValueError as error:
            raise DatapointError(key, str(error)) from None

    def _decoded(self, data: Any) -> np.ndarray:
        cells = self._order.cells(data)
        numbers: list[float] = []
        for place, column in self._measured_places:
            found, is_missing = column.numbers(cells[place])
            numbers += found
            if is_missing and not column.has_indicator:
                self.filled[column.name] += 1
        for place, column, codes in self._category_places:
            value = category_of(column.name, cells[place])
            code = 0 if value is None else codes.get(value, 0)
            numbers.append(code)
            if value is not None and not code:
                self.unseen[column.name] += 1
            elif value is None and not column.has_missing:
                self.filled[column.name] += 1
        return np.array(numbers, np.float64)

    def finish(self, batch: np.ndarray) -> np.ndarray:
        """Return rows as the network gets them.

        Args:
            batch: (N, F), what ``decode`` gave.

        Returns:
            (N, F) float32.
        """
        return scaled(batch, self.offset, self.matrix)

    def affine(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (F, F) and (F,) float64, with which ``finish(x)`` is ``(x - offset) @ matrix``, for exports."""
        count, size = len(self.offset), self.shape[0]
        matrix, offset = np.eye(size), np.zeros(size)
        matrix[:count, :count] = self.matrix if self.matrix.ndim == 2 else np.diag(self.matrix)
        offset[:count] = self.offset
        return matrix, offset

    @functools.cached_property
    def _json(self) -> dict[str, Any]:
        return self.as_json()

    @functools.cached_property
    def _order(self) -> RowOrder:
        needed = [column.name for column in (*self.measured, *self.categorical)]
        return RowOrder([column.name for column in self.columns], self.target, needed)

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {column.name: place for place, column in enumerate(self.columns)}

    @functools.cached_property
    def _measured_places(self) -> list[tuple[int, MeasuredColumn]]:
        return [(self._places[column.name], column) for column in self.measured]

    @functools.cached_property
    def _category_places(self) -> list[tuple[int, CategoryColumn, dict[str, int]]]:
        return [
            (self._places[column.name], column, {value: code for code, value in enumerate(column.values, 1)})
            for column in self.categorical
        ]

    # ---- files

    def as_json(self) -> dict[str, Any]:
        """Return everything that ``decode`` and ``finish`` depend on, as JSON values; floats have all their digits."""
        return {
            "kind": "table",
            "columns": [{**asdict(column), "categories": list(column.categories)} for column in self.columns],
            "target": self.target,
            "numbers": self.numbers,
            "measured": [
                {**asdict(column), "parts": list(column.parts), "fill": list(column.fill)} for column in self.measured
            ],
            "categorical": [{**asdict(column), "values": list(column.values)} for column in self.categorical],
            "left_out": dict(self.left_out),
            "offset": self.offset.tolist(),
            "matrix": self.matrix.tolist(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the preprocessing that ``as_json`` gave.

        Raises:
            DataError: where the content is none.
        """
        try:
            if content["kind"] != "table" or content["numbers"] not in SCALINGS:
                raise ValueError(f"kind {content['kind']!r}, numbers {content['numbers']!r}")
            found = cls(
                columns=tuple(
                    Column(**{**each, "categories": tuple(each["categories"])}) for each in content["columns"]
                ),
                target=content["target"],
                numbers=content["numbers"],
                measured=tuple(
                    MeasuredColumn(**{**each, "parts": tuple(each["parts"]), "fill": tuple(each["fill"])})
                    for each in content["measured"]
                ),
                categorical=tuple(
                    CategoryColumn(**{**each, "values": tuple(each["values"])}) for each in content["categorical"]
                ),
                left_out=dict(content["left_out"]),
                offset=np.array(content["offset"], np.float64),
                matrix=np.array(content["matrix"], np.float64),
            )
            found._check()
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                "The preprocessing of a table is read as it was written.",
                received=f"{type(error).__name__}: {error}",
                advice="Use the folder of a job that has begun to train on a table.",
            ) from None
        return found

    def _check(self) -> None:
        """Refuse parts that do not belong together; raises KeyError or ValueError."""
        count = sum(len(column.features) for column in self.measured)
        if self.offset.shape != (count,) or self.matrix.shape not in ((count,), (count, count)):
            raise ValueError(f"{count} measured numbers, {self.offset.shape} offsets, a {self.matrix.shape} matrix")
        for column in self.measured:
            if not set(column.parts) <= set(PARTS[column.type]) or len(column.parts) != len(column.fill):
                raise ValueError(f"the parts {column.parts} of `{column.name}`")
        names = {column.name for column in self.columns}
        for name in (*(each.name for each in self.measured), *(each.name for each in self.categorical)):
            if name not in names:
                raise ValueError(f"the column `{name}`, which the table does not have")


class _Fitting:
    """The rows of a training split, gathered by column.

    Args:
        columns: of the table.
        target: name of the column that is left out.
    """

    def __init__(self, columns: Sequence[Column], target: str) -> None:
        self._left_out = {
            column.name: _NOT_LEARNED[column.type]
            for column in columns
            if column.name != target and column.type in _NOT_LEARNED
        }
        places = [(place, column) for place, column in enumerate(columns) if column.name != target]
        self._measured = [(place, column, array("d")) for place, column in places if column.type in PARTS]
        self._categories: list[tuple[int, Column, Counter[str | None]]] = [
            (place, column, Counter()) for place, column in places if column.type == "category"
        ]
        needed = [column.name for _, column, _ in (*self._measured, *self._categories)]
        self._order = RowOrder([column.name for column in columns], target, needed)
        self._rows = 0

    def add(self, row: Any) -> None:
        """Add a row; raises ValueError where it does not fit the columns."""
        cells = self._order.cells(row)
        for place, column, numbers in self._measured:
            found = parts_of(column.name, column.type, cells[place])
            numbers.extend((np.nan,) * len(PARTS[column.type]) if found is None else found)
        for place, column, counts in self._categories:
            counts[category_of(column.name, cells[place])] += 1
        self._rows += 1

    def result(self) -> tuple[list[MeasuredColumn], list[CategoryColumn], dict[str, str], np.ndarray]:
        """Return the columns, why others are left out, and the measured numbers (N, M) without missing ones."""
        if not self._rows:
            raise DataError(
                "A table's preprocessing is fitted to at least one row.", received="none", advice="Check the dataset."
            )
        measured: list[MeasuredColumn] = []
        values: list[np.ndarray] = []
        for _, column, numbers in self._measured:
            made, array_of_column, reason = _measured_column(column, np.frombuffer(numbers, np.float64))
            if made is None:
                self._left_out[column.name] = reason
            else:
                measured.append(made)
                values.append(array_of_column)
        categorical = [found for _, column, counts in self._categories if (found := self._category(column, counts))]
        if not measured and not categorical:
            reasons = "; ".join(f"`{name}`: {reason}" for name, reason in self._left_out.items())
            raise DataError(
                "A table has at least one column to learn from, besides the target.",
                received=reasons or "no other column",
                advice="Import the table again with other types of the columns.",
            )
        return measured, categorical, self._left_out, np.concatenate([np.zeros((self._rows, 0)), *values], axis=1)

    def _category(self, column: Column, counts: Counter[str | None]) -> CategoryColumn | None:
        found = {value for value in counts if value is not None}
        if len(counts) < 2:
            self._left_out[column.name] = _CONSTANT if found else _EMPTY
            return None
        known = [value for value in column.categories if value in found]
        values = (*known, *sorted(found - set(known)))
        return CategoryColumn(name=column.name, values=values, has_missing=None in counts)


def _measured_column(column: Column, numbers: np.ndarray) -> tuple[MeasuredColumn | None, np.ndarray, str]:
    """Return a column, its numbers (N, features), and why it is left out, if so."""
    names = PARTS[column.type]
    values = numbers.reshape(-1, len(names)).copy()
    missing = np.isnan(values[:, 0])
    known = values[~missing]
    if not len(known):
        return None, values, _EMPTY
    origin = float(known[:, 0].min()) if column.type == "time" else 0.0
    values[:, 0] -= origin
    known[:, 0] -= origin
    fill = known.mean(axis=0)
    values[missing] = fill
    varies = [not _is_constant(part) for part in known.T]
    has_indicator = bool(missing.any())
    if not any(varies) and not has_indicator:
        return None, values, _CONSTANT
    kept = [values[:, varies]]
    if has_indicator:
        kept.append(missing[:, None].astype(np.float64))
    made = MeasuredColumn(
        name=column.name,
        type=column.type,
        parts=tuple(name for name, is_kept in zip(names, varies, strict=True) if is_kept),
        fill=tuple(float(mean) for mean in fill[varies]),
        has_indicator=has_indicator,
        origin_s=origin,
    )
    return made, np.concatenate(kept, axis=1), ""


def _is_constant(values: np.ndarray) -> bool:
    """Say whether numbers vary by no more than rounding errors."""
    least, most = float(values.min()), float(values.max())
    return most - least <= max(_LEAST_DEVIATION, _LEAST_RELATIVE_DEVIATION * max(abs(least), abs(most)))


def _scaling(measured: Sequence[MeasuredColumn], values: np.ndarray, numbers: Scaling) -> tuple[np.ndarray, np.ndarray]:
    """Return the offset (M,) and the matrix, (M,) or (M, M), of the measured numbers (N, M)."""
    count = values.shape[1]
    if numbers == "none" or not count:
        return np.zeros(count), np.ones(count)
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    if numbers == "whiten":
        return mean, _whitening((values - mean) / deviation) / deviation[:, None]
    # What is between -1 and 1 by itself stays as it is: a 0 and a 1 are read more easily than their scaled values.
    is_scaled = np.array(
        [
            part in ("value", "seconds") and column.type != "boolean"
            for column in measured
            for part in (*column.parts, *(["missing"] if column.has_indicator else []))
        ]
    )
    return np.where(is_scaled, mean, 0.0), np.where(is_scaled, 1 / deviation, 1.0)


def _whitening(standardized: np.ndarray) -> np.ndarray:
    """Return the symmetric matrix (M, M) that gives standardized numbers (N, M) an identity as their covariance."""
    levels, axes = np.linalg.eigh(standardized.T @ standardized / len(standardized))
    return (axes / np.sqrt(np.maximum(levels, _LEAST_EIGENVALUE * levels[-1]))) @ axes.T
