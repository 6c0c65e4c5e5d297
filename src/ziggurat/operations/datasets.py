"""Operations on datasets: create, and every version that is made of one; what is taken out in formats of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ziggurat.entities import Job
from ziggurat.operations.use_case import Call, use_case
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.dataset_maps import Features

__all__ = [
    "change_classes",
    "correct",
    "create",
    "create_again",
    "create_map",
    "exclude",
    "export",
    "make_version",
    "merge",
    "relabel",
]


@use_case("dataset.create")
def create(call: Call, request: JobRequest) -> Job:
    """Put a dataset into the queue."""
    job = call.studio.datasets.create(request, owner=call.who.name)
    call.note(job.id)
    return job


@use_case("dataset.again")
def create_again(call: Call, job_id: str, name: str = "") -> Job:
    """Put a dataset into the queue that is made from the same source by the same spec; its parent is this one."""
    call.studio.paths.check_spec(call.studio.datasets.again(job_id).model_dump(mode="json"))
    job = call.studio.datasets.create_again(job_id, name=name, owner=call.who.name)
    call.note(job.id, parent=job_id)
    return job


@use_case("dataset.relabel")
def relabel(
    call: Call, job_id: str, samples: Sequence[str], label: Any, name: str = "", *, evaluation: str = ""
) -> Job:
    """Make a version in which samples have another label."""
    job = call.studio.datasets.relabel(job_id, samples, label, name=name, owner=call.who.name)
    said = {"evaluation": evaluation} if evaluation else {}
    call.note(job.id, parent=job_id, samples=len(samples), **said)
    return job


@use_case("dataset.exclude")
def exclude(
    call: Call,
    job_id: str,
    samples: Sequence[str] = (),
    problem: str = "",
    reason: str = "",
    name: str = "",
    *,
    finding: str = "",
) -> Job:
    """Make a version without some samples, or without those that have a problem."""
    job = call.studio.datasets.exclude(job_id, samples, problem=problem, reason=reason, name=name, owner=call.who.name)
    chosen = {"problem": problem, "finding": finding, "samples": len(samples)}
    call.note(job.id, parent=job_id, **{field: value for field, value in chosen.items() if value})
    return job


@use_case("dataset.corrections")
def correct(
    call: Call,
    job_id: str,
    labels: Mapping[str, Any],
    excluded: Sequence[str] = (),
    reason: str = "",
    name: str = "",
) -> Job:
    """Make one version of many corrections: samples that get another label each, and samples that are left out."""
    job = call.studio.datasets.correct(job_id, labels, excluded, reason=reason, name=name, owner=call.who.name)
    call.note(job.id, parent=job_id, samples=len(labels) + len(excluded))
    return job


@use_case("dataset.classes")
def change_classes(call: Call, job_id: str, name: str = "", **changes: Any) -> Job:
    """Make a version with other classes."""
    job = call.studio.datasets.change_classes(job_id, changes, name=name, owner=call.who.name)
    call.note(job.id, parent=job_id)
    return job


@use_case("dataset.merge")
def merge(call: Call, datasets: Sequence[str], name: str = "") -> Job:
    """Make one dataset of several; classes are matched by their names."""
    job = call.studio.datasets.merge(datasets, name=name, owner=call.who.name)
    call.note(job.id, parents=list(datasets))
    return job


@use_case("dataset.boxes")
def make_version(call: Call, job_id: str, name: str = "", samples: Sequence[str] = ()) -> Job:
    """Make a version of the corrected boxes; the images of this dataset are as in the dataset again."""
    job = call.studio.datasets.correct_boxes(job_id, samples, name=name, owner=call.who.name)
    call.note(job.id, parent=job_id)
    return job


@use_case("dataset.map")
def create_map(call: Call, job_id: str, features: Features = "", model: str = "", **options: Any) -> Job:
    """Put a map of a dataset into the queue: features of its samples, and where they place them."""
    job = call.studio.maps.create(job_id, features=features, model=model, owner=call.who.name, **options)
    call.note(job.id, dataset=job_id, features=str(job.spec["features"]))
    return job


@use_case("dataset.export")
def export(call: Call, job_id: str, format: str, archive: str, options: Mapping[str, Any]) -> Iterator[bytes]:  # noqa: A002 - the field's name
    """Return a dataset in a format of others, as an archive whose ``info.json`` says what could not be written."""
    parts = call.studio.datasets.exported(job_id, format, archive, options)
    call.note(job_id, format=format)
    return parts
