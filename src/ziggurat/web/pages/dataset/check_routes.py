"""Dataset check pages: the check, its fixes, and the problems found during creation."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response

from ziggurat.errors import UsageError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.http_errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.background_results import BackgroundResult, background_results
from ziggurat.web.pages.dataset.check_view import finding_of, findings_of, places_of, problem_title
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished
from ziggurat.web.pages.dataset.view import next_name
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_AT_ONCE_S: Final = 0.1
_PATIENCE_S: Final = 4.0
_PROBLEMS: Final = 100

_Name = Annotated[str, Form(max_length=200)]


@router.get("/datasets/{job_id}/check", include_in_schema=False)
def check(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, verify: bool = False) -> Response:
    """Return what a check found; the quick one begins by itself, the thorough one when somebody asks for it."""
    if not is_finished(studio.jobs.get(job_id)):
        return see_other(request, f"/datasets/{job_id}")
    if is_part(request, "dataset-findings"):
        found = _found(request, studio, job_id, verify=verify, wait_s=_PATIENCE_S)
        return part(
            request, "dataset/findings.html", job=studio.jobs.get(job_id), **_values(studio, job_id, verify, found)
        )
    found = _found(request, studio, job_id, verify=verify, wait_s=_AT_ONCE_S)
    return _page(request, studio, job_id, verify, found)


@router.post("/datasets/{job_id}/check", include_in_schema=False)
def verify(request: Request, studio: StudioDep, _who: TrainerUser, job_id: str) -> Response:
    """Begin to read every record and file of a dataset."""
    _begin(request, studio, job_id, verify=True)
    return see_other(request, f"/datasets/{job_id}/check", {"verify": "true"})


@router.post("/datasets/{job_id}/check/mend", include_in_schema=False)
def mend(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    kind: Annotated[str, Form()],
    verify: Annotated[bool, Form()] = False,
    name: _Name = "",
) -> Response:
    """Make a version without the samples that a finding is about."""
    found = _found(request, studio, job_id, verify=verify, wait_s=_PATIENCE_S)
    try:
        if found is None or found.value is None:
            raise UsageError("A check comes before what it found is mended.", advice="Wait until the check is done.")
        finding = finding_of(found.value, kind)
        version = name.strip() or next_name(studio.jobs.get(job_id).name)
        reason = f"A check found: {finding.kind}."
        job = studio.datasets.exclude(job_id, places_of(finding), reason=reason, name=version, owner=who.name)
    except ZigguratError as error:
        return _page(request, studio, job_id, verify, found, error)
    studio.people.note(who, "dataset.exclude", job.id, parent=job_id, finding=kind)
    return see_other(request, f"/datasets/{job.id}")


@router.get("/datasets/{job_id}/problems", include_in_schema=False)
def problems(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    kind: Annotated[str, Query(max_length=200)] = "",
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
) -> Response:
    """Return what was wrong with samples and files when the dataset was made."""
    if not is_finished(studio.jobs.get(job_id)):
        return see_other(request, f"/datasets/{job_id}")
    return _problems_page(request, studio, job_id, kind, offset)


@router.post("/datasets/{job_id}/problems/mend", include_in_schema=False)
def leave_out(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, kind: Annotated[str, Form()], name: _Name = ""
) -> Response:
    """Make a version without the samples that have a kind of problem."""
    version = name.strip() or next_name(studio.jobs.get(job_id).name)
    try:
        job = studio.datasets.exclude(job_id, [], problem=kind, name=version, owner=who.name)
    except ZigguratError as error:
        return _problems_page(request, studio, job_id, kind, 0, error)
    studio.people.note(who, "dataset.exclude", job.id, parent=job_id, problem=kind)
    return see_other(request, f"/datasets/{job.id}")


def _begin(request: Request, studio: Studio, job_id: str, *, verify: bool, wait_s: float = 0.0) -> BackgroundResult:
    studio.datasets.folder(job_id)
    return background_results(request).get(
        ("check", job_id, verify), lambda: studio.datasets.check(job_id, verify=verify), wait_s=wait_s
    )


def _found(request: Request, studio: Studio, job_id: str, *, verify: bool, wait_s: float) -> BackgroundResult | None:
    """Return the result of a check; None where it is the thorough one and nobody asked for it."""
    if not verify:
        return _begin(request, studio, job_id, verify=False, wait_s=wait_s)
    found = background_results(request).peek(("check", job_id, True))
    if found is not None:
        found.wait(wait_s)
    return found


def _values(studio: Studio, job_id: str, verify: bool, found: BackgroundResult | None) -> dict[str, Any]:
    report = found.value if found is not None and found.is_ready else None
    pictures = studio.datasets.describe(job_id)["image"] if report is not None else None
    return {
        "verify": verify,
        "is_asked": found is not None,
        "report": report,
        "findings": findings_of(report) if report is not None else [],
        "check_problem": found.error.as_dict() if found is not None and found.is_ready and found.error else None,
        "has_pictures": pictures is not None,
        "next_name": next_name(studio.jobs.get(job_id).name),
    }


def _page(
    request: Request,
    studio: Studio,
    job_id: str,
    verify: bool,
    found: BackgroundResult | None,
    error: ZigguratError | None = None,
) -> Response:
    job = studio.jobs.get(job_id)
    return page(
        request,
        "dataset/check.html",
        200 if error is None else status_of(error),
        **dataset_frame(studio, job, "check"),
        **_values(studio, job_id, verify, found),
        said=error.as_dict() if error is not None else None,
    )


def _problems_page(
    request: Request, studio: Studio, job_id: str, kind: str, offset: int, error: ZigguratError | None = None
) -> Response:
    job = studio.jobs.get(job_id)
    counts = studio.datasets.describe(job_id)["problems"]
    total = counts.get(kind, 0) if kind else sum(counts.values())
    return page(
        request,
        "dataset/problems.html",
        200 if error is None else status_of(error),
        **dataset_frame(studio, job, "problems", sum(counts.values())),
        kinds=[(name, problem_title(name), count) for name, count in sorted(counts.items())],
        kind=kind,
        problems=studio.datasets.problems(job_id, kind or None, offset=offset, limit=_PROBLEMS),
        titles=problem_title,
        offset=offset,
        limit=_PROBLEMS,
        total=total,
        next_name=next_name(job.name),
        said=error.as_dict() if error is not None else None,
    )
