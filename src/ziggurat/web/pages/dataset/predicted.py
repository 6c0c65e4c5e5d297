"""Predictions of a model for the samples of a dataset, from its newest evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job, JobFilter
from ziggurat.errors import ZigguratError
from ziggurat.workspace.studio import Studio

__all__ = ["DOUBTFUL", "Predicted", "SamplePrediction", "predicted_of"]

DOUBTFUL: Final = 0.8
"""Score from which on a wrong prediction makes the label doubtful."""

_EVALUATIONS: Final = 50


@dataclass(frozen=True, kw_only=True)
class SamplePrediction:
    """What a model predicted for one sample.

    Args:
        name: of the class.
        score: its probability.
        is_right: whether it is the label; None where the label is not known.
        top: name and probability of the best classes.
    """

    name: str
    score: float
    is_right: bool | None
    top: Sequence[tuple[str, float]]


class Predicted:
    """What one model predicted, by split.

    Args:
        studio: where the evaluations are.
        model: the training that they evaluate.
        evaluations: split → id of the evaluation.
    """

    def __init__(self, studio: Studio, model: Job, evaluations: Mapping[str, str]) -> None:
        self._studio = studio
        self.model = model
        self.evaluations = evaluations
        self.counts = dict.fromkeys(_CHOSEN, 0)

    def count(self) -> None:
        """Fill in ``counts``: right, wrong and doubtful predictions."""
        for job_id in self.evaluations.values():
            for name, chosen in _CHOSEN.items():
                self.counts[name] += self._studio.evaluations.samples(job_id, limit=0, order="row", **chosen)["total"]

    @property
    def model_name(self) -> str:
        """Name of the model."""
        return self.model.name or self.model.id

    @property
    def total(self) -> int:
        """Samples that were evaluated, once they are counted."""
        return self.counts["right"] + self.counts["wrong"]

    def numbers(self, which: str, firsts: Mapping[str, int]) -> list[int]:
        """Return catalog numbers of samples, the most confident wrong prediction first.

        Args:
            which: ``right``, ``wrong`` or ``doubtful``.
            firsts: split → number of its first sample.
        """
        chosen = _CHOSEN[which]
        return [
            firsts[split] + row
            for split, job_id in self.evaluations.items()
            for row in self._studio.evaluations.rows(job_id, order="surest_wrong", **chosen)
        ]

    def of(self, entries: Iterable[Any]) -> dict[int, SamplePrediction]:
        """Return number of an entry → what was predicted for it."""
        found: dict[int, SamplePrediction] = {}
        by_split: dict[str, list[Any]] = {}
        for entry in entries:
            by_split.setdefault(entry.split, []).append(entry)
        for split, some in by_split.items():
            if split not in self.evaluations:
                continue
            known = self._studio.evaluations.of_rows(self.evaluations[split], [entry.row for entry in some])
            found |= {entry.number: _shown(known[entry.row]) for entry in some if entry.row in known}
        return found


_CHOSEN: Final[Mapping[str, Mapping[str, Any]]] = {
    "right": {"only": "right"},
    "wrong": {"only": "wrong"},
    "doubtful": {"only": "wrong", "min_score": DOUBTFUL},
}


def predicted_of(studio: Studio, job_id: str, *, is_counted: bool = False) -> Predicted | None:
    """Return what the model of the newest evaluation of a dataset predicted; None where there is no evaluation.

    Args:
        studio: where the dataset is.
        job_id: of the dataset.
        is_counted: whether right and wrong predictions are counted: a list shows their numbers, a sample does not.
    """
    models = {job.id: job for job in studio.jobs.dependents(job_id) if job.kind == "train"}
    if not models:
        return None
    newest = studio.jobs.page(JobFilter(kinds=("evaluate",), states=("done",), limit=_EVALUATIONS)).jobs
    of_dataset = [job for job in newest if job.parent in models]
    if not of_dataset:
        return None
    model = models[of_dataset[0].parent]
    found: dict[str, str] = {}
    try:
        for job in of_dataset:
            split = str(job.spec.get("split", ""))
            if job.parent == model.id and split not in found and _is_of(studio, job, job_id):
                found[split] = job.id
        predicted = Predicted(studio, model, found) if found else None
        if predicted is not None and is_counted:
            predicted.count()
        return predicted
    except ZigguratError:  # damaged or deleted at this moment: the samples are shown without
        return None


def _is_of(studio: Studio, job: Job, dataset_id: str) -> bool:
    summary = studio.evaluations.summary(job.id)
    return bool(summary["classifier"]) and summary["dataset"] == dataset_id


def _shown(sample: Mapping[str, Any]) -> SamplePrediction:
    top = [(str(each["name"]), float(each["score"])) for each in sample["top"]]
    name = next((str(each["name"]) for each in sample["top"] if each["class"] == sample["predicted"]), "")
    return SamplePrediction(
        name=name,
        score=float(sample["score"]),
        is_right=None if sample["label"] is None else sample["label"] == sample["predicted"],
        top=top,
    )
