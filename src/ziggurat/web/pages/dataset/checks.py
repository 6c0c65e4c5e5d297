"""Dataset check pages: the check, its fixes, and the problems found during creation."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response

from ziggurat.errors import UsageError, ZigguratError
from ziggurat.operations.datasets import create_again as again
from ziggurat.operations.datasets import exclude
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.caches import BackgroundResult, background_results
from ziggurat.web.pages.dataset.check_findings import MADE_BEFORE, finding_of, findings_of, places_of, problem_title
from ziggurat.web.pages.dataset.routes import check_result, dataset_frame, is_finished
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
    """Return what a check found; the quick one begins by itself, the thorough one on request."""
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
    check_result(request, studio, job_id, verify=True)
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
            raise UsageError("Run a check before you fix its findings.", advice="Wait until the check is done.")
        finding = finding_of(found.value, kind)
        version = name.strip() or next_name(studio.jobs.get(job_id).name)
        reason = f"A check found: {finding.kind}."
        job = exclude(studio, who, job_id, places_of(finding), reason=reason, name=version, finding=kind)
    except ZigguratError as error:
        return _page(request, studio, job_id, verify, found, error)
    return see_other(request, f"/datasets/{job.id}")


@router.post("/datasets/{job_id}/again", include_in_schema=False)
def create_again(request: Request, studio: StudioDep, who: TrainerUser, job_id: str, name: _Name = "") -> Response:
    """Create a dataset again, by the rules of this release."""
    try:
        job = again(studio, who, job_id, name=name.strip())
    except ZigguratError as error:
        return _page(request, studio, job_id, False, _found(request, studio, job_id, verify=False, wait_s=0.0), error)
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
        job = exclude(studio, who, job_id, problem=kind, name=version)
    except ZigguratError as error:
        return _problems_page(request, studio, job_id, kind, 0, error)
    return see_other(request, f"/datasets/{job.id}")


def _found(request: Request, studio: Studio, job_id: str, *, verify: bool, wait_s: float) -> BackgroundResult | None:
    """Return the result of a check; None if it is the thorough one and was not requested."""
    if not verify:
        return check_result(request, studio, job_id, wait_s=wait_s)
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
        "may_be_again": report is not None and MADE_BEFORE in report and not studio.datasets.why_not_again(job_id),
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
        **dataset_frame(studio, job, "check"),
        **_values(studio, job_id, verify, found),
        error=error,
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
        **dataset_frame(studio, job, "check"),
        kinds=[(name, problem_title(name), count) for name, count in sorted(counts.items())],
        kind=kind,
        problems=studio.datasets.problems(job_id, kind or None, offset=offset, limit=_PROBLEMS),
        titles=problem_title,
        offset=offset,
        limit=_PROBLEMS,
        total=total,
        next_name=next_name(job.name),
        error=error,
    )
