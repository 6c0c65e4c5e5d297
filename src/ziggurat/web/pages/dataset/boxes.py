"""Pages for corrections of boxes: one image with its boxes, and the images that wait for a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import Identity
from ziggurat.errors import DataError, OutdatedError, UsageError, ZigguratError
from ziggurat.operations import datasets
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.dataset.explorer_view import shown_sample
from ziggurat.web.pages.dataset.filters import DatasetFilter, filter_of
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished
from ziggurat.web.pages.dataset.view import next_name
from ziggurat.web.rendering import page, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_MOST_FIELDS: Final = 50_000
_SIDES: Final = ("left", "top", "right", "bottom")
_Row = Annotated[int, Path(ge=0, lt=2**31)]
_At = Annotated[int | None, Query(ge=0, lt=2**31)]


@router.get("/datasets/{job_id}/boxes", include_in_schema=False)
def pending(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the images with corrected boxes that are not a version yet."""
    return _pending_page(request, studio, job_id)


@router.post("/datasets/{job_id}/boxes", include_in_schema=False)
async def make_version(request: Request, studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Make a version of the corrected boxes."""
    texts = await _texts(request)
    return await run_in_threadpool(_made, request, studio, who, job_id, texts)


@router.get("/datasets/{job_id}/boxes/{split}/{row}", include_in_schema=False)
def boxes(
    request: Request, studio: StudioDep, who: ViewerUser, job_id: str, split: str, row: _Row, at: _At = None
) -> Response:
    """Return one image with its boxes, to correct them."""
    wanted = _within(request.query_params)
    return _image_page(request, studio, who, job_id, (split, row, at), wanted)


@router.post("/datasets/{job_id}/boxes/{split}/{row}", include_in_schema=False)
async def change(
    request: Request, studio: StudioDep, who: TrainerUser, job_id: str, split: str, row: _Row, at: _At = None
) -> Response:
    """Save, undo or discard the boxes of one image, as the table of boxes asks."""
    texts = await _texts(request)
    return await run_in_threadpool(_changed, request, studio, who, job_id, (split, row, at), texts)


async def _texts(request: Request) -> dict[str, str]:
    form = await request.form(max_fields=_MOST_FIELDS)
    return {name: value for name, value in form.multi_items() if isinstance(value, str)}


def _within(values: Mapping[str, Any]) -> DatasetFilter:
    return filter_of({**dict(values), "split": values.get("in_split", "")})


# ---- images that wait for a version


def _made(request: Request, studio: Studio, who: Identity, job_id: str, texts: Mapping[str, str]) -> Response:
    try:
        if not texts.get("name", "").strip():
            raise UsageError("A version has a name.", received="none", advice="Type a name.")
        job = datasets.make_version(studio, who, job_id, texts["name"].strip())
    except ZigguratError as error:
        return _pending_page(request, studio, job_id, error, texts.get("name", ""))
    return see_other(request, f"/datasets/{job.id}")


def _pending_page(
    request: Request, studio: Studio, job_id: str, error: ZigguratError | None = None, name: str | None = None
) -> Response:
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    return page(
        request,
        "dataset/pending_boxes.html",
        200 if error is None else status_of(error),
        **{**dataset_frame(studio, job, "explore"), "is_trainable": False},  # one primary button: the version
        images=studio.datasets.boxes.pending(job_id),
        name=next_name(job.name) if name is None else name,
        error=error,
    )


# ---- one image


def _changed(
    request: Request,
    studio: Studio,
    who: Identity,
    job_id: str,
    place: tuple[str, int, int | None],
    texts: Mapping[str, str],
) -> Response:
    split, row, at = place
    sample, wanted, what = f"{split}/{row}", _within(request.query_params), texts.get("what", "save")
    typed = None
    try:
        version = _whole(texts.get("version", ""), "the number of the state")
        if what == "undo":
            studio.datasets.boxes.undo(job_id, sample, version=version, user=who.name)
        elif what == "discard":
            studio.datasets.boxes.discard(job_id, sample, version=version, user=who.name)
        else:
            typed = _typed(texts)
            studio.datasets.boxes.save(job_id, sample, typed, version=version, user=who.name)
    except ZigguratError as error:
        return _image_page(request, studio, who, job_id, place, wanted, (error, typed))
    return see_other(request, f"/datasets/{job_id}/boxes/{sample}", {"at": at, **wanted.within})


def _typed(texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the objects of the rows of the table; rows to delete, and an empty new one, are left out."""
    found = []
    for number in sorted(int(name[6:]) for name in texts if name.startswith("class-") and name[6:].isdecimal()):
        sides = [texts.get(f"{side}-{number}", "").strip() for side in _SIDES]
        if texts.get(f"delete-{number}") or not any(sides):
            continue
        source = texts.get(f"source-{number}", "")
        found.append(
            {
                "class": _whole(texts[f"class-{number}"], "the number of a class"),
                "box": [_number(side) for side in sides],
                "source": _whole(source, "the place of an object") if source else None,
            }
        )
    return found


def _whole(text: str, what: str) -> int:
    if not text.removeprefix("-").isdecimal() or len(text) > 9:
        raise UsageError(f"`{text[:40]}` is not {what}.")
    return int(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataError(
            f"`{text[:40]}` is no number of pixels, as the sides of a box are.", advice="Such as 12 or 12.5."
        ) from None
    return int(value) if value.is_integer() else value


def _image_page(
    request: Request,
    studio: Studio,
    who: Identity,
    job_id: str,
    place: tuple[str, int, int | None],
    wanted: DatasetFilter,
    refused: tuple[ZigguratError | None, list[dict[str, Any]] | None] = (None, None),
) -> Response:
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    split, row, at = place
    error, typed = refused
    state = studio.datasets.boxes.get(job_id, f"{split}/{row}").as_json()
    shown = shown_sample(studio, job_id, split, row, wanted, at)
    objects = state["objects"] if typed is None else [{"source": None, **each} for each in typed]
    return page(
        request,
        "dataset/boxes.html",
        200 if error is None else status_of(error),
        job=job,
        shown=shown,
        sample=shown.sample,
        around=shown.neighbours,
        wanted=wanted,
        state=state,
        objects=objects,
        sources=studio.box_proposals.sources(job_id, split),
        pending_count=len(studio.datasets.boxes.places(job_id)),
        error=error,
        is_outdated=isinstance(error, OutdatedError),
        me=who.name,
    )
