"""New-dataset page: the form, the preview of its source, and the submission."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import Identity
from ziggurat.errors import ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser, UploadUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.caches import of_application
from ziggurat.web.forms import take_files
from ziggurat.web.pages.dataset.view import KIND_NAMES
from ziggurat.web.pages.new_dataset.form import (
    METHODS,
    DatasetForm,
    as_text,
    cloned_texts,
    fill_form,
    is_elsewhere,
    problem_text,
    refuse,
    sent_texts,
    start_texts,
)
from ziggurat.web.pages.new_dataset.preview import Preview, Previews, SupersededError
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_PLACE: Final = "/datasets/new"


def _previews(request: Request, studio: StudioDep) -> Previews:
    return of_application(request, "dataset_previews", lambda: Previews(studio.datasets.preview))


_Shown = Annotated[Previews, Depends(_previews)]


@router.get(_PLACE, include_in_schema=False)
def new_dataset(
    request: Request,
    studio: StudioDep,
    _who: TrainerUser,
    clone: Annotated[str, Query(max_length=200)] = "",
    source: Annotated[str, Query(max_length=4096)] = "",
) -> Response:
    """Return the form; filled in where a dataset is made again."""
    texts = cloned_texts(studio, clone) if clone else {**start_texts(), "source": source}
    return _page(request, fill_form(studio, texts, is_sent=False))


@router.post(_PLACE, include_in_schema=False)
async def create(request: Request, studio: StudioDep, previews: _Shown, who: UploadUser) -> Response:
    """Put the dataset into the queue and show it; where it cannot be, show the form with what is wrong."""
    texts, refused = await _sent(request, studio)
    form = await run_in_threadpool(fill_form, studio, texts, refused=refused)
    form = await run_in_threadpool(_with_archive_seen, previews, form)
    return await run_in_threadpool(_create, request, studio, who, form)


@router.post(f"{_PLACE}/form", include_in_schema=False)
async def check(request: Request, studio: StudioDep, _who: TrainerUser) -> Response:
    """Return the form as it is after what was typed: format, options, problems, and the same as text."""
    texts = sent_texts(await request.form())
    form = await run_in_threadpool(fill_form, studio, texts, is_sent=False)
    return part(request, "new_dataset/form.html", **_values(request, form))


@router.post(f"{_PLACE}/preview", include_in_schema=False)
async def preview(request: Request, studio: StudioDep, previews: _Shown, _who: UploadUser) -> Response:
    """Return what is in the source; without a script, the whole page with it."""
    texts, refused = await _sent(request, studio)
    form = await run_in_threadpool(fill_form, studio, texts, is_sent=False, refused=refused)
    return await run_in_threadpool(_look, request, previews, form)


@router.get(f"{_PLACE}/pictures/{{token}}/{{number}}", include_in_schema=False)
def picture(previews: _Shown, _who: TrainerUser, token: str, number: int, *, mask: bool = False) -> Response:
    """Return an image of a preview, or the mask that lies on it."""
    headers = {"Cache-Control": "private, max-age=3600, immutable"}
    return Response(previews.picture(token, max(0, number), is_mask=mask), media_type="image/png", headers=headers)


@router.get(f"{_PLACE}/paths", include_in_schema=False)
def paths(
    request: Request, studio: StudioDep, _who: TrainerUser, source: Annotated[str, Query(max_length=4096)] = ""
) -> Response:
    """Return what the path that is being typed may become."""
    return part(request, "new_dataset/paths.html", suggestions=studio.paths.suggestions(source))


async def _sent(request: Request, studio: Studio) -> tuple[dict[str, str], dict[str, str]]:
    """Return what was typed, and what is wrong with files; those that were sent have become the source."""
    async with request.form(max_files=10_000, max_fields=2000) as form:
        texts = sent_texts(form)
        try:
            source = await run_in_threadpool(take_files, studio, form.getlist("files"))
        except ZigguratError as error:
            return texts, {"source": problem_text(error)}
    return {**texts, "source": source or texts["source"]}, {}


def _with_archive_seen(previews: Previews, form: DatasetForm) -> DatasetForm:
    """Return the form with a problem where no format is chosen for an archive, and its content has no clear one."""
    asked = form.request
    if asked is None or form.spec is None or form.chosen is not None or is_elsewhere(form.texts["source"]):
        return form
    try:
        previews.of(form.spec.model_dump(mode="json"))
    except ZigguratError as error:
        return refuse(form, error) if error.details.get("options") else form
    return form


def _create(request: Request, studio: Studio, who: Identity, form: DatasetForm) -> Response:
    asked = form.request
    if asked is None:
        return _page(request, form, 422)
    try:
        job = studio.datasets.create(asked, owner=who.name)
    except ZigguratError as error:
        return _page(request, refuse(form, error), status_of(error))
    studio.people.note(who, "dataset.create", job.id)
    return see_other(request, f"/datasets/{job.id}")


def _look(request: Request, previews: Previews, form: DatasetForm) -> Response:
    seen: Preview | None = None
    error: dict[str, Any] | None = None
    if form.spec is not None and "source" not in form.problems:
        try:
            again = request.query_params.get("again") == "true"
            seen = previews.of(form.spec.model_dump(mode="json"), form.texts.get("form_id", ""), again=again)
        except SupersededError:
            return Response(status_code=204)
        except ZigguratError as refused:
            error = refused.as_dict()
    if is_part(request, "preview"):
        return part(request, "new_dataset/preview.html", **_values(request, form, seen, error))
    return _page(request, form, seen=seen, error=error)


def _page(request: Request, form: DatasetForm, status: int = 200, **shown: Any) -> Response:
    return page(request, "new_dataset/page.html", status, **_values(request, form, **shown))


def _values(
    request: Request, form: DatasetForm, seen: Preview | None = None, error: dict[str, Any] | None = None
) -> dict[str, Any]:
    asked = form.request
    studio: Studio = request.app.state.studio
    return {
        "form": form,
        "form_id": form.texts.get("form_id") or secrets.token_urlsafe(9),
        "projects": [project.name for project, _ in studio.projects.all()],
        "methods": METHODS,
        "kind_names": KIND_NAMES,
        "taken_away": as_text(asked, str(request.base_url).rstrip("/")) if asked is not None else None,
        "preview": seen,
        "error": error,
        "leak": seen.leak_warning() if seen is not None else "",
    }
