"""Results of an evaluation or prediction job: samples chosen and ordered, their figures, and a table of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final, Literal

import numpy as np

from ziggurat.errors import JobError, PluginError, StorageError, UnknownNameError, UsageError
from ziggurat.layout import ResultFiles
from ziggurat.tasks import Task, task
from ziggurat.tasks.classification_metrics import (
    NO_QUALITY,
    class_curves,
    class_figures,
    confusion_matrix,
    quality_measures,
    threshold_figures,
    top_share,
)
from ziggurat.tasks.report import Report
from ziggurat.tasks.sample_choice import SampleChoice, SampleField, checked_choice
from ziggurat.tasks.threshold_choice import ThresholdSamples

__all__ = ["Order", "Predictions", "SampleFilter"]

Order = Literal["hardest", "easiest", "surest_wrong", "row"]

_MANY_CLASSES: Final = 5
_KEPT_CURVES: Final = 256
_OF_CLASSES: Final = ("label_scores", "scores", "top_classes", "top_scores", "class_scores", "decided")
_OF_ROWS: Final = ("rows", "key_offsets")
_AGAIN: Final = "Evaluate again."


@dataclass(frozen=True, kw_only=True)
class SampleFilter:
    """Which samples, in which order.

    Args:
        label: class number of the truth; -1 for those whose label is not known, None for all.
        predicted: class number that the model chose; None for all.
        only: ``wrong`` or ``right``, of those whose label is known; empty for all.
        order: ``hardest`` (lowest probability of the label first; without labels, the least sure first),
            ``easiest``, ``surest_wrong`` (of a classifier: wrong ones first, by falling confidence) or ``row``.
        min_score: of a classifier, least probability of what the model chose; else least score of the task. None: any.
        max_score: largest.
        asked: fields of the task and their values, see ``Task.sample_fields``.
    """

    label: int | None = None
    predicted: int | None = None
    only: Literal["", "wrong", "right"] = ""
    order: Order = "hardest"
    min_score: float | None = None
    max_score: float | None = None
    asked: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_about_classes(self) -> bool:
        """Whether only results of a network that classifies can answer."""
        return self.label is not None or self.predicted is not None or bool(self.only) or self.order == "surest_wrong"


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
            raise StorageError(
                f"The results in {folder} cannot be read: {str(error).rstrip('.')}.", advice=_AGAIN
            ) from error
        missing = [name for name in ("split", "count", "classifier") if name not in self.summary]
        if missing:
            raise StorageError(f"The results in {folder} are not whole: no {', no '.join(missing)}.", advice=_AGAIN)
        self.is_classifier = bool(self.summary["classifier"])
        self.class_names: list[str] = list(self.summary.get("classes") or ())
        self.split: str = self.summary["split"]
        self._curves: dict[tuple[int, int], dict[str, Any]] = {}
        self._last_choice: tuple[dict[str, str], SampleChoice] | None = None

    # ---- task

    @property
    def task_name(self) -> str:
        """Name of the task of the network; that of results from before there were others."""
        return str(self.summary.get("task") or "classification")

    @cached_property
    def task(self) -> Task:
        """Task of the network.

        Raises:
            PluginError: where the package that brings it is not installed.
        """
        try:
            return task(self.task_name)
        except UnknownNameError:
            raise PluginError(
                f"The task `{self.task_name}` is not installed, and its package shows its results.",
                advice="Install that package and start the studio again.",
            ) from None

    @cached_property
    def has_samples(self) -> bool:
        """Whether there is anything about single samples."""
        return self._files.array("rows").exists()

    @cached_property
    def task_arrays(self) -> Mapping[str, np.ndarray]:
        """What the task keeps of each sample: name of the array → values; empty where it keeps nothing."""
        names = sorted(path.stem for path in self._files.path.glob("*.npy"))
        return {name: self._mapped(name) for name in names if name not in _OF_ROWS}

    @cached_property
    def task_scores(self) -> np.ndarray | None:
        """(N) float64 by which the task ranks samples, small ones are the worst; None where it ranks none."""
        found = self.task_arrays.get(self.task.ranked_by)
        return None if found is None else np.asarray(found, np.float64)

    # ---- samples that the task chooses

    @cached_property
    def sample_fields(self) -> Sequence[SampleField]:
        """Fields of the task that samples are chosen by; empty where there are none."""
        return self.task.sample_fields(self.summary) if self.has_samples and not self.is_classifier else ()

    def checked(self, asked: Mapping[str, Any]) -> dict[str, str]:
        """Return the value of each field: what was asked for, else its default.

        Raises:
            UnknownNameError: where there is no such field.
            UsageError: where a value cannot be.
        """
        return checked_choice(self.sample_fields, asked)

    @cached_property
    def prepared(self) -> Any:
        """What the task computes once of all samples."""
        return self.task.prepare_samples(self.summary, self.task_arrays)

    @cached_property
    def threshold_samples(self) -> Sequence[ThresholdSamples]:
        """What the thresholds of an operating point are chosen by; empty where the results do not tell."""
        return self.task.threshold_samples(self.summary, self.task_arrays) if self.has_samples else ()

    def choice(self, asked: Mapping[str, Any]) -> SampleChoice | None:
        """Return the samples that fields of the task leave; None where nothing but their defaults is asked for."""
        checked = self.checked(asked)
        if checked == {each.name: each.default for each in self.sample_fields}:
            return None
        last = self._last_choice
        if last is None or last[0] != checked:  # a list asks twice: for its places, and for their scores
            last = self._last_choice = (checked, self.task.choose_samples(self.prepared, checked))
        return last[1]

    def report(self, asked: Mapping[str, Any]) -> Report:
        """Return metrics, tables and charts, with what is asked for."""
        if any(each.is_of_report for each in self.sample_fields):
            return self.task.asked_report(self.summary, self.prepared, self.checked(asked))
        self.checked(asked)
        return self.task.report(self.summary, self.task_arrays if self.has_samples else {})

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
    def decided(self) -> np.ndarray | None:
        """(N) int32: class by the operating point that was obeyed, -1 for undecided; None if none was."""
        return self._whole("decided") if self._files.array("decided").exists() else None

    @cached_property
    def right(self) -> np.ndarray:
        """(N) bool: whether the model chose the label."""
        return self.labels == self.predicted

    @cached_property
    def wrong(self) -> np.ndarray:
        """(N) bool: whether it chose another class; of samples without a label it is neither right nor wrong."""
        return (self.labels >= 0) & ~self.right

    def __len__(self) -> int:
        """Return for how many samples there are results."""
        return len(self.rows) if self.is_classifier or self.has_samples else 0

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
        if not self.is_classifier or not (self.labels >= 0).any():
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
        if not self.is_classifier:
            return dict(NO_QUALITY)
        return quality_measures(
            self.labels, self.predicted, self.scores, self.label_scores, self._top[0], self.figures["per_class"]
        )

    def at_threshold(self, threshold: float) -> dict[str, Any]:
        """Return the figures where only samples with a score from ``threshold`` on count as decided."""
        self._check_classifier()
        return threshold_figures(self.labels, self.predicted, self.scores, self.class_names, threshold)

    def curves(self, class_index: int, points: int) -> dict[str, Any]:
        """Return precision, recall and rates of one class over its thresholds; samples without a label are left out.

        ``exact`` is False where the probabilities of all classes were too many to be kept: then a class that was not
        among the best of a sample counts with 0.
        """
        self._check_classifier()
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
        """Return the places of the samples that a filter leaves, in its order.

        Raises:
            JobError: where it is about classes, and the network does not classify.
            UsageError: where there is no such class.
        """
        if not self.is_classifier:
            return self._select_by_score(chosen)
        for number in (chosen.label, chosen.predicted):
            if number is not None and number != -1:
                self._check_class(number)
        left = _in_range(self.scores, chosen)
        if chosen.label is not None:
            left &= self.labels == chosen.label
        if chosen.predicted is not None:
            left &= self.predicted == chosen.predicted
        if chosen.only:
            left &= self.wrong if chosen.only == "wrong" else self.right
        places = np.flatnonzero(left)
        return places if chosen.order == "row" else places[_ranks(self, chosen.order, places)]

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

    def samples(self, places: np.ndarray, asked: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return ``split``, ``row``, ``key`` and ``score`` of samples, and what is known of each.

        That is ``label``, ``predicted`` and ``top`` where the network classifies, and ``decision`` (``class``,
        ``number``, ``threshold``) where it obeyed an operating point; else ``values``: array → value.

        Args:
            places: of the samples.
            asked: fields of the task that their score depends on.
        """
        if not self.is_classifier:
            return self._task_samples(places, asked or {}) if len(places) else []
        names, split = self.class_names, self.split
        columns = (self.rows, self.labels, self.predicted, self.scores, *self._top)
        found: list[dict[str, Any]] = [
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
        if self.decided is not None:
            (threshold,) = self.summary["operating_point"]["thresholds"].values()
            for each, number in zip(found, self.decided[places].tolist(), strict=True):
                known = number >= 0
                each["decision"] = {
                    "class": names[number] if known else None,
                    "number": number if known else None,
                    "threshold": threshold,
                }
        return found

    def place_of_row(self, row: int) -> int:
        """Return the place of the sample of a row; rows rise.

        Raises:
            UsageError: where there is none.
        """
        place = self.known_place(row)
        if place is None:
            raise UsageError(f"Row {row} is of no sample that was predicted for.")
        return place

    def known_place(self, row: int) -> int | None:
        """Return the place of the sample of a row; None where nothing was predicted for it."""
        place = int(np.searchsorted(self.rows, row))
        return place if place < len(self) and self.rows[place] == row else None

    # ---- within

    def _select_by_score(self, chosen: SampleFilter) -> np.ndarray:
        if chosen.is_about_classes:
            raise JobError(
                f"The results are of the task `{self.task_name}`; this needs a network that classifies.",
                advice="Filter by the score; order by `hardest`, `easiest` or `row`.",
            )
        if not self.has_samples:
            return np.zeros(0, np.int64)
        choice = self.choice(chosen.asked)
        scores = self._scores_of(choice)
        if scores is None:
            return np.arange(len(self)) if choice is None else np.flatnonzero(choice.kept)
        is_left = _in_range(scores, chosen)
        places = np.flatnonzero(is_left if choice is None else is_left & choice.kept)
        if chosen.order == "row":
            return places
        values = np.where(np.isnan(scores[places]), -np.inf, scores[places])  # no number at all is the worst
        return places[np.argsort(values if chosen.order == "hardest" else -values, kind="stable")]

    def _scores_of(self, choice: SampleChoice | None) -> np.ndarray | None:
        return self.task_scores if choice is None or choice.scores is None else choice.scores

    def _task_samples(self, places: np.ndarray, asked: Mapping[str, Any]) -> list[dict[str, Any]]:
        scores = self._scores_of(self.choice(asked))
        kept = {name: array[places].tolist() for name, array in self.task_arrays.items() if name != self.task.ranked_by}
        rows, keys = self.rows[places].tolist(), self.keys(places.tolist())
        return [
            {
                "split": self.split,
                "row": row,
                "key": key,
                "score": None if scores is None else float(scores[place]),
                "values": {name: values[number] for name, values in kept.items()},
            }
            for number, (place, row, key) in enumerate(zip(places.tolist(), rows, keys, strict=True))
        ]

    def _class_scores(self, class_index: int) -> tuple[np.ndarray, bool]:
        """Return (N) probabilities of a class, and whether they are all known."""
        if self._files.array("class_scores").exists():
            return np.asarray(self._mapped("class_scores")[:, class_index]), True
        classes, scores = self._top
        return np.where(np.asarray(classes) == class_index, scores, np.float32(0)).max(axis=1), False

    def _check_classifier(self) -> None:
        if not self.is_classifier:
            raise JobError("This needs a network that classifies.", received="one that gives something else")

    def _check_class(self, class_index: int) -> None:
        if not 0 <= class_index < len(self.class_names):
            raise UsageError(
                f"There is no class {class_index}: they have numbers from 0 to {len(self.class_names) - 1}."
            )

    def _whole(self, name: str) -> np.ndarray:
        return np.array(self._mapped(name))

    def _mapped(self, name: str) -> np.ndarray:
        if name in _OF_CLASSES:
            self._check_classifier()
        path = self._files.array(name)
        try:
            mode: Any = "r" if self.summary["count"] else None  # what is empty cannot be mapped
            return np.load(path, mmap_mode=mode, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise StorageError(
                f"The results in {path.parent} are damaged: {str(error).rstrip('.')}.", advice=_AGAIN
            ) from error


def _in_range(scores: np.ndarray, chosen: SampleFilter) -> np.ndarray:
    """Return whether each score is in the range of a filter; NaN is."""
    left = np.ones(len(scores), bool)
    if chosen.min_score is not None:
        left &= ~(scores < chosen.min_score)
    if chosen.max_score is not None:
        left &= ~(scores > chosen.max_score)
    return left


def _between(file: IO[bytes], begin: int, end: int) -> bytes:
    file.seek(begin)
    return file.read(end - begin)


def _ranks(found: Predictions, order: Order, places: np.ndarray) -> np.ndarray:
    if order == "easiest":
        return _ranks(found, "hardest", places)[::-1]
    scores = found.scores[places]
    if order == "surest_wrong":
        return np.lexsort((-scores, ~found.wrong[places]))
    known = found.label_scores[places]
    hardness = np.where(np.isnan(known), scores, known)
    return np.argsort(np.nan_to_num(hardness, nan=0.0), kind="stable")
