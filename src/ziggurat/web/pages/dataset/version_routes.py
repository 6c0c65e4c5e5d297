"""Pages for comparison of dataset versions and for dataset export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import Identity
from ziggurat.errors import UnknownNameError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.http_errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.background_results import BackgroundResult, background_results
from ziggurat.web.pages.dataset.export_view import export_formats, typed_options
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished
from ziggurat.web.pages.dataset.versions_view import differences_of, versions_of
from ziggurat.web.pages.dataset.view import dataset_about
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.archives import ARCHIVE_FORMATS

__all__ = ["router"]

router = new_router()

_AT_ONCE_S: Final = 0.1
_PATIENCE_S: Final = 4.0
_COMPARED: Final = Query(alias="with", max_length=200)


@router.get("/datasets/{job_id}/versions", include_in_schema=False)
def versions(
    request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, other: Annotated[str, _COMPARED] = ""
) -> Response:
    """Return the versions that a dataset came from and that came from it, and what differs from one of them."""
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    if other and is_part(request, "dataset-differences"):
        found = _differences(request, studio, job_id, other, _PATIENCE_S)
        return part(request, "dataset/differences.html", job=job, **_compared(studio, other, found))
    found = _differences(request, studio, job_id, other, _AT_ONCE_S) if other else None
    about = dataset_about(studio, job)
    return page(
        request,
        "dataset/versions.html",
        **dataset_frame(studio, job, "versions", about.problem_count),
        about=about,
        versions=versions_of(studio, job_id),
        **_compared(studio, other, found),
    )


@router.get("/datasets/{job_id}/export", include_in_schema=False)
def export(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the formats in which a dataset can be exported."""
    if not is_finished(studio.jobs.get(job_id)):
        return see_other(request, f"/datasets/{job_id}")
    return _export_page(request, studio, job_id)


@router.post("/datasets/{job_id}/export", include_in_schema=False)
async def take_away(request: Request, studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Return a dataset in a format of others, as an archive that is made while it is sent."""
    form = await request.form(max_fields=200)
    texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    return await run_in_threadpool(_taken_away, request, studio, who, job_id, texts)


def _taken_away(request: Request, studio: Studio, who: Identity, job_id: str, texts: dict[str, str]) -> Response:
    name, archive = texts.get("format", ""), texts.get("archive", "zip")
    try:
        job = studio.jobs.get(job_id)
        known = export_formats(studio, studio.datasets.describe(job_id)["kind"])
        chosen = next((each for each in known if each.name == name), None)
        if chosen is None:
            raise UnknownNameError("format that holds this dataset", name, [each.name for each in known])
        parts = studio.datasets.exported(job_id, name, archive, typed_options(chosen, texts))
    except ZigguratError as error:
        return _export_page(request, studio, job_id, error, texts)
    studio.people.note(who, "dataset.export", job_id, format=name)
    return download(parts, f"{job.name or job_id}-{name}", archive)


def _export_page(
    request: Request,
    studio: Studio,
    job_id: str,
    error: ZigguratError | None = None,
    typed: dict[str, str] | None = None,
) -> Response:
    job = studio.jobs.get(job_id)
    described = studio.datasets.describe(job_id)
    return page(
        request,
        "dataset/export.html",
        200 if error is None else status_of(error),
        **dataset_frame(studio, job, "export", sum(described["problems"].values())),
        formats=export_formats(studio, described["kind"]),
        archives=[(name, name) for name in sorted(ARCHIVE_FORMATS, key=lambda name: name != "zip")],
        is_reference=(described["image"] or {}).get("encoding") == "reference",
        typed=typed or {},
        said=error.as_dict() if error is not None else None,
    )


def _differences(request: Request, studio: Studio, job_id: str, other: str, wait_s: float) -> BackgroundResult:
    newer, older = studio.datasets.folder(job_id), studio.datasets.folder(other)

    def find() -> Any:
        return differences_of(Path(older), Path(newer))

    return background_results(request).get(("differences", other, job_id), find, wait_s=wait_s)


def _compared(studio: Studio, other: str, found: BackgroundResult | None) -> dict[str, Any]:
    return {
        "compared": studio.jobs.get(other) if other else None,
        "is_compared": found is not None and found.is_ready,
        "differences": found.value if found is not None and found.is_ready else None,
        "compare_problem": found.error.as_dict() if found is not None and found.is_ready and found.error else None,
    }
