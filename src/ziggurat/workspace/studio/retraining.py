"""Retraining: the same training on another version of a dataset, with the evaluations that tell what changed."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import JobError, NotThereError, SpecError, UnknownNameError
from ziggurat.workspace.new_jobs import JobRequest, telling_name, train_spec
from ziggurat.workspace.studio.datasets import StudioDatasets
from ziggurat.workspace.studio.evaluations import Evaluations
from ziggurat.workspace.studio.jobs import Jobs, clone_request
from ziggurat.workspace.studio.training import Training

__all__ = ["Retraining", "Retrainings"]

_USABLE: Final = ("queued", "running", "done")
_SPLITS: Final = ("val", "test", "train")
_LONGEST_NAME: Final = 200
_MOST_VERSIONS: Final = 100


@dataclass(frozen=True, kw_only=True)
class Retraining:
    """A training on another version of the data, and the one that it is compared with.

    Args:
        former: the training that is repeated.
        model: the new one.
        former_evaluation: of the former one.
        evaluation: of the new one, on the same split; it waits for the training.
        is_new: whether the new training was made now; False where it was there already.
    """

    former: Job
    model: Job
    former_evaluation: Job
    evaluation: Job
    is_new: bool


class Retrainings:
    """Trainings that are repeated on another version of their dataset.

    Args:
        jobs: of every kind.
        datasets: the versions.
        training: makes trainings.
        evaluations: makes evaluations.
    """

    def __init__(self, jobs: Jobs, datasets: StudioDatasets, training: Training, evaluations: Evaluations) -> None:
        self._jobs = jobs
        self._datasets = datasets
        self._training = training
        self._evaluations = evaluations
        self._lock = threading.Lock()

    def former(self, dataset_id: str) -> Job | None:
        """Return the newest finished training of the versions that a dataset came from, of the nearest that has one."""
        for version in self._parents(dataset_id):
            done = [job for job in self._jobs.dependents(version) if job.kind == "train" and job.state == "done"]
            if done:
                return max(done, key=lambda job: (job.ended or 0.0, job.id))
        return None

    def find(self, dataset_id: str, model_id: str) -> Job | None:
        """Return the training of another one's spec on a dataset, the newest; None where there is none of use."""
        former = self._jobs.of_kind(model_id, "train")
        wanted = _comparable(former.spec)
        found = [
            job
            for job in self._jobs.dependents(dataset_id)
            if job.kind == "train" and job.id != former.id and job.state in _USABLE
            if _is_same(job.spec, wanted)
        ]
        return max(found, key=lambda job: (job.created, job.id), default=None)

    def known(self, dataset_id: str, model_id: str) -> Retraining | None:
        """Return the retraining that ``start`` would return without making anything; None where there is none."""
        model, former = self.find(dataset_id, model_id), self._jobs.of_kind(model_id, "train")
        if model is None:
            return None
        for after in self._usable(model):
            before = self._newest(former, str(after.spec["split"]))
            if before is not None:
                return Retraining(former=former, model=model, former_evaluation=before, evaluation=after, is_new=False)
        return None

    def start(
        self, dataset_id: str, *, model_id: str = "", evaluation_id: str = "", split: str = "", owner: str = ""
    ) -> Retraining:
        """Put the training of the same spec on a dataset into the queue, and its evaluation behind it.

        Where that training is there already, queued, running or done, no other one is made: the same spec on the same
        data gives the same network.

        Args:
            dataset_id: of a dataset that is done, such as a new version.
            model_id: of the training that is repeated; empty for that of the evaluation, else for ``former``.
            evaluation_id: of an evaluation of that training, with which the new one is compared; empty for the newest.
            split: of the evaluations; empty for that of the evaluation, else ``val``.
            owner: name of who asks.

        Raises:
            JobError: where there is no such dataset, training or evaluation, or the training was on that dataset.
            UnknownNameError: where the dataset has no such split.
            CheckpointError: where the former training has no checkpoint.
            ZigguratError: where the training cannot succeed; nothing was made.
        """
        self._datasets.folder(dataset_id)
        asked = self._evaluation(evaluation_id, model_id) if evaluation_id else None
        former = self._former(dataset_id, model_id or (str(asked.parent) if asked else ""))
        if dataset_id in former.depends_on:
            raise JobError(
                f"{former.id} was trained on {dataset_id}, and a training is repeated on another dataset than its own.",
                advice="Name a new version, or clone the training.",
            )
        if asked is not None and asked.state not in _USABLE:
            raise JobError(
                f"The evaluation {asked.id} is {asked.state}; to be compared it must be done, or be in the queue.",
                advice="Name another evaluation, or evaluate again.",
            )
        before = asked or self._newest(former, split)
        chosen = split or (str(before.spec["split"]) if before else "")
        with self._lock:  # two users, or a second click, get the training that the first one made
            chosen = self._checked_split(dataset_id, chosen)
            known = self.find(dataset_id, former.id)
            if known is None:
                self._training.check(self._request(former, dataset_id))
            if before is None or before.spec["split"] != chosen:
                before = self._newest(former, chosen) or self._evaluations.create(former.id, split=chosen, owner=owner)
            model = known or self._training.create(self._request(former, dataset_id), owner=owner)[0]
            after = self._newest(model, chosen) or self._evaluations.create(
                model.id, split=chosen, checkpoint=_rule(before), after_training=True, owner=owner
            )
        return Retraining(former=former, model=model, former_evaluation=before, evaluation=after, is_new=known is None)

    # ---- within

    def _parents(self, dataset_id: str) -> Iterator[str]:
        at = self._jobs.of_kind(dataset_id, "dataset")
        for _ in range(_MOST_VERSIONS):
            if not at.parent:
                return
            yield at.parent
            try:
                at = self._jobs.get(at.parent)
            except NotThereError:  # deleted since; the trainings on it may still be there
                return

    def _evaluation(self, evaluation_id: str, model_id: str) -> Job:
        found = self._jobs.of_kind(evaluation_id, "evaluate")
        if model_id and found.parent != model_id:
            raise JobError(
                "An evaluation is compared with that of the training that is repeated.",
                received=f"{evaluation_id}, of the training {found.parent}, and {model_id}",
            )
        return found

    def _former(self, dataset_id: str, model_id: str) -> Job:
        if model_id:
            return self._jobs.of_kind(model_id, "train")
        found = self.former(dataset_id)
        if found is None:
            raise JobError(
                f"There is no finished training of a version that {dataset_id} came from, so none can be repeated.",
                advice="Name the training, or start one on this dataset.",
            )
        return found

    def _newest(self, model: Job, split: str) -> Job | None:
        """Return the newest evaluation of a model on a split, or on any: one that is done, else one under way."""
        found = [job for job in self._usable(model) if split in ("", job.spec.get("split"))]
        return next((job for job in found if job.state == "done"), found[0] if found else None)

    def _usable(self, model: Job) -> list[Job]:
        return [job for job in self._evaluations.of_model(model.id) if job.kind == "evaluate" and job.state in _USABLE]

    def _checked_split(self, dataset_id: str, split: str) -> str:
        splits: Mapping[str, int] = self._datasets.describe(dataset_id)["splits"]
        if split and not splits.get(split):
            raise UnknownNameError("split of this data", split, [name for name, count in splits.items() if count])
        return split or next((name for name in _SPLITS if splits.get(name)), "train")

    def _request(self, former: Job, dataset_id: str) -> JobRequest:
        request = clone_request(self._jobs, former.id)
        dataset = self._jobs.get(dataset_id)
        is_named = former.name != telling_name(train_spec(former.spec))
        name = f"{former.name}, {dataset.name or dataset.id}"[:_LONGEST_NAME] if is_named else ""
        return dataclasses.replace(request, spec={**request.spec, "name": name}, dataset=dataset_id)


def _rule(evaluation: Job) -> str:
    """Return the name by which an evaluation chose its checkpoint, where another training has one of that name."""
    named = str(evaluation.spec.get("checkpoint", ""))
    return named if named in ("best", "latest") else ""


def _is_same(spec: Mapping[str, Any], wanted: Any) -> bool:
    """Return whether a training has a comparable spec; one that cannot be read any more has not."""
    try:
        return _comparable(spec) == wanted
    except SpecError:
        return False


def _comparable(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of a training's spec but its name and the place of its data.

    Raises:
        SpecError: where it is not valid.
    """
    content = train_spec(spec).model_dump(mode="json")
    content.pop("name", None)
    content["data"].pop("source", None)
    return content
