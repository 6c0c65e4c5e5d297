"""Dataset explorer pages, with corrections of samples; every correction creates a new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import Identity, Job
from ziggurat.errors import UsageError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.dataset.explore import chosen_places, explored, shown_sample
from ziggurat.web.pages.dataset.filter import PAGE_SIZES, DatasetFilter, filter_of
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished
from ziggurat.web.pages.dataset.samples import label_as_json
from ziggurat.web.pages.dataset.view import next_name
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_FEW_CLASSES: Final = 400
"""Up to so many classes a list to choose from is shown; beyond, a field to type into."""

_LONGEST_NAME: Final = 200


@dataclass(frozen=True, kw_only=True)
class _Correction:
    """What was typed into the form that makes a version.

    Args:
        what: ``relabel`` or ``exclude``.
        samples: that were ticked, as ``SPLIT/ROW``.
        is_all: whether all that the filter leaves are meant.
        label: that they are to get.
        reason: why they are left out.
        name: of the new version.
        single: ``SPLIT/ROW`` of the page that the form stands on; empty for the explorer.
    """

    what: str = ""
    samples: Sequence[str] = field(default_factory=tuple)
    is_all: bool = False
    label: str = ""
    reason: str = ""
    name: str = ""
    single: str = ""


@dataclass(frozen=True, kw_only=True)
class _Refused:
    """What is shown of a correction that was not made.

    Args:
        typed: what was typed; None where nobody typed anything.
        said: what is wrong with it; None for nothing.
        status: of HTTP.
    """

    typed: _Correction | None = None
    said: dict[str, Any] | None = None
    status: int = 200


_NOTHING: Final = _Refused()


@router.get("/datasets/{job_id}/explore", include_in_schema=False)
def explore(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the samples that a filter leaves, page by page."""
    return _explorer(request, studio, job_id, filter_of(request.query_params))


@router.get("/datasets/{job_id}/samples/{split}/{row}", include_in_schema=False)
def sample(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    split: str,
    row: Annotated[int, Path(ge=0, lt=2**31)],
    at: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
) -> Response:
    """Return one sample with all that is known of it, and the ways to its neighbors within the filter."""
    wanted = _within(request.query_params)
    return _sample_page(request, studio, job_id, (split, row), wanted, at=at)


@router.post("/datasets/{job_id}/explore", include_in_schema=False)
async def correct(request: Request, studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Make a version in which samples have another label, or that does without them."""
    form = await request.form(max_fields=20_000)
    texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    asked = _Correction(
        what=texts.get("what", ""),
        samples=tuple(str(value) for value in form.getlist("samples")),
        is_all=texts.get("everything") == "true",
        label=texts.get("label", ""),
        reason=texts.get("reason", "")[:1000],
        name=texts.get("name", "").strip(),
        single=texts.get("single", ""),
    )
    return await run_in_threadpool(_corrected, request, studio, who, job_id, (asked, texts))


def _corrected(
    request: Request, studio: Studio, who: Identity, job_id: str, sent: tuple[_Correction, Mapping[str, str]]
) -> Response:
    asked, texts = sent
    wanted = _within(texts) if asked.single else filter_of(texts)
    try:
        job = _made(studio, who, job_id, asked, wanted)
    except ZigguratError as error:
        return _refused(request, studio, job_id, sent, error)
    studio.people.note(who, f"dataset.{asked.what}", job.id, parent=job_id, samples=len(asked.samples))
    return see_other(request, f"/datasets/{job.id}")


def _made(studio: Studio, who: Identity, job_id: str, asked: _Correction, wanted: DatasetFilter) -> Job:
    if not 0 < len(asked.name) <= _LONGEST_NAME:
        raise UsageError(
            f"A version has a name of 1 to {_LONGEST_NAME} characters.", received=f"{len(asked.name)} characters"
        )
    samples = chosen_places(studio, job_id, wanted) if asked.is_all else list(asked.samples)
    if not samples:
        raise UsageError("Choose at least one sample.", advice="Tick the boxes beside the samples.")
    if asked.what == "relabel":
        if not asked.label.strip():
            raise UsageError("Choose the label that the samples are to get.")
        return studio.datasets.relabel(job_id, samples, asked.label, name=asked.name, owner=who.name)
    if asked.what == "exclude":
        return studio.datasets.exclude(job_id, samples, reason=asked.reason, name=asked.name, owner=who.name)
    raise UsageError("Samples are given another label, or left out.", received=f"`{asked.what[:40]}`")


def _refused(
    request: Request,
    studio: Studio,
    job_id: str,
    sent: tuple[_Correction, Mapping[str, str]],
    error: ZigguratError,
) -> Response:
    """Show the page again with what was typed and what is wrong with it."""
    asked, texts = sent
    refused = _Refused(typed=asked, said=error.as_dict(), status=status_of(error))
    split, _, row = asked.single.partition("/")
    if row.isascii() and row.isdigit() and len(row) < 10:
        return _sample_page(request, studio, job_id, (split, int(row)), _within(texts), refused=refused)
    return _explorer(request, studio, job_id, filter_of(texts), refused)


def _explorer(
    request: Request,
    studio: Studio,
    job_id: str,
    wanted: DatasetFilter,
    refused: _Refused = _NOTHING,
) -> Response:
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    filter_problem, status = None, refused.status
    try:
        found = explored(studio, job_id, wanted)
    except ZigguratError as error:
        filter_problem, status = error.as_dict(), status_of(error)
        found = explored(studio, job_id, DatasetFilter(limit=wanted.limit))
    shown = {**_correcting(job, found.schema, refused), "found": found, "wanted": wanted}
    if is_part(request, "found"):
        answer = part(request, "dataset/found.html", status, job=job, **shown)
        place = {**wanted.query, "offset": wanted.offset or None}
        answer.headers["HX-Push-Url"] = address(request, f"/datasets/{job_id}/explore", place)
        return answer
    return page(
        request,
        "dataset/explore.html",
        status,
        **dataset_frame(studio, job, "explore", sum(found.problem_counts.values())),
        **shown,
        filter_problem=filter_problem,
        page_sizes=PAGE_SIZES,
        few_classes=_FEW_CLASSES,
    )


def _sample_page(
    request: Request,
    studio: Studio,
    job_id: str,
    place: tuple[str, int],
    wanted: DatasetFilter,
    *,
    at: int | None = None,
    refused: _Refused = _NOTHING,
) -> Response:
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    found = shown_sample(studio, job_id, *place, wanted, at)
    return page(
        request,
        "dataset/sample.html",
        refused.status,
        **dataset_frame(studio, job, "explore"),
        **_correcting(job, found.schema, refused),
        sample=found.sample,
        around=found.neighbours,
        label_json=label_as_json(found.sample.entry.label),
        wanted=wanted,
        few_classes=_FEW_CLASSES,
    )


def _within(values: Mapping[str, Any]) -> DatasetFilter:
    """Return the filter that a sample is looked at within; its fields have other names where they name the sample."""
    return filter_of({**values, "split": values.get("in_split", "")})


def _correcting(job: Job, schema: Any, refused: _Refused) -> dict[str, Any]:
    one_class = bool(schema.class_names) and schema.kind in ("image-classification", "text-classification", "table")
    if one_class:
        labels = [(name, name) for name in schema.class_names]
    elif schema.kind == "image-pairs":
        labels = [("1", "same"), ("0", "not the same")]
    else:
        labels = []
    return {
        "labels": labels,
        "schema": schema,
        "can_relabel": schema.kind not in ("segmentation", "image-to-image"),
        "typed": refused.typed or _Correction(name=next_name(job.name)),
        "said": refused.said,
    }
