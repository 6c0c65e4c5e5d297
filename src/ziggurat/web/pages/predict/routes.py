"""Prediction page of a model: one image, several at once, many as a job, or the splits of its dataset."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from ziggurat.entities import Identity
from ziggurat.errors import DataError, DatapointError, UsageError, ZigguratError, broken_rule
from ziggurat.operations import models
from ziggurat.server.dependencies import ImageViewerUser, StudioDep, TrainerUser, UploadUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.server.posted_images import posted_pictures
from ziggurat.web.caches import ImageCache, image_cache
from ziggurat.web.forms import FieldError, at_field, sent_files, take_files, typed_texts, whole_number
from ziggurat.web.pages.predict.generated import generated_answer
from ziggurat.web.pages.predict.values import filled_row, typed_values
from ziggurat.web.pages.predict.view import (
    SPLITS,
    Prediction,
    Question,
    heat_answer,
    layers_answer,
    model_test,
    one_answer,
    some_answer,
    values_answer,
)
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.images import has_secret, picture_source
from ziggurat.workspace.studio.model_inputs import ModelInputs

__all__ = ["router"]

router = new_router()

_PLACE: Final = "/models/{job_id}/test"
_FEW: Final = 100
_MOST_TOP: Final = 100
_KEPT_TOP: Final = 5
_LONGEST_RECEIVED: Final = 300
_SEEDS: Final = 10_000
"""From which a new seed is drawn: short numbers can be told to others."""


@router.get(_PLACE, include_in_schema=False)
def show(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    tab: Annotated[str, Query(max_length=20)] = "",
    checkpoint: Annotated[str, Query(max_length=200)] = "",
    fill: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
) -> Response:
    """Return the page; with ``fill``, its form has the values of that sample of the dataset."""
    if studio.jobs.get(job_id).kind != "train":
        return see_other(request, f"/jobs/{job_id}")
    return _page(request, studio, job_id, tab, {"checkpoint": checkpoint}, fill=fill)


@router.post(f"{_PLACE}/one", include_in_schema=False)
async def one(request: Request, studio: StudioDep, _who: ImageViewerUser, job_id: str) -> Response:
    """Return what the model says of one image; with ``look``, also its ``layers``, or ``grad-cam``."""
    async with request.form(max_files=1, max_fields=20) as form:
        return await run_in_threadpool(_one, request, studio, job_id, form)


@router.post(f"{_PLACE}/few", include_in_schema=False)
async def few(request: Request, studio: StudioDep, _who: ImageViewerUser, job_id: str) -> Response:
    """Return what the model says of several images, at once."""
    async with request.form(max_files=1000, max_fields=20) as form:
        return await run_in_threadpool(_few, request, studio, job_id, form)


@router.post(f"{_PLACE}/generate", include_in_schema=False)
async def generate(request: Request, studio: StudioDep, _who: ImageViewerUser, job_id: str) -> Response:
    """Return what the model makes of a seed, and of numbers that are set by hand."""
    async with request.form(max_files=0, max_fields=60) as form:
        return await run_in_threadpool(_generate, request, studio, job_id, typed_texts(form))


@router.post(f"{_PLACE}/many", include_in_schema=False)
async def many(request: Request, studio: StudioDep, who: UploadUser, job_id: str) -> Response:
    """Put predicting for many images into the queue and show the job."""
    async with request.form(max_files=10_000, max_fields=20) as form:
        return await run_in_threadpool(_many, request, studio, who, job_id, form)


@router.post(f"{_PLACE}/split", include_in_schema=False)
async def evaluate(request: Request, studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Put the evaluation of a split into the queue and show the job."""
    async with request.form(max_files=0, max_fields=20) as form:
        return await run_in_threadpool(_evaluate, request, studio, who, job_id, typed_texts(form))


@router.get(f"{_PLACE}/pictures/{{name}}/{{number}}", include_in_schema=False)
def picture(request: Request, _who: ViewerUser, name: str, number: int) -> Response:
    """Return an image of an answer, as long as it is kept."""
    content = image_cache(request).get(name, number)
    if content is None:
        return Response(status_code=404)
    return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600, immutable"})


@router.get(f"{_PLACE}/seen/{{name}}", include_in_schema=False)
def seen(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    name: str,
    checkpoint: Annotated[str, Query(max_length=200)] = "",
    device: Annotated[str, Query(pattern="^(cpu|[0-9]{1,3})?$")] = "",
) -> Response:
    """Return an image as the network gets it."""
    kept = _kept(request, name)
    if kept is None:
        return Response(status_code=404)
    found = studio.models.activations(job_id, kept, checkpoint=checkpoint, device=device, weights=False)
    content = found["input"]["png"]
    if content is None:
        return Response(status_code=404)
    return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})


def _one(request: Request, studio: Studio, job_id: str, form: FormData) -> Response:
    typed = typed_texts(form)
    url = typed.get("url", "").strip()
    typed["url"] = "" if has_secret(url) else url
    try:
        question = _question(job_id, typed, _MOST_TOP)
        inputs = studio.models.inputs(job_id)
        if inputs.kind != "image":
            return _one_of_values(request, studio, question, inputs, typed)
        chosen = at_field("picture", _picture, request, studio, form, {**typed, "url": url})
        result = _look(studio, question, chosen, image_cache(request), typed)
    except (FieldError, ZigguratError) as error:
        return _refused(request, studio, job_id, "one", typed, error)
    typed = {**typed, "kept": result.kept}
    status = 200 if result.heat_error is None else status_of(result.heat_error)
    if is_part(request, "test-one"):
        values = {"job": studio.jobs.get(job_id), "typed": typed, "one": result, "problems": {}, "error": None}
        return part(request, "predict/one_result.html", status, **values)
    return _page(request, studio, job_id, "one", typed, status=status, one=result)


def _one_of_values(
    request: Request, studio: Studio, question: Question, inputs: ModelInputs, typed: Mapping[str, str]
) -> Response:
    result = values_answer(studio, question, typed_values(inputs, typed), image_cache(request))
    if is_part(request, "test-one"):
        values = {"job": studio.jobs.get(question.model), "typed": typed, "one": result, "problems": {}, "error": None}
        return part(request, "predict/one_result.html", **values)
    return _page(request, studio, question.model, "one", typed, one=result)


def _generate(request: Request, studio: Studio, job_id: str, typed: dict[str, str]) -> Response:
    if typed.get("another"):
        typed["seed"] = str(secrets.randbelow(_SEEDS))
    try:
        question = _question(job_id, typed, _MOST_TOP)
        made = generated_answer(studio, question, typed, image_cache(request))
    except (FieldError, ZigguratError) as error:
        return _refused(request, studio, job_id, "generate", typed, error)
    return _page(request, studio, job_id, "generate", typed, made=made)


def _look(
    studio: Studio, question: Question, picture: tuple[str, bytes], kept: ImageCache, typed: Mapping[str, str]
) -> Prediction:
    """Return what is said of an image, with what the person wants to see beside it."""
    if typed.get("look") == "layers":
        return layers_answer(studio, question, picture, kept)
    if typed.get("look") == "grad-cam":
        chosen = {"class_name": typed.get("grad_cam_class", ""), "layer": typed.get("grad_cam_layer", "")}
        return heat_answer(studio, question, picture, kept, **chosen)
    return one_answer(studio, question, picture, kept)


def _few(request: Request, studio: Studio, job_id: str, form: FormData) -> Response:
    typed = typed_texts(form)
    typed["checkpoint"] = typed.pop("few-checkpoint", "")
    try:
        question = _question(job_id, typed, _MOST_TOP)
        pictures = at_field("pictures", _pictures, studio, form)
        result = some_answer(studio, question, pictures, image_cache(request))
    except (FieldError, ZigguratError) as error:
        return _refused(request, studio, job_id, "many", typed, error)
    return _page(request, studio, job_id, "many", typed, few=result)


def _many(request: Request, studio: Studio, who: Identity, job_id: str, form: FormData) -> Response:
    typed = typed_texts(form)
    try:
        top = whole_number(typed, "top", 5, 1, _KEPT_TOP)
        limit = whole_number(typed, "limit", 0, 0, 2**31 - 1)
        sent = at_field("source", take_files, studio, sent_files(form, "files"))
        typed["source"] = sent or typed.get("source", "").strip()
        if not typed["source"]:
            raise FieldError(
                "source", UsageError("Send files, or name a folder, an archive or a list.", received="nothing")
            )
        source = at_field("source", picture_source, typed["source"], studio.paths, studio.uploads, studio.clock())
        folder = os.path.expanduser(typed.get("image_folder", "").strip())
        if folder:
            at_field("image_folder", studio.paths.allowed, folder)
        checkpoint = typed.get("checkpoint", "")
        wanted = {"source": source, "checkpoint": checkpoint, "image_folder": folder, "top": top, "limit": limit}
        job = models.create_inference(studio, who, job_id, **wanted)
    except (FieldError, ZigguratError) as error:
        return _refused(request, studio, job_id, "many", typed, error)
    return see_other(request, f"/evaluations/{job.id}")


def _evaluate(request: Request, studio: Studio, who: Identity, job_id: str, typed: dict[str, str]) -> Response:
    split = typed.get("split", "val")
    try:
        if split not in ("train", "val", "test"):
            raise UsageError(f"`{split[:50]}` is not a split: these are `train`, `val` and `test`.")
        checkpoint = typed.get("checkpoint", "")
        job = models.create_evaluation(studio, who, job_id, split=split, checkpoint=checkpoint)
    except ZigguratError as error:
        return _refused(request, studio, job_id, "splits", typed, error)
    return see_other(request, f"/evaluations/{job.id}")


def _question(job_id: str, typed: Mapping[str, str], most: int) -> Question:
    device = typed.get("device", "")
    if device not in ("", "cpu") and not (device.isascii() and device.isdigit() and len(device) <= len("999")):
        raise FieldError(
            "device",
            UsageError(f"`device` is `{device[:50]}`; it must be `cpu` or a number."),
        )
    top = whole_number(typed, "top", 5, 1, most)
    return Question(model=job_id, checkpoint=typed.get("checkpoint", ""), device=device, top=top)


def _picture(request: Request, studio: Studio, form: FormData, typed: Mapping[str, str]) -> tuple[str, bytes]:
    """Return the image that is meant: a file that was sent, a path, an address, or else that of the last question."""
    files = sent_files(form, "picture")
    path, url = typed.get("path", "").strip(), typed.get("url", "")
    if files or path:
        return posted_pictures(studio, files[:1], [] if files else [path])[0]
    if url:
        return at_field("url", studio.web_pictures.fetch, url)
    kept = _kept(request, typed.get("kept", ""))
    if kept is None:
        lost = bool(typed.get("kept"))
        raise UsageError(
            "Choose an image, or enter a path or URL.",
            received="one that is not kept any more" if lost else "none",
            advice="Choose it again." if lost else "",
        )
    return kept


def _pictures(studio: Studio, form: FormData) -> list[tuple[str, bytes]]:
    files = sent_files(form, "pictures")
    count = len(files)
    if 0 < count <= _FEW:
        found = posted_pictures(studio, files, [], takes_videos=True)
        count = len(found)
        if count <= _FEW:
            return found
    advice = "Choose fewer. With a network that classifies, they can be predicted as a job." if files else ""
    raise UsageError(f"{count} images are sent; 1 to {_FEW} are predicted at once.", advice=advice)


def _kept(request: Request, name: str) -> tuple[str, bytes] | None:
    kept = image_cache(request)
    content, told = kept.get(name, 0), kept.get(name, 1)
    if content is None or told is None:
        return None
    return told.decode("utf-8", "surrogateescape"), content


def _refused(
    request: Request, studio: Studio, job_id: str, tab: str, typed: dict[str, str], error: FieldError | ZigguratError
) -> Response:
    """Show the form again with what was typed and what is wrong with it."""
    job = studio.jobs.get(job_id)
    field, cause = (error.field, error.error) if isinstance(error, FieldError) else (_field(error), error)
    if isinstance(cause, DatapointError):
        cause = DataError("An image must be readable.", received=f"`{cause.key}`: {cause.reason.rstrip('.')}")
    status = status_of(cause)
    problems = {field: _words(cause)} if field else {}
    said = None if field else cause.as_dict()
    if tab == "one" and is_part(request, "test-one"):
        part_values = {"job": job, "typed": typed, "one": None, "problems": problems, "error": said}
        return part(request, "predict/one_result.html", status, **part_values)
    return _page(request, studio, job_id, tab, typed, status=status, problems=problems, error=said)


def _field(error: ZigguratError) -> str:
    """Return the field that an error of the studio is about; empty where it is none."""
    return "checkpoint" if "checkpoint" in error.code else ""


def _words(error: ZigguratError) -> str:
    received = str(error.received or "")
    if len(received) > _LONGEST_RECEIVED:
        received = f"{received[:_LONGEST_RECEIVED]}…"
    return f"{broken_rule(error.rule, received)} {error.advice}".rstrip()


def _page(
    request: Request,
    studio: Studio,
    job_id: str,
    tab: str,
    typed: Mapping[str, str],
    *,
    status: int = 200,
    fill: int | None = None,
    **shown: Any,
) -> Response:
    view = model_test(studio, studio.jobs.get(job_id), tab)
    tab = tab if tab in view.tabs else next(iter(view.tabs))
    values = {"one": None, "few": None, "made": None, "problems": {}, "error": None, **shown}
    filled = filled_row(studio, view.dataset, view.inputs, fill) if fill is not None and view.inputs else None
    typed = {**typed, **(filled.typed if filled else {})}
    topics = ("jobs",)
    values |= {"view": view, "tab": tab, "tabs": view.tabs, "typed": typed, "split_words": SPLITS, "filled": filled}
    if tab == "generate" and is_part(request, "generate"):
        return part(request, "predict/generate.html", status, job=view.job, **values)
    return page(request, "predict/page.html", status, topics=topics, **values)
