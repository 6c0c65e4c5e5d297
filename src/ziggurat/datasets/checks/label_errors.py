"""Detection of probable label errors from the predictions of a trained network."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ziggurat.datasets.checks.facts import Facts
from ziggurat.datasets.checks.predictions import Predictions
from ziggurat.datasets.checks.report import Finding
from ziggurat.errors import DataError, MissingDependencyError

__all__ = ["check_labels"]

_KINDS = ("image-classification", "text-classification")


def check_labels(facts: Facts, predictions: Predictions) -> Iterator[Finding]:
    """Yield a finding on samples whose label is probably wrong, the least likely labels first.

    Confident learning (Northcutt, Jiang and Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels",
    2021), by the package ``cleanlab``.

    Raises:
        MissingDependencyError: where the package is not installed.
        DataError: where the kind of the dataset has no classes.
    """
    if facts.dataset.kind not in _KINDS:
        raise DataError("Labels are checked of sets that have a class a sample.", received=f"kind {facts.dataset.kind}")
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        raise MissingDependencyError("cleanlab", extra="labels", purpose="finding wrong labels") from None
    places = _places(facts, predictions)
    labels = facts.classes[places]
    usable = np.flatnonzero((labels >= 0) & (labels < predictions.probabilities.shape[1]))
    if not len(usable):
        return
    probabilities = predictions.probabilities[usable]
    probabilities = probabilities / np.maximum(probabilities.sum(axis=1, keepdims=True), 1e-12)
    found = np.asarray(
        find_label_issues(
            labels=labels[usable], pred_probs=probabilities, return_indices_ranked_by="self_confidence", n_jobs=1
        )
    )
    if not len(found):
        return
    doubtful = places[usable][found]
    notes = {}
    for place, number in zip(doubtful.tolist(), found[: facts.limits.most_cases].tolist(), strict=False):
        best = int(probabilities[number].argmax())
        share = probabilities[number, best]
        notes[place] = (
            f"labeled {_name(facts, int(facts.classes[place]))}, predicted {_name(facts, best)} ({share:.2f})"
        )
    yield facts.finding(
        "label-error",
        "warning",
        doubtful,
        f"{len(doubtful)} of {len(usable)} samples with predictions have a label that is probably wrong.",
        "Look at them and label them anew. Only predictions of a network that was not trained on a sample can tell.",
        notes=notes,
    )


def _places(facts: Facts, predictions: Predictions) -> np.ndarray:
    """Return the place of each predicted sample."""
    found = np.empty(len(predictions.rows), np.int64)
    splits = np.array([facts.dataset.splits.index(split) for split in predictions.splits], np.int64)
    for number in range(len(facts.dataset.splits)):
        own = np.flatnonzero(facts.splits == number)
        own = own[np.argsort(facts.rows[own])]
        asked = splits == number
        at = np.searchsorted(facts.rows[own], predictions.rows[asked])
        found[asked] = own[at]
    return found


def _name(facts: Facts, number: int) -> str:
    names = facts.dataset.schema.class_names
    return names[number] if number < len(names) else str(number)
