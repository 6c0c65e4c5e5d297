"""Use cases of operating points: choose the thresholds of a model on an evaluation, look at them, clear them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.entities.operating_point import (
    OperatingPoint,
    checkpoint_digest,
    read_operating_point,
    write_operating_point,
)
from ziggurat.errors import JobError, UnknownNameError, UsageError
from ziggurat.layout import JobFolder
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.tasks.threshold_choice import ThresholdFigures, ThresholdSamples
from ziggurat.workspace.studio.evaluations import Evaluations
from ziggurat.workspace.studio.jobs import Jobs

__all__ = ["OperatingPoints", "ThresholdChoice", "ThresholdRow"]

_SPLIT: Final = "val"
_SPLIT_WORDS: Final = {"test": "test", "train": "training"}


@dataclass(frozen=True, kw_only=True)
class ThresholdRow:
    """One threshold that may be chosen on an evaluation.

    Args:
        name: of the class, or ``confidence``.
        threshold: that is in force, or the default one.
        figures: precision, recall and F1 at it; None where the results do not tell.
        best: the same at the threshold with the best F1; None likewise, and without positives.
    """

    name: str
    threshold: float
    figures: ThresholdFigures | None
    best: ThresholdFigures | None


@dataclass(frozen=True, kw_only=True)
class ThresholdChoice:
    """What can be chosen on an evaluation.

    Args:
        rows: the thresholds; empty where the task has none.
        least: the smallest one that may be chosen.
        refusal: why nothing can be chosen on this evaluation, in one sentence; empty if it can.
        current: what ``OperatingPoints.of_model`` returns of the model.
    """

    rows: tuple[ThresholdRow, ...]
    least: float
    refusal: str
    current: Mapping[str, Any] | None


class OperatingPoints:
    """Operating points of the models of a studio: a file in the folder of each job.

    Args:
        jobs: of every kind.
        evaluations: on which they are chosen.
        clock: seconds since 1970.
    """

    def __init__(self, jobs: Jobs, evaluations: Evaluations, clock: Callable[[], float]) -> None:
        self._jobs = jobs
        self._evaluations = evaluations
        self._clock = clock

    def of_model(self, model_id: str) -> dict[str, Any] | None:
        """Return the operating point of a model, for the checkpoint that answers by default; None if none was chosen.

        Returns:
            ``thresholds`` (name → number), ``used``, ``problem`` (why it is not used, in one sentence; else empty),
            ``checkpoint``, ``step``, ``dataset`` (SHA-256 of its manifest), ``evaluation``, ``created``, ``owner``.

        Raises:
            JobError: where there is no such training.
            StorageError: where its file is damaged.
        """
        job = JobFolder(Path(self._jobs.of_kind(model_id, "train").folder))
        point = read_operating_point(job)
        if point is None:
            return None
        best = best_checkpoint(job)
        name = "" if best is None else best.checkpoint.name
        problem = point.problem(name, checkpoint_digest(job, name))
        if problem and name != point.checkpoint:
            problem = (
                f"The operating point was chosen on {point.checkpoint}; the best checkpoint is {name or 'gone'} now, "
                "and is used without it. Evaluate it on the validation split, and choose again."
            )
        return {**point.document(problem), "created": point.created, "owner": point.owner}

    def choice(self, evaluation_id: str) -> ThresholdChoice:
        """Return what can be chosen on an evaluation, and what is in force.

        Raises:
            JobError: where it is no evaluation that is done.
        """
        job = self._jobs.get(evaluation_id)
        results = self._evaluations.results(evaluation_id)
        names = _names(results)
        try:
            current = self.of_model(str(job.parent)) if job.parent else None
        except JobError:
            current = None  # the model was deleted
        chosen = dict(current["thresholds"]) if current else {}
        samples: Sequence[ThresholdSamples | None] = results.threshold_samples or [None] * len(names)
        least = results.task.least_threshold
        rows = []
        for name, each in zip(names, samples, strict=True):
            threshold = chosen.get(name, results.task.default_threshold)
            figures, best = (None, None) if each is None else (each.at(threshold), each.best(least))
            rows.append(ThresholdRow(name=name, threshold=threshold, figures=figures, best=best))
        return ThresholdChoice(
            rows=tuple(rows), least=least, refusal=self._refusal(job, bool(rows), results.summary), current=current
        )

    def set(
        self,
        model_id: str,
        *,
        evaluation: str = "",
        threshold: float | None = None,
        thresholds: Mapping[str, float] | None = None,
        owner: str = "",
    ) -> dict[str, Any]:
        """Choose the thresholds that predictions of a model obey; return them as ``of_model`` does.

        Args:
            model_id: of a training.
            evaluation: id of its evaluation on the validation split that they are chosen on; empty for the newest one.
            threshold: of everything that ``thresholds`` does not name.
            thresholds: name of a class → threshold; classes that are named nowhere get the default one of the task.
            owner: name of who asks.

        Raises:
            JobError: where there is no such training, or no evaluation that thresholds can be chosen on.
            UnknownNameError: where a name is none of a class.
            UsageError: where a threshold is no number from 0 to 1, or below the least one of the task.
            StorageError: where it cannot be written.
        """
        model = self._jobs.of_kind(model_id, "train")
        job = self._jobs.get(evaluation) if evaluation else self._newest(model.id)
        if job.parent != model.id:
            raise JobError(f"The evaluation {evaluation} is of another model.", advice="Name one of this model.")
        results = self._evaluations.results(job.id)
        learned, summary = results.task, results.summary
        names = _names(results)
        refusal = self._refusal(job, bool(names), summary)
        if refusal:
            raise JobError(refusal, received=job.id, details={"field": "evaluation"})
        given = dict(thresholds or {})
        for name in given:
            if name not in names:
                raise UnknownNameError("class with a threshold", name, names)
        if not given and threshold is None:
            raise UsageError(
                "No threshold is given: an operating point needs one.", advice="Such as 0.7, or one for each class."
            )
        usual = learned.default_threshold if threshold is None else threshold
        values = tuple(float(given.get(name, usual)) for name in names)
        for name, value in zip(names, values, strict=True):
            if not learned.least_threshold <= value <= 1:
                raise UsageError(
                    f"The threshold {value:g} for {name} is not a number from {learned.least_threshold:g} to 1.",
                    details={"field": "thresholds"},
                )
        folder, checkpoint = JobFolder(Path(model.folder)), str(summary["checkpoint"])
        digest = checkpoint_digest(folder, checkpoint)
        if not digest:
            raise JobError(
                f"The checkpoint {checkpoint} of the evaluation {job.id} is gone.",
                advice="Evaluate the best checkpoint, and choose on that.",
            )
        point = OperatingPoint(
            names=names,
            thresholds=values,
            checkpoint=checkpoint,
            step=int(summary["step"]),
            digest=digest,
            dataset=_manifest_id(str(self._evaluations.summary(job.id)["data"])),
            evaluation=job.id,
            created=self._clock(),
            owner=owner,
        )
        write_operating_point(folder, point)
        found = self.of_model(model_id)
        assert found is not None
        return found

    def clear(self, model_id: str) -> None:
        """Remove the operating point of a model; predictions follow the defaults of the task again.

        Raises:
            JobError: where there is no such training.
            StorageError: where the file cannot be removed.
        """
        write_operating_point(JobFolder(Path(self._jobs.of_kind(model_id, "train").folder)), None)

    # ---- within

    def _newest(self, model_id: str) -> Job:
        for job in self._evaluations.of_model(model_id):
            if job.kind == "evaluate" and job.state == "done" and job.spec.get("split") == _SPLIT:
                return job
        raise JobError(
            f"The model {model_id} has no evaluation of the validation split, on which thresholds are chosen.",
            advice="Evaluate it first: ziggurat evaluate --studio JOB --split val.",
            details={"field": "evaluation"},
        )

    def _refusal(self, job: Job, has_thresholds: bool, summary: Mapping[str, Any]) -> str:
        if job.kind != "evaluate":
            return "Thresholds are chosen on an evaluation of the validation split; these are predictions for images."
        if not has_thresholds:
            return "Predictions of this task follow no threshold."
        if job.spec.get("split") != _SPLIT:
            words = _SPLIT_WORDS.get(str(job.spec.get("split")), str(job.spec.get("split")))
            return (
                f"Thresholds are chosen on the validation split; this evaluation is on the {words} split, "
                "whose figures would no longer be independent of them."
            )
        return ""


def _names(results: Any) -> tuple[str, ...]:
    """Return what has a threshold in the predictions that were evaluated; empty for nothing."""
    has_any = results.task.has_thresholds(results.summary)
    return results.task.threshold_names(results.class_names) if has_any else ()


def _manifest_id(data: str) -> str:
    """Return the SHA-256 of the manifest of a dataset; empty for data that is no dataset, or is gone."""
    place = Path(data)
    return Manifest.load(place).id if (place / MANIFEST_NAME).is_file() else ""
