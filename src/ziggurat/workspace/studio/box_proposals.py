"""Proposed boxes of an image: what a detection model finds in it, for people who correct boxes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.entities import Job
from ziggurat.errors import JobError, UnknownNameError, ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.workspace.studio.datasets import StudioDatasets
from ziggurat.workspace.studio.evaluations import Evaluations
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.models import Models

__all__ = ["BoxProposals", "EvaluationProposals", "ModelProposals", "Proposal", "ProposalProvider", "ProposalSource"]

_TASK: Final = "detection"
_MOST_SOURCES: Final = 20
_LEAST_PX: Final = 1e-3
_LEAST_SCORE: Final = 0.05


@dataclass(frozen=True, kw_only=True)
class ProposalSource:
    """Where proposals come from.

    Args:
        id: under which it is asked.
        title: for people.
    """

    id: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One box that a model found.

    Args:
        class_number: of the dataset, from 0.
        box: left, top, right, bottom in px of the stored image.
        score: from 0 to 1.
    """

    class_number: int
    box: tuple[float, float, float, float]
    score: float

    def as_json(self) -> dict[str, Any]:
        """Return ``class``, ``box`` and ``score``."""
        return {"class": self.class_number, "box": list(self.box), "score": self.score}


class ProposalProvider(Protocol):
    """Something that finds boxes in the images of a dataset."""

    def sources(self, job_id: str, split: str) -> Iterable[ProposalSource]:
        """Return what can be asked for the images of a split of a dataset, the newest first."""
        ...

    def proposals(self, source_id: str, job_id: str, split: str, row: int) -> list[Proposal] | None:
        """Return the boxes that a source finds in an image, best first; None where the source is of another provider.

        Raises:
            JobError: where the source cannot answer.
        """
        ...


class BoxProposals:
    """The proposals of several providers.

    Args:
        providers: the first that knows a source answers.
    """

    def __init__(self, providers: Sequence[ProposalProvider]) -> None:
        self._providers = tuple(providers)

    def sources(self, job_id: str, split: str) -> list[ProposalSource]:
        """Return what can be asked for the images of a split of a dataset."""
        return [each for provider in self._providers for each in provider.sources(job_id, split)]

    def proposals(self, source_id: str, job_id: str, split: str, row: int) -> list[Proposal]:
        """Return the boxes that a source finds in an image, best first.

        Args:
            source_id: of one of ``sources``; empty for the first.
            job_id: of the dataset.
            split: of the image.
            row: of the image in its split.

        Raises:
            UnknownNameError: where there is no such source.
            JobError: where there is none at all, or it cannot answer.
            MissingEntryError: where there is no such image.
        """
        known = self.sources(job_id, split)
        if not known:
            raise JobError(
                "No detection model is trained on this dataset and done, and boxes are proposed by one.",
                advice="Train one first, and evaluate it on this split.",
            )
        chosen = source_id or known[0].id
        if chosen in [each.id for each in known]:
            for provider in self._providers:
                found = provider.proposals(chosen, job_id, split, row)
                if found is not None:
                    return sorted(found, key=lambda each: -each.score)
        raise UnknownNameError("source of proposals", chosen, [each.id for each in known])


class EvaluationProposals:
    """Boxes that evaluations of the dataset kept.

    Args:
        jobs: of every kind.
        evaluations: and their results.
        datasets: of the studio.
    """

    _PREFIX: Final = "evaluation/"

    def __init__(self, jobs: Jobs, evaluations: Evaluations, datasets: StudioDatasets) -> None:
        self._jobs = jobs
        self._evaluations = evaluations
        self._datasets = datasets

    def sources(self, job_id: str, split: str) -> list[ProposalSource]:
        """Return the evaluations of detection models on a split, the newest first."""
        models = {job.id: job for job in self._jobs.dependents(job_id) if job.kind == "train"}
        found = [
            (job, models[job.parent])
            for model in models
            for job in self._evaluations.of_model(model)
            if job.kind == "evaluate" and job.state == "done" and job.spec.get("split") == split
        ]
        newest = sorted(found, key=lambda pair: pair[0].created, reverse=True)[:_MOST_SOURCES]
        return [
            ProposalSource(id=self._PREFIX + job.id, title=f"{model.name or model.id}, evaluation on {split}")
            for job, model in newest
            if self._is_of(job, job_id)
        ]

    def proposals(self, source_id: str, job_id: str, split: str, row: int) -> list[Proposal] | None:
        """Return the boxes that an evaluation kept of an image."""
        if not source_id.startswith(self._PREFIX):
            return None
        found = self._evaluations.results(source_id.removeprefix(self._PREFIX))
        place = found.known_place(row)
        with self._datasets.opened(job_id) as dataset:
            size = _stored_size(dataset, split, row)
            if place is None:
                return []
            rows = np.asarray(found.task_arrays["detections"][place], np.float64)
            height, width = np.asarray(found.task_arrays["size"][place], np.float64).tolist()
            boxes = [
                (found.class_names[int(each[5])], each[:4].tolist(), float(each[4]))
                for each in rows
                if each[4] >= _LEAST_SCORE
            ]
            return _of_dataset(boxes, (width, height), dataset, size)

    def _is_of(self, job: Job, job_id: str) -> bool:
        try:
            found = self._evaluations.results(job.id)
            kept = found.task_name == _TASK and {"detections", "size"} <= set(found.task_arrays)
            return kept and self._evaluations.summary(job.id)["dataset"] == job_id
        except (ZigguratError, KeyError):  # damaged, or deleted at this moment
            return False


class ModelProposals:
    """Boxes that a warm process predicts for the image.

    Args:
        jobs: of every kind.
        models: that predict.
        datasets: of the studio.
    """

    _PREFIX: Final = "model/"

    def __init__(self, jobs: Jobs, models: Models, datasets: StudioDatasets) -> None:
        self._jobs = jobs
        self._models = models
        self._datasets = datasets

    def sources(self, job_id: str, split: str) -> list[ProposalSource]:
        """Return the detection models that were trained on the dataset, or on a version that it came from."""
        versions = [note.folder.name for note in self._datasets.versions(job_id) if note.folder is not None]
        jobs = {job.id: job for each in self._jobs.some(versions) for job in self._jobs.dependents(each)}
        trained = [job for job in jobs.values() if job.kind == "train" and job.state == "done" and _detects(job)]
        newest = sorted(trained, key=lambda job: job.created, reverse=True)[:_MOST_SOURCES]
        return [ProposalSource(id=self._PREFIX + job.id, title=f"{job.name or job.id}, predicts now") for job in newest]

    def proposals(self, source_id: str, job_id: str, split: str, row: int) -> list[Proposal] | None:
        """Return the boxes that a model predicts for an image."""
        if not source_id.startswith(self._PREFIX):
            return None
        content = self._datasets.picture(job_id, split, row)
        answer = self._models.predict(source_id.removeprefix(self._PREFIX), [(f"{split}-{row}.png", content)])
        if not answer["predictions"]:
            raise JobError(
                "A model predicts for images that can be read.",
                received=str(next((each.get("message") for each in answer["failures"]), "no prediction")),
            )
        found: Mapping[str, Any] = answer["predictions"][0]
        if "boxes" not in found:
            raise JobError(f"The network gives {', '.join(found)} and no boxes.")
        with self._datasets.opened(job_id) as dataset:
            height, width = found["size"]
            boxes = [(str(each["class"]), list(each["box"]), float(each["score"])) for each in found["boxes"]]
            return _of_dataset(boxes, (width, height), dataset, _stored_size(dataset, split, row))


def _stored_size(dataset: Dataset, split: str, row: int) -> tuple[int, int]:
    """Return (width, height) of a stored image; it is decoded where nothing else tells."""
    found = dataset.stored_size(dataset.entry(split, row))
    if found is not None:
        return found
    height, width = dataset.picture(split, row).shape[:2]
    return width, height


def _of_dataset(
    boxes: Iterable[tuple[str, Sequence[float], float]],
    seen: tuple[float, float],
    dataset: Dataset,
    stored: tuple[int, int],
) -> list[Proposal]:
    """Return boxes as the dataset writes them; those of classes that it has not, and beside the image, are left out.

    Args:
        boxes: name of the class, sides in px of the image that the model saw, and score.
        seen: width and height of that image.
        dataset: whose image it is.
        stored: width and height of the stored image.
    """
    numbers = {name: number for number, name in enumerate(dataset.schema.class_names)}
    limits = np.array([*stored, *stored], np.float64)
    scale = limits / np.array([*seen, *seen], np.float64)
    found = []
    for name, sides, score in boxes:
        left, top, right, bottom = np.clip(np.asarray(sides, np.float64) * scale, 0, limits).round(2).tolist()
        if name in numbers and right - left > _LEAST_PX and bottom - top > _LEAST_PX:
            found.append(Proposal(class_number=numbers[name], box=(left, top, right, bottom), score=score))
    return found


def _detects(job: Job) -> bool:
    try:
        content = json.loads(JobFolder(Path(job.folder)).task.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and content.get("task") == _TASK
