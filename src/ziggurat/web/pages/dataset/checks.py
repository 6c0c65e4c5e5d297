"""Dataset check pages: the check, its fixes, and the problems found during creation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Form, Query, Request, Response

from ziggurat.errors import UnknownNameError, UsageError, ZigguratError
from ziggurat.operations.datasets import exclude
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.caches import BackgroundResult, background_results
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished
from ziggurat.web.pages.dataset.view import next_name
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()


_TITLES: Final[Mapping[str, str]] = {
    "duplicate": "Duplicates",
    "duplicate-across-splits": "Duplicates across splits",
    "duplicate-with-other-label": "Duplicates with different labels",
    "near-duplicate": "Near duplicates",
    "near-duplicate-with-other-label": "Near duplicates with different labels",
    "leak": "Leaks between splits",
    "zero-size-box": "Boxes of zero size",
    "tiny-box": "Tiny boxes",
    "box-outside": "Boxes outside the image",
    "duplicate-box": "Duplicate boxes",
    "unknown-class": "Unknown classes",
    "no-objects": "Images without objects",
    "empty-label": "Samples without label",
    "small-class": "Classes with few samples",
    "empty-class": "Empty classes",
    "imbalance": "Class imbalance",
    "changed-store": "Changed records",
    "size-outlier": "Images of an unusual size",
    "label-error": "Likely label errors",
    "unreadable": "Unreadable samples",
    "excluded": "Excluded by a user",
    "no-label": "No label",
    "bad-line": "Unreadable lines",
    "no-picture": "Missing images",
    "missing-value": "Missing values",
    "duplicate-key": "Duplicate names",
    "swapped-corners": "Boxes with swapped corners",
    "box-of-outline": "Boxes made of outlines",
    "exif-turned": "Images that EXIF turns",
    "other-size": "Labels of another image size",
    "other-name": "Files found by another name",
    "same-name": "Classes of one name",
    "no-split": "Missing splits",
    "no-box": "Annotations without boxes",
    "two-splits": "Images in two splits",
}
_AT_CREATION: Final = "at-creation-"
_SEVERITIES: Final[Mapping[str, str]] = {"error": "Error", "warning": "Warning", "note": "Note"}


@dataclass(frozen=True, kw_only=True)
class CheckFinding:
    """A finding as the page shows it.

    Args:
        finding: as ``ziggurat.datasets.checks.Finding`` has it.
        title: for people.
        severity: for people.
        exclude_count: samples without which it would be gone; 0 where leaving some out does not mend it.
        problem: kind of problem to look at in the explorer; empty for none.
    """

    finding: Any
    title: str
    severity: str
    exclude_count: int
    problem: str


def findings_of(report: Any) -> list[CheckFinding]:
    """Return the findings of a check, the severe ones first."""
    return [_shown(finding) for finding in report.findings]


def finding_of(report: Any, kind: str) -> Any:
    """Return the finding of a kind.

    Raises:
        UnknownNameError: where nothing of this kind was found.
    """
    for finding in report.findings:
        if finding.kind == kind:
            return finding
    raise UnknownNameError("finding of this check", kind, [finding.kind for finding in report.findings])


def places_of(finding: Any) -> list[str]:
    """Return the samples without which a finding would be gone, as ``SPLIT/ROW``."""
    excluded: Mapping[str, Sequence[int]] = finding.exclude
    return [f"{split}/{row}" for split, rows in excluded.items() for row in rows]


def problem_title(kind: str) -> str:
    """Return the name of a kind of problem for people."""
    return _TITLES.get(kind) or kind.replace("-", " ").capitalize()


def _shown(finding: Any) -> CheckFinding:
    problem = finding.kind.removeprefix(_AT_CREATION) if finding.kind.startswith(_AT_CREATION) else ""
    title = problem_title(problem or finding.kind)
    return CheckFinding(
        finding=finding,
        title=f"At creation: {title}" if problem else title,
        severity=_SEVERITIES[finding.severity],
        exclude_count=sum(len(rows) for rows in finding.exclude.values()),
        problem=problem,
    )


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
            raise UsageError("Run a check before you fix its findings.", advice="Wait until the check is done.")
        finding = finding_of(found.value, kind)
        version = name.strip() or next_name(studio.jobs.get(job_id).name)
        reason = f"A check found: {finding.kind}."
        job = exclude(studio, who, job_id, places_of(finding), reason=reason, name=version, finding=kind)
    except ZigguratError as error:
        return _page(request, studio, job_id, verify, found, error)
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


def _begin(request: Request, studio: Studio, job_id: str, *, verify: bool, wait_s: float = 0.0) -> BackgroundResult:
    studio.datasets.folder(job_id)
    return background_results(request).get(
        ("check", job_id, verify), lambda: studio.datasets.check(job_id, verify=verify), wait_s=wait_s
    )


def _found(request: Request, studio: Studio, job_id: str, *, verify: bool, wait_s: float) -> BackgroundResult | None:
    """Return the result of a check; None if it is the thorough one and was not requested."""
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
