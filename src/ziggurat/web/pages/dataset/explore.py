"""Dataset explorer: samples that match a filter, one sample among them, and corrections of samples."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import Identity, Job
from ziggurat.errors import UsageError, ZigguratError
from ziggurat.operations import datasets
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.caches import BackgroundResult, background_results
from ziggurat.web.pages.dataset.explore_map import map_view
from ziggurat.web.pages.dataset.explorer_view import chosen_places, explored, shown_sample
from ziggurat.web.pages.dataset.filters import MOST_CLASSES, ORDERS, PAGE_SIZES, DatasetFilter, filter_of
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished, statistics_result
from ziggurat.web.pages.dataset.samples import label_as_json
from ziggurat.web.pages.dataset.view import next_name
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.web.urls import address
from ziggurat.workspace.datasets import MOST_MASKS
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_LONGEST_NAME: Final = 200
_MASKS_WAIT_S: Final = 1.0
_NEEDED_MASKS_WAIT_S: Final = 60.0
_LONGEST_EDITS: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class _Correction:
    """What was typed into the form that makes a version.

    Args:
        what: ``relabel``, ``exclude`` or ``edits``.
        samples: that were ticked, as ``SPLIT/ROW``.
        is_all: whether all that the filter leaves are meant.
        label: that they are to get.
        reason: why they are left out.
        name: of the new version.
        single: ``SPLIT/ROW`` of the page that the form stands on; empty for the explorer.
        edits: JSON of many corrections: sample → its label, or null to leave it out.
    """

    what: str = ""
    samples: Sequence[str] = field(default_factory=tuple)
    is_all: bool = False
    label: str = ""
    reason: str = ""
    name: str = ""
    single: str = ""
    edits: str = ""


@dataclass(frozen=True, kw_only=True)
class _Refused:
    """What is shown of a correction that was not made.

    Args:
        typed: what was typed; None if nothing was.
        error: what is wrong with it; None for nothing.
    """

    typed: _Correction | None = None
    error: ZigguratError | None = None


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
        edits=texts.get("edits", "")[:_LONGEST_EDITS],
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
    return see_other(request, f"/datasets/{job.id}")


def _made(studio: Studio, who: Identity, job_id: str, asked: _Correction, wanted: DatasetFilter) -> Job:
    """Return the version."""
    if not 0 < len(asked.name) <= _LONGEST_NAME:
        raise UsageError(
            f"A version has a name of 1 to {_LONGEST_NAME} characters.", received=f"{len(asked.name)} characters"
        )
    if asked.what == "edits":
        labels, excluded = _edits(asked.edits)
        return datasets.correct(studio, who, job_id, labels, excluded, asked.reason, asked.name)
    samples = chosen_places(studio, job_id, wanted) if asked.is_all else list(asked.samples)
    if not samples:
        raise UsageError("Choose at least one sample.", advice="Select the boxes beside the samples.")
    if asked.what == "relabel":
        if not asked.label.strip():
            raise UsageError("Choose the label that the samples are to get.")
        return datasets.relabel(studio, who, job_id, samples, asked.label, asked.name)
    if asked.what == "exclude":
        return datasets.exclude(studio, who, job_id, samples, reason=asked.reason, name=asked.name)
    raise UsageError("Samples are given another label, or left out.", received=f"`{asked.what[:40]}`")


def _edits(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return sample → label, and the samples to leave out."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # nesting without end
        found = None
    if not isinstance(found, dict) or not found:
        raise UsageError(f"`{text[:40]}` is no object of samples with their labels.")
    labels = {str(sample): label for sample, label in found.items() if label is not None}
    return labels, [str(sample) for sample, label in found.items() if label is None]


def _refused(
    request: Request,
    studio: Studio,
    job_id: str,
    sent: tuple[_Correction, Mapping[str, str]],
    error: ZigguratError,
) -> Response:
    """Show the page again with what was typed and what is wrong with it."""
    asked, texts = sent
    refused = _Refused(typed=asked, error=error)
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
    with studio.datasets.opened(job_id):  # once for all that follows
        filter_problem, status, is_counting = None, 200, False
        described = studio.datasets.describe(job_id)
        try:
            masks = _mask_classes(request, studio, job_id, described, is_needed="class_name" in wanted.typed)
            is_counting = masks is not None and not masks.is_ready
            numbers = _mask_numbers(request, studio, job_id, described)
            found = explored(studio, job_id, wanted, numbers, None if masks is None or is_counting else masks.value)
        except ZigguratError as error:
            filter_problem, status = error.as_dict(), status_of(error)
            wanted = wanted.without("split", "class_name", "similar", "area")  # the names that may be unknown
            found = explored(studio, job_id, wanted)
        shown = {
            **_correcting(job, found.schema, refused),
            "found": found,
            "wanted": wanted,
            "is_counting": is_counting,
            "orders": _orders(found, wanted),
            "corrected": set(studio.datasets.boxes.places(job_id)),
        }
        maps = map_view(studio, job, found.mapped, wanted, described) if wanted.view == "map" else None
        if is_part(request, "found"):
            answer = part(request, "dataset/found.html", status, job=job, **shown)
            place = {**wanted.query, "offset": wanted.offset or None}
            answer.headers["HX-Push-Url"] = address(request, f"/datasets/{job_id}/explore", place)
            return answer
        return page(
            request,
            "dataset/explore.html",
            status,
            **dataset_frame(studio, job, "explore", described),
            **shown,
            chosen=_first_sample(studio, job, found, wanted, refused),
            filter_problem=filter_problem,
            page_sizes=PAGE_SIZES,
            few_classes=MOST_CLASSES,
            maps=maps,
            topics=maps.topics if maps is not None else (),
        )


def _mask_numbers(request: Request, studio: Studio, job_id: str, described: Mapping[str, Any]) -> list[int]:
    """Return the class numbers of masks without names, once they were counted."""
    if described["kind"] != "segmentation" or described["classes"]:
        return []
    found = statistics_result(request, studio, job_id, 0.0)
    masks = found.value.masks if found.is_ready and found.value is not None else None
    return [] if masks is None else sorted(number for number, *_ in masks.shares)


def _mask_classes(
    request: Request, studio: Studio, job_id: str, described: Mapping[str, Any], *, is_needed: bool
) -> BackgroundResult | None:
    """Return the classes in the masks, which are read in the background, once; None without masks, or with too many."""
    if described["kind"] != "segmentation" or sum(described["splits"].values()) > MOST_MASKS:
        return None
    wait_s = _NEEDED_MASKS_WAIT_S if is_needed else _MASKS_WAIT_S
    read = background_results(request)
    return read.get(("mask-classes", job_id), lambda: studio.datasets.mask_classes(job_id), wait_s=wait_s)


def _orders(found: Any, wanted: DatasetFilter) -> list[tuple[str, str]]:
    needed = {"doubtful": found.predicted is not None, "ranked": wanted.needs_map}
    return [(name, text) for name, text in ORDERS.items() if needed.get(name, True)]


def _first_sample(studio: Studio, job: Job, found: Any, wanted: DatasetFilter, refused: _Refused) -> Any:
    """Return what the drawer shows at first; None where nothing is listed."""
    if not found.tiles:
        return None
    entry = found.tiles[0].sample.entry
    return _sample_values(studio, job, (entry.split, entry.row), wanted, at=wanted.offset, refused=refused)


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
    values = _sample_values(studio, job, place, wanted, at=at, refused=refused)
    if is_part(request, "drawer"):
        return part(request, "dataset/drawer.html", job=job, wanted=wanted, few_classes=MOST_CLASSES, **values)
    return page(
        request,
        "dataset/sample.html",
        **dataset_frame(studio, job, "explore"),
        **values,
        wanted=wanted,
        few_classes=MOST_CLASSES,
    )


def _sample_values(
    studio: Studio,
    job: Job,
    place: tuple[str, int],
    wanted: DatasetFilter,
    *,
    at: int | None,
    refused: _Refused,
) -> dict[str, Any]:
    found = shown_sample(studio, job.id, *place, wanted, at)
    return {
        **_correcting(job, found.schema, refused),
        "shown": found,
        "sample": found.sample,
        "around": found.neighbours,
        "label_json": label_as_json(found.sample.entry.label),
    }


def _within(values: Mapping[str, Any]) -> DatasetFilter:
    """Return the filter that a sample is looked at within; its fields have other names where they name the sample."""
    return filter_of({**dict(values), "split": values.get("in_split", "")})


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
        "error": refused.error,
    }
