"""Previews for the new-model form: images, findings, and the job as command, JSON and Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import JobError, UsageError, ZigguratError
from ziggurat.specs import TrainSpec
from ziggurat.workspace.job_text import command_line, python_program, short_content, spec_document
from ziggurat.workspace.rate_curve import draft_of_training
from ziggurat.workspace.studio.new_jobs import JobRequest, expand_sweep, train_spec
from ziggurat.workspace.studio.preflight import Preflight
from ziggurat.workspace.tasks import Tasks
from ziggurat.zoo.backends import with_backend

__all__ = ["TrainingPreviews"]

_LIMIT_S: Final = 120.0
_MOST_PICTURES: Final = 100


class TrainingPreviews:
    """Looks at trainings that do not exist yet.

    Args:
        tasks: run what needs a process of its own.
        machine: what it has.
        get: gives the job of an id.
        finished: gives trainings that are done, the newest first.
    """

    def __init__(
        self, tasks: Tasks, machine: Any, get: Callable[[str], Job], finished: Callable[[], Sequence[Job]]
    ) -> None:
        self._tasks = tasks
        self._get = get
        self._preflight = Preflight(tasks, machine, finished)

    def augmented(
        self, dataset_id: str, spec: Mapping[str, Any], *, row: int | None, split: str, count: int, seed: int
    ) -> dict[str, Any]:
        """Show images as the network will get them; see ``Training.augmented``."""
        if not 1 <= count <= _MOST_PICTURES:
            raise UsageError(f"From 1 to {_MOST_PICTURES} images are shown.", received=str(count))
        if not 0 <= seed < 2**32:
            raise UsageError("A seed is a whole number from 0.", received=str(seed))
        dataset = self._get(dataset_id)
        if dataset.kind != "dataset" or dataset.state != "done":
            received = f"{dataset_id}, of kind {dataset.kind}, {dataset.state}"
            raise JobError("Images are shown of a dataset that is done.", received=received)
        draft = draft_of_training(spec).model_dump(mode="json")
        draft["data"]["source"] = dataset.folder
        found = self._tasks.augmented(draft, row=row, split=split, count=count, seed=seed, time_limit_s=_LIMIT_S)
        return {"seed": seed, "pictures": found["pictures"], "sentence": _sentence(found, split)}

    def preflight(self, request: JobRequest, obstacle: ZigguratError | None, *, describe: bool) -> dict[str, Any]:
        """Find out what a training will take; see ``Training.preflight``.

        Args:
            request: with the places of dataset and weights.
            obstacle: why it cannot succeed; None where it can.
            describe: whether the data is measured and the network built; not where it cannot succeed.
        """
        specs = _specs(request)
        dataset = self._get(request.dataset) if request.dataset else None
        if obstacle is not None:
            return self._preflight.refuse(specs[0], jobs=len(specs), problems=obstacle.details["problems"])
        return self._preflight.check(with_backend(specs[0]), jobs=len(specs), dataset=dataset, describe=describe)

    def as_text(self, asked: JobRequest, complete: JobRequest, url: str) -> dict[str, str]:
        """Write a training down; see ``Training.as_text``.

        Args:
            asked: as it came.
            complete: with the places of dataset and weights in its spec.
            url: of the studio.
        """
        specs = _specs(complete)
        first = train_spec(next(expand_sweep(complete))[0])
        content = _swept(short_content(first), first, asked.sweep)
        if asked.dataset:
            content = _without_source(content)
        if asked.model:
            content.pop("pretrained", None)
        values = {
            "sweep": {path: list(each) for path, each in asked.sweep.items()},
            "tags": list(asked.tags),
            **{
                name: getattr(asked, name)
                for name in ("dataset", "model", "checkpoint", "project", "notes", "priority")
            },
        }
        return {
            "cli": "\n".join(command_line(spec) for spec in specs),
            "json": spec_document(first if complete.sweep else with_backend(first), complete.sweep),
            "python": python_program(content, {name: value for name, value in values.items() if value}, url),
        }


def _specs(request: JobRequest) -> list[TrainSpec]:
    """Return the specs of all trainings of a sweep, named as the jobs will be."""
    specs = []
    for content, suffix in expand_sweep(request):
        spec = train_spec(content)
        specs.append(spec.model_copy(update={"name": f"{spec.name or spec.kind} {suffix}"}) if suffix else spec)
    return specs


def _swept(content: dict[str, Any], spec: TrainSpec, sweep: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the content of a spec, some of whose fields a sweep sets: where it sets parts, the whole is spelt out."""
    for path in sweep:
        field, _, part = path.partition(".")
        if part:
            content[field] = spec.model_dump(mode="json")[field]
        else:
            content.pop(field, None)
    return content


def _without_source(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a spec whose dataset is named beside it."""
    data = content.pop("data", None)
    rest = {name: value for name, value in data.items() if name != "source"} if isinstance(data, Mapping) else {}
    return {**content, "data": rest} if rest else content


def _sentence(found: Mapping[str, Any], split: str) -> str:
    if split != "train":
        return "Images of this split are never varied: the network gets each of them like this, in every epoch."
    if not found["varied"]:
        return "Nothing is varied: the network gets each image like this, in every epoch."
    return (
        f"What the network gets of each image, epoch by epoch, in a training with the seed {found['seed']}; a mean "
        "that is taken off and whitening are not shown."
    )
