"""Differences between two evaluations: samples that changed, labels that changed, and the difference of the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, get_args

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.errors import JobError, UsageError
from ziggurat.tasks.classification_metrics import mcnemar_p_value, paired_difference_interval
from ziggurat.workspace.studio.predictions import Predictions
from ziggurat.workspace.studio.sample_pairs import FolderOf, SamplePairs, pair_samples
from ziggurat.workspace.studio.score_changes import ScoreChange, ScoreVerdict, score_change

__all__ = ["Difference", "EvaluationDifferences"]

Difference = Literal[
    "fixed", "broken", "still_wrong", "better", "worse", "equal", "label_changed", "only_first", "only_second"
]
"""What samples are chosen by: of a classifier the first three, else the next three, of two datasets also the others."""

_UNKNOWN: Final = -2
"""In place of the number of a class that the other evaluation does not have."""


class EvaluationDifferences:
    """How a second evaluation differs from a first one.

    Args:
        first: results of an evaluation.
        second: results of another one, of the same samples or of another version of the dataset.
        folder_of: where their data is.

    Raises:
        JobError: where they cannot be compared; the message says why.
    """

    def __init__(self, first: Predictions, second: Predictions, folder_of: FolderOf) -> None:
        self._first = first
        self._second = second
        self._folder_of = folder_of
        self.pairs: SamplePairs = pair_samples(first, second, folder_of)

    def document(self, which: Difference | None, margin: float | None, part: slice) -> dict[str, Any]:
        """Return the differences as ``Evaluations.differences`` gives them.

        Args:
            which: samples that are listed; None for the first list.
            margin: of the score, up to which it is equal; None for the default.
            part: of the list.

        Raises:
            JobError: where the task gives no score for each sample.
            UsageError: where there is no such list.
        """
        if self._first.is_classifier:
            figures, places, scores = self._outcomes(), self._changed, None
        else:
            scores = self._score_change(margin)
            figures, places = _score_figures(scores), {name: scores.places[name] for name in get_args(ScoreVerdict)}
        lists = {**places, **self._of_versions()}
        chosen = _known(which, lists)
        return {
            "counts": {name: len(found) for name, found in lists.items()},
            **figures,
            # The page of an evaluation asks for counts alone, and must not wait for this.
            **({"changes": self._changes_inside} if scores is not None and part.stop > part.start else {}),
            "versions": self._versions(),
            "total": len(lists[chosen]),
            "samples": self._samples(chosen, lists[chosen][part], scores),
        }

    # ---- figures

    @cached_property
    def _changed(self) -> Mapping[str, np.ndarray]:
        """Return the numbers of the pairs whose outcome changed, or is wrong in both."""
        first, second = self._first, self._second
        right, wrong = first.right[self.pairs.first], first.wrong[self.pairs.first]
        then_right, then_wrong = second.right[self.pairs.second], second.wrong[self.pairs.second]
        return {
            "fixed": np.flatnonzero(wrong & then_right),
            "broken": np.flatnonzero(right & then_wrong),
            "still_wrong": np.flatnonzero(wrong & then_wrong),
        }

    def _outcomes(self) -> dict[str, Any]:
        fixed, broken, still = (len(self._changed[name]) for name in ("fixed", "broken", "still_wrong"))
        pairs = self.pairs
        both = int((self._first.right[pairs.first] & self._second.right[pairs.second]).sum())
        count = both + fixed + broken + still
        interval = paired_difference_interval(both, broken, fixed, still)
        accuracy = None
        if interval is not None:
            accuracy = {
                "samples": count,
                "first": (both + broken) / count,
                "second": (both + fixed) / count,
                "difference": (fixed - broken) / count,
                "interval": interval,
                "first_by_second_labels": self._first_by_second_labels() if pairs.is_joined else None,
            }
        return {"p_value": mcnemar_p_value(fixed, broken), "accuracy": accuracy}

    def _first_by_second_labels(self) -> float | None:
        """Return the share of the first predictions that agree with the labels of the second dataset."""
        known = self._second.labels[self.pairs.second] >= 0
        known &= self._first.labels[self.pairs.first] >= 0
        if not known.any():
            return None
        numbers = {name: number for number, name in enumerate(self._second.class_names)}
        translated = np.array([numbers.get(name, _UNKNOWN) for name in self._first.class_names], np.int64)
        predicted = translated[self._first.predicted[self.pairs.first]]
        return float((predicted == self._second.labels[self.pairs.second])[known].mean())

    def _score_change(self, margin: float | None) -> ScoreChange:
        first, second = self._first.task_scores, self._second.task_scores
        if first is None or second is None:
            raise JobError(
                f"The evaluations are of the task `{self._first.task_name}`, which gives no score of each "
                "sample to compare."
            )
        return score_change(first[self.pairs.first], second[self.pairs.second], margin)

    @cached_property
    def _changes_inside(self) -> Mapping[str, int]:
        """Return what the task counts inside of the samples that both have."""
        first, second = self._first, self._second
        if not first.sample_fields or not second.sample_fields or first.class_names != second.class_names:
            return {}
        places = (self.pairs.first, self.pairs.second)
        return first.task.sample_changes(first.prepared, second.prepared, places, first.checked({}))

    def _of_versions(self) -> dict[str, np.ndarray]:
        pairs = self.pairs
        if not pairs.is_joined:
            return {}
        changed = {} if pairs.label_changed is None else {"label_changed": np.flatnonzero(pairs.label_changed)}
        return {**changed, "only_first": pairs.only_first, "only_second": pairs.only_second}

    def _versions(self) -> dict[str, Any] | None:
        pairs = self.pairs
        if not pairs.is_joined:
            return None
        changed = None if pairs.label_changed is None else int(pairs.label_changed.sum())
        return {"common": len(pairs), "label_changed": changed, "unmatched": pairs.unmatched}

    # ---- samples

    def _samples(self, which: str, numbers: np.ndarray, scores: ScoreChange | None) -> list[dict[str, Any]]:
        if which in ("only_first", "only_second"):
            return (self._first if which == "only_first" else self._second).samples(numbers)
        ours, theirs = self.pairs.first[numbers], self.pairs.second[numbers]
        one, other = self._first.samples(ours), self._second.samples(theirs)
        if scores is None:
            found = [self._both_classified(*pair) for pair in zip(one, other, strict=True)]
        else:
            gaps = scores.gaps[numbers].tolist()
            found = [self._both_scored(*pair) for pair in zip(one, other, gaps, strict=True)]
            if which == "label_changed":
                before, after = self._labels(self._first, one), self._labels(self._second, other)
                labels = zip(before, after, strict=True)
                names = ("label_before", "label_after")
                found = [each | dict(zip(names, pair, strict=True)) for each, pair in zip(found, labels, strict=True)]
        return found

    def _both_classified(self, one: dict[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
        second = {name: other[name] for name in ("predicted", "score", "top")}
        if not self.pairs.is_joined:
            return {**one, "second": second}
        before, after = _class(self._first, one["label"]), _class(self._second, other["label"])
        predicted, then = _class(self._first, one["predicted"]), _class(self._second, other["predicted"])
        return {
            **one,
            "label_before": before,
            "label_after": after,
            "prediction_changed": predicted != then,
            "second": {**second, **{name: other[name] for name in ("row", "key", "label")}, "predicted_name": then},
        }

    def _both_scored(self, one: dict[str, Any], other: Mapping[str, Any], gap: float) -> dict[str, Any]:
        more = ("row", "key") if self.pairs.is_joined else ()
        second = {name: other[name] for name in ("score", "values", *more)}
        return {**one, "difference": gap if np.isfinite(gap) else None, "second": second}

    def _labels(self, found: Predictions, samples: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Return the labels of samples as the dataset has them; classes by their names."""
        with Dataset(self._folder_of(found)) as dataset:
            names = dataset.schema.class_names
            labels: list[Any] = [dataset.entry(each["split"], each["row"]).label for each in samples]
            return [names[each] if type(each) is int and 0 <= each < len(names) else each for each in labels]


def _score_figures(change: ScoreChange) -> dict[str, Any]:
    return {name: getattr(change, name) for name in ("margin", "mean", "interval", "unknown")}


def _class(found: Predictions, number: int | None) -> str | None:
    return None if number is None else found.class_names[number]


def _known(which: str | None, lists: Mapping[str, Any]) -> str:
    for name in lists:
        if which in (None, name):
            return name
    raise UsageError("Samples of these evaluations are chosen by " + ", ".join(lists) + ".", received=str(which))
