"""Results of an evaluation or prediction job: samples chosen and ordered, their figures, and a table of them."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final, Literal

import numpy as np

from ziggurat.errors import JobError, StorageError, UsageError
from ziggurat.layout import ResultFiles
from ziggurat.tasks.classification_metrics import (
    NO_QUALITY,
    class_curves,
    class_figures,
    confusion_matrix,
    quality_measures,
    threshold_figures,
    top_share,
)

__all__ = [
    "TABLE_TYPES",
    "Changed",
    "Order",
    "Predictions",
    "SampleFilter",
    "TableFormat",
    "prediction_table",
]

Order = Literal["hardest", "surest_wrong", "row"]
Changed = Literal["fixed", "broken", "still_wrong"]
TableFormat = Literal["csv", "json"]

TABLE_TYPES: Final[dict[str, str]] = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
"""Format → media type."""

_MANY_CLASSES: Final = 5
_AT_ONCE: Final = 1000
_KEPT_CURVES: Final = 256

_FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a cell that spreadsheets compute begins with."""


@dataclass(frozen=True, kw_only=True)
class SampleFilter:
    """Which samples, in which order.

    Args:
        label: class number of the truth; -1 for those whose label is not known, None for all.
        predicted: class number that the model chose; None for all.
        only: ``wrong`` or ``right``, of those whose label is known; empty for all.
        order: ``hardest`` (lowest probability of the label first; without labels, the least sure first),
            ``surest_wrong`` (wrong ones first, by falling confidence) or ``row``.
        min_score: least probability of what the model chose.
        max_score: largest.
    """

    label: int | None = None
    predicted: int | None = None
    only: Literal["", "wrong", "right"] = ""
    order: Order = "hardest"
    min_score: float = 0.0
    max_score: float = 1.0


class Predictions:
    """The results of one job; reading any part of them touches no more of the disk than that part needs.

    Args:
        folder: of the results.

    Raises:
        StorageError: where they are not there or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._files = ResultFiles(folder)
        try:
            self.summary: dict[str, Any] = json.loads(self._files.summary.read_text("utf-8", "surrogateescape"))
        except (OSError, ValueError) as error:
            raise StorageError(f"The results in {folder} must be readable.", received=str(error)) from error
        self.class_names: list[str] = self.summary["classes"]
        self.split: str = self.summary["split"]
        self._curves: dict[tuple[int, int], dict[str, Any]] = {}

    # ---- arrays

    @cached_property
    def rows(self) -> np.ndarray:
        """(N) int32: row of each sample in its split or list."""
        return self._whole("rows")

    @cached_property
    def labels(self) -> np.ndarray:
        """(N) int32: class number, -1 where it is not known."""
        return self._whole("labels")

    @cached_property
    def label_scores(self) -> np.ndarray:
        """(N) float32: probability of the label, NaN where it is not known."""
        return self._whole("label_scores")

    @cached_property
    def predicted(self) -> np.ndarray:
        """(N) int32: class that the model chose."""
        return self._whole("predicted")

    @cached_property
    def scores(self) -> np.ndarray:
        """(N) float32: its probability."""
        return self._whole("scores")

    @cached_property
    def _top(self) -> tuple[np.ndarray, np.ndarray]:
        return self._mapped("top_classes"), self._mapped("top_scores")

    @cached_property
    def _right(self) -> np.ndarray:
        return self.labels == self.predicted

    @cached_property
    def _wrong(self) -> np.ndarray:
        return (self.labels >= 0) & ~self._right

    def __len__(self) -> int:
        """Return how many samples were classified."""
        return len(self.rows)

    @property
    def top(self) -> int:
        """How many of the best classes of each sample are kept."""
        return self._top[0].shape[1]

    def keys(self, places: Sequence[int]) -> list[str]:
        """Return what names samples, such as their paths.

        Args:
            places: in the arrays.
        """
        chosen = np.asarray(places, np.int64)
        if not len(chosen):
            return []
        offsets = self._mapped("key_offsets")
        begins, ends = offsets[chosen].tolist(), offsets[chosen + 1].tolist()
        with self._files.keys.open("rb") as file:
            if (np.diff(chosen) == 1).all():  # one after the other, as in a table
                file.seek(begins[0])
                block = file.read(ends[-1] - begins[0])
                lines = [block[begin - begins[0] : end - begins[0]] for begin, end in zip(begins, ends, strict=True)]
            else:
                lines = [_between(file, begin, end) for begin, end in zip(begins, ends, strict=True)]
        return [line.decode("utf-8", "surrogateescape").removesuffix("\n") for line in lines]

    # ---- figures

    @cached_property
    def figures(self) -> dict[str, Any]:
        """``accuracy``, ``top5``, ``confusion`` and ``per_class``; where no label is known, None and empty lists."""
        if not self.summary["classifier"] or not (self.labels >= 0).any():
            return {"accuracy": None, "top5": None, "confusion": [], "per_class": []}
        matrix = confusion_matrix(self.labels, self.predicted, len(self.class_names))
        top = self._top[0]
        has_five = top.shape[1] == _MANY_CLASSES < len(self.class_names)
        return {
            "accuracy": float(matrix.trace() / matrix.sum()),
            "top5": top_share(self.labels, top) if has_five else None,
            "confusion": matrix.tolist(),
            "per_class": class_figures(matrix, self.class_names),
        }

    @cached_property
    def quality(self) -> dict[str, Any]:
        """The measures of ``ziggurat.tasks.classification_metrics.quality_measures``; None where no label is known."""
        if not self.summary["classifier"]:
            return dict(NO_QUALITY)
        return quality_measures(
            self.labels, self.predicted, self.scores, self.label_scores, self._top[0], self.figures["per_class"]
        )

    def at_threshold(self, threshold: float) -> dict[str, Any]:
        """Return the figures where only samples with a score from ``threshold`` on count as decided."""
        return threshold_figures(self.labels, self.predicted, self.scores, self.class_names, threshold)

    def curves(self, class_index: int, points: int) -> dict[str, Any]:
        """Return precision, recall and rates of one class over its thresholds; samples without a label are left out.

        ``exact`` is False where the probabilities of all classes were too many to be kept: then a class that was not
        among the best of a sample counts with 0.
        """
        self._check_class(class_index)
        kept = self._curves.get((class_index, points))  # a page asks for those of all classes at each threshold
        if kept is None:
            known = self.labels >= 0
            scores, is_exact = self._class_scores(class_index)
            found = class_curves(scores[known], self.labels[known] == class_index, points)
            if len(self._curves) >= _KEPT_CURVES:
                self._curves.clear()
            kept = self._curves[class_index, points] = {**found, "exact": is_exact}
        return kept

    # ---- samples

    def select(self, chosen: SampleFilter) -> np.ndarray:
        """Return the places of the samples that a filter leaves, in its order."""
        for number in (chosen.label, chosen.predicted):
            if number is not None and number != -1:
                self._check_class(number)
        left = ~((self.scores < chosen.min_score) | (self.scores > chosen.max_score))  # NaN is left
        if chosen.label is not None:
            left &= self.labels == chosen.label
        if chosen.predicted is not None:
            left &= self.predicted == chosen.predicted
        if chosen.only:
            left &= self._wrong if chosen.only == "wrong" else self._right
        places = np.flatnonzero(left)
        return places if chosen.order == "row" else places[self._ranks(chosen.order, places)]

    def surest_of_class(self, class_index: int, limit: int) -> np.ndarray:
        """Return the places of the samples with the highest score of a class, in falling order."""
        self._check_class(class_index)
        scores = np.nan_to_num(self._class_scores(class_index)[0], nan=-1.0)
        if limit < len(scores):
            least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
            places = np.flatnonzero(scores >= least)
        else:
            places = np.arange(len(scores))
        return places[np.argsort(-scores[places], kind="stable")][:limit]

    def samples(self, places: np.ndarray) -> list[dict[str, Any]]:
        """Return ``split``, ``row``, ``key``, ``label``, ``predicted``, ``score`` and ``top`` of samples."""
        names, split = self.class_names, self.split
        columns = (self.rows, self.labels, self.predicted, self.scores, *self._top)
        return [
            {
                "split": split,
                "row": row,
                "key": key,
                "label": label if label >= 0 else None,
                "predicted": predicted,
                "score": score,
                "top": [
                    {"class": number, "name": names[number], "score": one}
                    for number, one in zip(best, best_scores, strict=True)
                ],
            }
            for key, row, label, predicted, score, best, best_scores in zip(
                self.keys(places.tolist()), *(column[places].tolist() for column in columns), strict=True
            )
        ]

    def place_of_row(self, row: int) -> int:
        """Return the place of the sample of a row; rows rise.

        Raises:
            UsageError: where there is none.
        """
        place = self.known_place(row)
        if place is None:
            raise UsageError("A row is that of a sample that was predicted for.", received=str(row))
        return place

    def known_place(self, row: int) -> int | None:
        """Return the place of the sample of a row; None where nothing was predicted for it."""
        place = int(np.searchsorted(self.rows, row))
        return place if place < len(self) and self.rows[place] == row else None

    def changed(self, other: Predictions) -> dict[Changed, np.ndarray]:
        """Return the places of the samples that a second model got right, got wrong, or still gets wrong.

        Raises:
            JobError: where the second one is not of the same samples.
        """
        for name, word in (("split", "split"), ("data", "dataset"), ("samples_digest", "samples")):
            if self.summary.get(name) != other.summary.get(name):
                shown = "other rows" if name == "samples_digest" else f"{self.summary[name]} and {other.summary[name]}"
                raise JobError(f"Evaluations are compared that have the same {word}.", received=shown)
        return {
            "fixed": np.flatnonzero(self._wrong & other._right),
            "broken": np.flatnonzero(self._right & other._wrong),
            "still_wrong": np.flatnonzero(self._wrong & other._wrong),
        }

    # ---- within

    def _ranks(self, order: Order, places: np.ndarray) -> np.ndarray:
        scores = self.scores[places]
        if order == "surest_wrong":
            return np.lexsort((-scores, ~self._wrong[places]))
        known = self.label_scores[places]
        hardness = np.where(np.isnan(known), scores, known)
        return np.argsort(np.nan_to_num(hardness, nan=0.0), kind="stable")

    def _class_scores(self, class_index: int) -> tuple[np.ndarray, bool]:
        """Return (N) probabilities of a class, and whether they are all known."""
        if self._files.array("class_scores").exists():
            return np.asarray(self._mapped("class_scores")[:, class_index]), True
        classes, scores = self._top
        return np.where(np.asarray(classes) == class_index, scores, np.float32(0)).max(axis=1), False

    def _check_class(self, class_index: int) -> None:
        if not 0 <= class_index < len(self.class_names):
            raise UsageError(f"A class has a number from 0 to {len(self.class_names) - 1}.", received=str(class_index))

    def _whole(self, name: str) -> np.ndarray:
        return np.array(self._mapped(name))

    def _mapped(self, name: str) -> np.ndarray:
        if not self.summary["classifier"]:
            raise JobError("This needs a network that classifies.", received="one that gives something else")
        path = self._files.array(name)
        try:
            mode: Any = "r" if self.summary["count"] else None  # what is empty cannot be mapped
            return np.load(path, mmap_mode=mode, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise StorageError(f"The results in {path.parent} must be whole.", received=str(error)) from error


def _between(file: IO[bytes], begin: int, end: int) -> bytes:
    file.seek(begin)
    return file.read(end - begin)


def prediction_table(predictions: Predictions, table_format: TableFormat) -> Iterator[bytes]:
    """Yield the table part by part.

    CSV has a line for each sample: split, row, key, the names and numbers of label and predicted class, the score, and
    class and score of each of the best. A text that a spreadsheet would take for a formula gets an apostrophe in front.
    JSON is a list of the samples as ``Predictions.samples`` has them; NaN is the text ``NaN`` there.

    Args:
        predictions: of the job.
        table_format: ``csv`` or ``json``.
    """
    parts = (
        predictions.samples(np.arange(start, min(start + _AT_ONCE, len(predictions))))
        for start in range(0, len(predictions), _AT_ONCE)
    )
    return _csv(predictions, parts) if table_format == "csv" else _json(parts)


def _csv(predictions: Predictions, parts: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    names = predictions.class_names
    best = range(1, 1 + predictions.top)
    titles = ["split", "row", "key", "label", "label_name", "predicted", "predicted_name", "score"]
    titles += [title for number in best for title in (f"top_{number}_name", f"top_{number}_score")]
    yield _lines([titles])
    for samples in parts:
        yield _lines([_cells(sample, names) for sample in samples])


def _cells(sample: dict[str, Any], names: list[str]) -> list[Any]:
    label = sample["label"]
    cells = [
        sample["split"],
        sample["row"],
        _harmless(sample["key"]),
        "" if label is None else label,
        "" if label is None else _harmless(names[label]),
        sample["predicted"],
        _harmless(names[sample["predicted"]]),
        sample["score"],
    ]
    return cells + [cell for each in sample["top"] for cell in (_harmless(each["name"]), each["score"])]


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _lines(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


def _json(parts: Iterator[list[dict[str, Any]]]) -> Iterator[bytes]:
    yield b"["
    is_first = True
    for samples in parts:
        texts = (json.dumps(_sound(sample)) for sample in samples)
        yield (b"\n" if is_first else b",\n") + ",\n".join(texts).encode()
        is_first = False
    yield b"\n]\n"


def _sound(value: Any) -> Any:
    """Return JSON values: a number that JSON has no word for as its name."""
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN"
    if isinstance(value, dict):
        return {name: _sound(part) for name, part in value.items()}
    return [_sound(part) for part in value] if isinstance(value, list) else value
