"""Page on which the classes of a dataset get names, and those of masks colors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import Identity
from ziggurat.errors import DataError, UsageError, ZigguratError
from ziggurat.operations.datasets import change_classes
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.tasks.segmentation import palette
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished
from ziggurat.web.pages.dataset.view import next_name
from ziggurat.web.rendering import page, see_other
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.datasets import Schema

__all__ = ["router"]

router = new_router()

_MOST_FIELDS = 10_000


@dataclass(frozen=True, kw_only=True)
class _ClassRow:
    """A class as the form shows it.

    Args:
        number: of the class.
        value: in the masks of the source; empty where it is the number.
        name: as it is, or as it was typed.
        color: ``#rrggbb``; empty where classes have no colors.
    """

    number: int
    value: str
    name: str
    color: str


@router.get("/datasets/{job_id}/classes", include_in_schema=False)
def classes(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the classes of a dataset, to name and color them."""
    return _classes_page(request, studio, job_id)


@router.post("/datasets/{job_id}/classes", include_in_schema=False)
async def name_classes(request: Request, studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Make a version with other names or colors."""
    form = await request.form(max_fields=_MOST_FIELDS)
    texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    return await run_in_threadpool(_named, request, studio, who, job_id, texts)


def _named(request: Request, studio: Studio, who: Identity, job_id: str, texts: Mapping[str, str]) -> Response:
    try:
        version = texts.get("name", "").strip()
        if not version:
            raise UsageError("A version has a name.", received="none", advice="Type a name.")
        with studio.datasets.opened(job_id) as dataset:
            schema = dataset.schema
        job = change_classes(studio, who, job_id, version, **_changes(schema, texts))
    except ZigguratError as error:
        return _classes_page(request, studio, job_id, error, texts)
    return see_other(request, f"/datasets/{job.id}")


def _changes(schema: Schema, texts: Mapping[str, str]) -> dict[str, list[object]]:
    """Return what ``Datasets.change_classes`` takes of what was typed."""
    count = len(schema.class_names)
    if not count:
        return {"names": [line.strip() for line in texts.get("names", "").splitlines() if line.strip()]}
    names = [texts.get(f"class-{number}", "").strip() for number in range(count)]
    before = [_hex(color) for color in palette(schema).tolist()] if schema.kind == "segmentation" else []
    colors = [texts.get(f"color-{number}", was) for number, was in enumerate(before)]
    return {"names": [*names], "colours": [_rgb(color) for color in colors] if colors != before else []}


def _rgb(text: str) -> tuple[int, ...]:
    try:
        return tuple(bytes.fromhex(text.removeprefix("#")))
    except ValueError:
        raise UsageError("A color is written as #rrggbb.", received=f"`{text[:40]}`") from None


def _hex(color: list[int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*color)


def _classes_page(
    request: Request,
    studio: Studio,
    job_id: str,
    error: ZigguratError | None = None,
    typed: Mapping[str, str] | None = None,
) -> Response:
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    with studio.datasets.opened(job_id) as dataset:
        schema = dataset.schema
    if not schema.class_names and schema.kind != "segmentation":
        raise DataError("Classes are named in a dataset that has some.", received=f"kind {schema.kind} without classes")
    typed = typed or {}
    return page(
        request,
        "dataset/classes.html",
        200 if error is None else status_of(error),
        **{**dataset_frame(studio, job, "classes"), "is_trainable": False},  # one primary button: the version
        rows=_rows(schema, typed),
        names=typed.get("names", ""),
        has_values="mask_values" in schema.details,
        ignored=schema.ignore_class,
        version_name=typed.get("name", next_name(job.name)),
        error=error,
    )


def _rows(schema: Schema, typed: Mapping[str, str]) -> list[_ClassRow]:
    colors = [_hex(color) for color in palette(schema).tolist()] if schema.kind == "segmentation" else []
    values = schema.details.get("mask_values", ())
    return [
        _ClassRow(
            number=number,
            value=str(values[number]) if number < len(values) else "",
            name=typed.get(f"class-{number}", name),
            color=typed.get(f"color-{number}", colors[number]) if colors else "",
        )
        for number, name in enumerate(schema.class_names)
    ]
