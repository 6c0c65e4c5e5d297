"""Operations with models: trainings, programs, evaluations, exports, and models that are published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ziggurat.entities import Job
from ziggurat.operations.use_case import Call, use_case
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.models import PublishedModel

__all__ = [
    "clear_operating_point",
    "create_evaluation",
    "create_inference",
    "create_program",
    "create_training",
    "export",
    "publish",
    "remove_export",
    "retrain",
    "set_operating_point",
    "start_demo",
    "start_export",
    "start_serving",
    "stop_serving",
    "withdraw",
]


@use_case("training.create")
def create_training(call: Call, request: JobRequest) -> Sequence[Job]:
    """Put a training, or a sweep of several, into the queue; all of them, or none."""
    jobs = call.studio.training.create(request, owner=call.who.name)
    for job in jobs:
        call.note(job.id)
    return jobs


@use_case("training.demo")
def start_demo(call: Call) -> Job:
    """Make the dataset of the built-in handwritten digits, and train a small network on it; return the training.

    The one that is waiting or running is returned if there is one.
    """
    found = call.studio.demo.start_once(owner=call.who.name)
    if found.is_new:
        call.note(found.training.id)
    return found.training


@use_case("training.retrain")
def retrain(call: Call, job_id: str, dataset: str, evaluation: str = "", split: str = "") -> Any:
    """Repeat a training on another version of its dataset, and evaluate it on the same split behind it.

    Where that training is there already, it is returned with status 200, and ``is_new`` is false. The differences of
    ``former_evaluation`` and ``evaluation`` say what changed.
    """
    found = call.studio.retrainings.start(
        dataset, model_id=job_id, evaluation_id=evaluation, split=split, owner=call.who.name
    )
    if found.is_new:
        call.note(found.model.id, former=found.former.id, dataset=dataset)
    return found


@use_case("program.create")
def create_program(call: Call, request: JobRequest, *, text: str = "", source: str = "") -> Job:
    """Put a program into the queue. It is checked before, without running it: an error names file and line."""
    job = call.studio.programs.create(request, text=text, source=source, owner=call.who.name)
    call.note(job.id)
    return job


@use_case("evaluation.create")
def create_evaluation(call: Call, job_id: str, **wanted: Any) -> Job:
    """Put the evaluation of a model on a split into the queue."""
    job = call.studio.evaluations.create(job_id, owner=call.who.name, **wanted)
    call.note(job.id, model=job_id, split=job.spec["split"])
    return job


@use_case("inference.create")
def create_inference(call: Call, job_id: str, **wanted: Any) -> Job:
    """Put predicting for many images of the studio's machine into the queue."""
    job = call.studio.evaluations.create_many(job_id, owner=call.who.name, **wanted)
    call.note(job.id, model=job_id)
    return job


@use_case("model.export")
def export(call: Call, job_id: str, format: str, archive: str, **options: Any) -> Iterator[bytes]:  # noqa: A002 - the field's name
    """Return a model in a format of other programs, as an archive whose ``info.json`` proves that it gives the same."""
    parts = call.studio.models.exported(job_id, format, archive, **options)
    call.note(job_id, format=format)
    return parts


@use_case("operating-point.set")
def set_operating_point(
    call: Call,
    job_id: str,
    evaluation: str = "",
    threshold: float | None = None,
    thresholds: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Choose the thresholds that predictions and exports of a model obey, on its evaluation of the validation split.

    They hold for the checkpoint that was evaluated; of another one, answers say that they are not used.
    """
    found = call.studio.operating_points.set(
        job_id, evaluation=evaluation, threshold=threshold, thresholds=thresholds, owner=call.who.name
    )
    call.note(job_id, thresholds=found["thresholds"], evaluation=found["evaluation"], checkpoint=found["checkpoint"])
    return found


@use_case("operating-point.clear")
def clear_operating_point(call: Call, job_id: str) -> None:
    """Remove the operating point of a model; predictions follow the defaults of its task again."""
    call.studio.operating_points.clear(job_id)
    call.note(job_id)


@use_case("export.create")
def start_export(
    call: Call,
    job_id: str,
    format: str,  # noqa: A002 - the field's name
    preprocessing: str = "inside",
    checkpoint: str = "",
) -> Any:
    """Ask for an export; it runs in the background, and an existing one is returned unchanged."""
    asked = call.studio.exports.start(job_id, format, preprocessing=preprocessing, checkpoint=checkpoint)
    call.note(job_id, format=format)
    return asked


@use_case("export.delete")
def remove_export(call: Call, job_id: str, name: str) -> None:
    """Delete an export that is not under way."""
    call.studio.serving.stop(job_id, name)
    call.studio.exports.remove(job_id, name)
    call.note(job_id, name=name)


@use_case("serving.start")
def start_serving(call: Call, job_id: str, name: str) -> Any:
    """Start a server of an ONNX export on the studio's machine, on a free port of 127.0.0.1; it ends with the studio.

    One that runs is returned as it is. At most four run at the same time.
    """
    found = call.studio.serving.start(job_id, name)
    call.note(job_id, name=name)
    return found


@use_case("serving.stop")
def stop_serving(call: Call, job_id: str, name: str) -> None:
    """Stop the server of an export; answers that are under way have five seconds to finish."""
    call.studio.serving.stop(job_id, name)
    call.note(job_id, name=name)


@use_case("model.publish")
def publish(call: Call, job: str, name: str, checkpoint: str = "", notes: str = "") -> PublishedModel:
    """Publish a checkpoint of a training; as long as it is, neither can be deleted."""
    made = call.studio.published.publish(job, name, checkpoint=checkpoint, notes=notes, owner=call.who.name)
    call.note(made.job, name=made.name, checkpoint=made.checkpoint)
    return made


@use_case("model.withdraw")
def withdraw(call: Call, name: str) -> None:
    """Take a model out of the list; its job and its files stay."""
    job_id = call.studio.published.get(name).job
    call.studio.published.withdraw(name)
    call.note(job_id, name=name)
