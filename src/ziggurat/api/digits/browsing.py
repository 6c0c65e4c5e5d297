"""DIGITS routes for reading: lists, jobs, statuses, paths, downloads."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response

from ziggurat import __version__
from ziggurat.api.digits.model_form import checkpoint_of_epoch
from ziggurat.api.digits.shapes import brief_shape, dataset_shape, model_shape, status_shape
from ziggurat.api.responses import answer, job_values
from ziggurat.api.schemas import Json, SuggestionsShape
from ziggurat.entities import Job, JobFilter
from ziggurat.errors import UsageError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.http_errors import NotFoundError
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.archives import ARCHIVE_FORMATS, archive
from ziggurat.workspace.studio.jobs import chosen_ids

__all__ = ["router"]

router = new_router(tags=["digits"])


@router.get("/index.json", response_model=Json)
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


@router.get("/completed_jobs.json", response_model=Json)
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


@router.get("/jobs/{job_id}/table_data.json", response_model=Json)
def table_data(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return one row of the lists."""
    return answer({"job": brief_shape(studio, studio.jobs.get(job_id))})


@router.get("/jobs/{job_id}/status", response_model=Json)
@router.get("/datasets/{job_id}/status", response_model=Json)
@router.get("/models/{job_id}/status", response_model=Json)
def status(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return ``status``, ``name``, ``type`` and ``error`` of a job."""
    return answer(status_shape(studio.jobs.get(job_id)))


@router.get("/datasets/{job_id}.json", response_model=Json)
def dataset(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a dataset."""
    return answer(dataset_shape(studio, _of_kind(studio, job_id, "dataset")))


@router.get("/models/{job_id}.json", response_model=Json)
def model(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return a model; ``snapshots`` are the epochs of its checkpoints."""
    return answer(model_shape(studio, _of_kind(studio, job_id, "train")))


@router.get("/jobs/{job_id}.json", response_model=Json)
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
        raise UsageError("An archive is of a known kind.", received=extension, advice=", ".join(ARCHIVE_FORMATS))
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
