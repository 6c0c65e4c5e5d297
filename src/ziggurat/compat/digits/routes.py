"""DIGITS routes: lists, jobs and statuses, creation of datasets and models, changes, abort and delete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from fastapi import Query, Response

from ziggurat import __version__
from ziggurat.api.responses import answer, job_values
from ziggurat.api.schemas import Json, SuggestionsShape
from ziggurat.compat.digits.forms import (
    Fields,
    Form,
    FormError,
    Posted,
    checkpoint_of_epoch,
    dataset_spec,
    generic_dataset_spec,
    model_request,
)
from ziggurat.compat.digits.paths import json_route
from ziggurat.compat.digits.shapes import brief_shape, dataset_shape, model_shape, status_shape
from ziggurat.entities import Identity, Job, JobChange, JobFilter
from ziggurat.errors import ConfigurationError, DataError, JobError, UsageError, ZigguratError
from ziggurat.operations import jobs
from ziggurat.operations.datasets import create as create_dataset_job
from ziggurat.operations.models import create_training
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.errors import HTTPError, NotFoundError, status_of
from ziggurat.server.permissions import new_router
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.archives import ARCHIVE_FORMATS, archive
from ziggurat.workspace.studio.jobs import chosen_ids
from ziggurat.workspace.studio.paths import Paths
from ziggurat.workspace.training_checks import problem_sentence

__all__ = ["router"]

router = new_router(tags=["digits"])


@json_route(router, "GET", "/index")
def index(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return ``datasets`` and ``models`` of the studio, each with ``id``, ``name`` and ``status``."""
    return answer(
        {
            "datasets": [brief_shape(studio, job) for job in _all(studio, "dataset")],
            "models": [brief_shape(studio, job) for job in _all(studio, "train")],
            "version": __version__,
            "jobs_dir": str(studio.root),
            "server_name": "ziggurat",
        }
    )


@json_route(router, "GET", "/completed_jobs")
def completed_jobs(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the jobs that run or wait (``running``), and those that ended, as ``datasets`` and ``models``."""
    datasets, models = _all(studio, "dataset"), _all(studio, "train")
    ended = ("done", "failed", "stopped")
    lists = {
        "running": [job for job in (*datasets, *models) if job.state not in ended],
        "datasets": [job for job in datasets if job.state in ended],
        "models": [job for job in models if job.state in ended],
        "pretrained_models": [],
    }
    return answer({name: [brief_shape(studio, job) for job in jobs] for name, jobs in lists.items()})


@json_route(router, "GET", "/jobs/{job_id}/table_data")
def table_data(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return one row of the lists."""
    return answer({"job": brief_shape(studio, studio.jobs.get(job_id))})


@router.get("/jobs/{job_id}/status", response_model=Json)
@router.get("/datasets/{job_id}/status", response_model=Json)
@router.get("/models/{job_id}/status", response_model=Json)
def status(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return ``status``, ``name``, ``type`` and ``error`` of a job."""
    return answer(status_shape(studio.jobs.get(job_id)))


@json_route(router, "GET", "/datasets/{job_id}")
def dataset(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a dataset."""
    return answer(dataset_shape(studio, _of_kind(studio, job_id, "dataset")))


@json_route(router, "GET", "/models/{job_id}")
def model(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a model; ``snapshots`` are the epochs of its checkpoints."""
    return answer(model_shape(studio, _of_kind(studio, job_id, "train")))


@json_route(router, "GET", "/jobs/{job_id}")
def job(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a dataset or a model."""
    found = studio.jobs.get(job_id)
    return answer((dataset_shape if found.kind == "dataset" else model_shape)(studio, found))


@router.get("/autocomplete/path", response_model=SuggestionsShape)
def autocomplete(studio: StudioDep, _who: TrainerUser, query: Annotated[str, Query(max_length=4096)] = "") -> Response:
    """Return what a path that is being typed may become; only folders that the studio offers are looked at."""
    return answer({"suggestions": studio.paths.suggestions(query)})


@router.get("/models/{job_id}/download", response_class=Response)
@router.get("/models/{job_id}/download.{extension}", response_class=Response)
def download_model(
    studio: StudioDep, _who: ViewerUser, job_id: str, extension: str = "tar.gz", epoch: Annotated[str, Query()] = ""
) -> Response:
    """Return an archive of a model with an ``info.json``, of all its checkpoints or that of an epoch."""
    found = _of_kind(studio, job_id, "train")
    if extension not in ARCHIVE_FORMATS:
        raise UsageError(f"`{extension}` is no kind of archive.", advice=f"Use one of {', '.join(ARCHIVE_FORMATS)}.")
    name = checkpoint_of_epoch(studio, job_id, epoch)
    info = {**job_values(found), **model_shape(studio, found), "snapshot": name}
    parts = archive(extension, list(studio.models.files(job_id, name)), info, now=studio.clock())
    return download(parts, f"{job_id}{f'_epoch_{epoch}' if name else ''}", extension)


def _all(studio: Studio, kind: str) -> list[Job]:
    jobs: list[Any] = [studio.jobs.get(each) for each in chosen_ids(studio.jobs, JobFilter(kinds=(kind,)))]
    return jobs


def _of_kind(studio: Studio, job_id: str, kind: str) -> Job:
    found = studio.jobs.get(job_id)
    if found.kind != kind:
        raise NotFoundError(f"There is no such {'dataset' if kind == 'dataset' else 'model'}.", received=job_id)
    return found


_FIELDS: Final = {"data.source": "dataset", "network.name": "standard_networks", "backend": "framework"}
"""Field of a spec → field of DIGITS's form, where that has another name."""

_LISTS: Final = ("train_images", "val_images", "test_images", "labels_file")


@json_route(router, "POST", "/datasets/images/classification")
def create_dataset(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """Make a classification dataset of DIGITS's fields; a wrong one is answered by 400 and ``errors`` by field."""

    return _created_dataset(studio, who, Fields({**form.values, **_uploaded(studio, form)}), dataset_spec)


@json_route(router, "POST", "/datasets/images/generic")
def create_generic_dataset(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """Make a dataset of stores that another program wrote; a wrong field is answered by 400 and ``errors`` by field."""
    return _created_dataset(studio, who, Fields(form.values), generic_dataset_spec)


def _created_dataset(
    studio: Studio, who: Identity, fields: Fields, spec_of: Callable[[Fields, Paths], dict[str, Any]]
) -> Response:
    def make() -> Any:
        spec = spec_of(fields, studio.paths)
        fields.check()
        job = create_dataset_job(studio, who, JobRequest(spec=spec, project=fields.text("group_name")))
        return dataset_shape(studio, job)

    return _made(make)


@json_route(router, "POST", "/models/images/generic")
@json_route(router, "POST", "/models/images/classification")
def create_model(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """Make a model of DIGITS's fields, or ``jobs`` where lists of values make several."""

    def make() -> Any:
        fields = Fields(form.values)
        request = model_request(fields, studio)
        fields.check()
        shapes = [model_shape(studio, job) for job in create_training(studio, who, request)]
        return shapes[0] if len(shapes) == 1 else {"jobs": shapes}

    return _made(make)


def _made(make: Callable[[], Any]) -> Response:
    try:
        return answer(make())
    except FormError as error:
        return answer({"errors": error.errors}, 400)
    except ZigguratError as error:
        if "problems" not in error.details and not isinstance(error, (ConfigurationError, DataError, UsageError)):
            raise
        return answer({"errors": _errors_of(error)}, 400)


def _errors_of(error: ZigguratError) -> dict[str, list[str]]:
    """Return field of the form → messages."""
    listed = error.details.get("problems") or ()
    if len(listed) < 2:
        field = str(error.details.get("field", "form"))
        return {_FIELDS.get(field, field): [str(error)]}
    found: dict[str, list[str]] = {}
    for each in listed:
        place = str(each["field"])
        found.setdefault(_FIELDS.get(place, place), []).append(problem_sentence(each))
    return found


def _uploaded(studio: Studio, form: Form) -> dict[str, str]:
    """Keep lists that came with the form, and return the fields that name them as files of the server."""
    values: dict[str, str] = {}
    upload = ""
    for name in _LISTS:
        content = form.content(f"textfile_{name}")
        if content is None:
            continue
        with studio.uploads.add(f"{name}.txt", upload) as incoming:
            incoming.write(content)
        result = incoming.result()
        upload = result.id
        values[f"textfile_local_{name}"] = str(PurePosixPath(result.source) / f"{name}.txt")
    return {**values, "textfile_use_local_files": "y"} if values else {}


@router.put("/jobs/{job_id}", response_class=Response)
def edit(studio: StudioDep, who: TrainerUser, job_id: str, form: Posted) -> Response:
    """Change ``job_name`` or ``job_notes``, each by itself."""
    name, notes = form.values.get("job_name"), form.values.get("job_notes")
    if name is None and notes is None:
        raise UsageError("The edit has neither `job_name` nor `job_notes`.")
    jobs.change_job(studio, who, job_id, JobChange(name=name, notes=notes))
    return _said(f"{'Name' if name is not None else 'Notes'} updated.")


@router.delete("/jobs/{job_id}", response_class=Response)
@router.delete("/datasets/{job_id}", response_class=Response)
@router.delete("/models/{job_id}", response_class=Response)
def delete(studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Delete a job; a dataset that a model needs, or a job that runs, is refused by 403."""
    _delete(studio, who, job_id)
    return _said("Job deleted.")


@router.delete("/jobs", response_class=Response)
def delete_many(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """Delete the jobs of ``job_ids[]``, models first, so that their datasets can go as well."""
    jobs = [studio.jobs.get(job_id) for job_id in form.ids()]
    for job in sorted(jobs, key=lambda each: each.kind == "dataset"):
        _delete(studio, who, job.id)
    return _said("Jobs deleted.")


@router.post("/jobs/{job_id}/abort", response_class=Response)
@router.post("/datasets/{job_id}/abort", response_class=Response)
@router.post("/models/{job_id}/abort", response_class=Response)
def abort(studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Save and end a job; what it wrote so far can be used, and the studio can go on with it."""
    jobs.stop_job(studio, who, job_id)
    return _said("Job aborted.")


@router.post("/abort_jobs", response_class=Response)
def abort_many(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """End the jobs of ``job_ids[]``; the answer is 403 where one of them does not run any more."""
    results = jobs.act(studio, who, "stop", form.ids())
    failed = [each["id"] for each in results if not each["done"]]
    return _said(f"Not aborted: {', '.join(failed)}.", 403) if failed else _said("Jobs aborted.")


@router.post("/group", response_class=Response)
def group(studio: StudioDep, who: TrainerUser, form: Posted) -> Response:
    """Put the jobs of ``job_ids[]`` into the project ``group_name``; blank or ``Ungrouped`` takes them out."""
    name = form.values.get("group_name", "").strip()
    change = JobChange(project="" if name == "Ungrouped" else name)
    for job_id in form.ids():
        jobs.change_job(studio, who, job_id, change)
    return _said("Jobs grouped.")


def _delete(studio: Studio, who: Identity, job_id: str) -> None:
    try:
        jobs.delete_job(studio, who, job_id)
    except JobError as error:
        raise HTTPError(error, 404 if status_of(error) == 404 else 403) from None


def _said(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="text/plain")
