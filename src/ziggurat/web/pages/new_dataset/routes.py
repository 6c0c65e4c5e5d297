"""New-dataset page: the form and its draft, the preview of its source, allowed folders, and the submission."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from ziggurat.entities import Identity
from ziggurat.errors import ZigguratError
from ziggurat.operations.administration import allow_root
from ziggurat.operations.datasets import create as create_dataset
from ziggurat.server.dependencies import AdminUser, StudioDep, TrainerUser, UploadUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import identity_of, new_router
from ziggurat.web.caches import of_application
from ziggurat.web.drafts import drop_draft, load_draft, save_draft, tab_query
from ziggurat.web.forms import take_files
from ziggurat.web.pages.dataset.view import KIND_NAMES
from ziggurat.web.pages.new_dataset.as_text import as_text
from ziggurat.web.pages.new_dataset.field_texts import METHODS
from ziggurat.web.pages.new_dataset.form import (
    HUB,
    DatasetForm,
    cloned_texts,
    fill_form,
    is_elsewhere,
    is_unrecognized,
    problem_text,
    refuse,
    sent_texts,
    start_texts,
    unrecognized_text,
)
from ziggurat.web.pages.new_dataset.preview import Preview, Previews, SupersededError
from ziggurat.web.pages.new_dataset.view import (
    NO_IMAGES,
    detection_of,
    folds_of,
    ready_of,
    source_tab,
    split_counts,
    uploaded_name,
    uses_shares,
)
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_PLACE: Final = "/datasets/new"
_DRAFT: Final = "new-dataset"
_TILES: Final = 8


def _previews(request: Request, studio: StudioDep) -> Previews:
    return of_application(request, "dataset_previews", lambda: Previews(studio.datasets.preview))


_Shown = Annotated[Previews, Depends(_previews)]


class _Begin(BaseModel):
    """What an address says that the form begins with."""

    clone: str = Field("", max_length=200)
    source: str = Field("", max_length=4096)
    name: str = Field("", max_length=200)
    method: str = Field("", max_length=200)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What is known of the source when the page is shown."""

    preview: Preview | None = None
    error: dict[str, Any] | None = None
    first_tile: int = 0


@router.get(_PLACE, include_in_schema=False)
def new_dataset(
    request: Request,
    studio: StudioDep,
    previews: _Shown,
    _who: TrainerUser,
    begin: Annotated[_Begin, Query()],
) -> Response:
    """Return the form: a clone or a source that the address names, else the draft, else an empty one.

    A clone may get another method of splitting, as a warning about leaks offers it.
    """
    draft = load_draft(request, _DRAFT)
    kept = sent_texts(draft.form()) if draft is not None else start_texts()
    if begin.clone and kept["parent"] != begin.clone:
        kept = cloned_texts(studio, begin.clone)
        if begin.method in {method for method, *_ in METHODS}:
            kept["splits.method"] = begin.method
    elif begin.source and kept["source"] != begin.source:
        kept = {**start_texts(), "source": begin.source, "name": begin.name}
    elif draft is not None:
        form = fill_form(studio, kept, is_sent=False)
        return _page(request, form, _known(previews, form), saved_at=draft.saved_at)
    form = fill_form(studio, kept, is_sent=False)
    return _page(request, form, _known(previews, form))


@router.post(_PLACE, include_in_schema=False)
async def create(request: Request, studio: StudioDep, previews: _Shown, who: UploadUser) -> Response:
    """Put the dataset into the queue and show it; where it cannot be, show the form with what is wrong."""
    texts, refused = await _sent(request, studio)
    form = await run_in_threadpool(fill_form, studio, texts, refused=refused)
    form = await run_in_threadpool(_with_archive_seen, previews, form)
    return await run_in_threadpool(_create, request, studio, previews, who, form)


@router.post(f"{_PLACE}/form", include_in_schema=False)
async def check(request: Request, studio: StudioDep, previews: _Shown, _who: TrainerUser) -> Response:
    """Return the form as it is after what was typed: format, options, problems, and the same as text."""
    texts = sent_texts(await request.form())
    return await run_in_threadpool(_check, request, studio, previews, texts)


@router.post(f"{_PLACE}/preview", include_in_schema=False)
async def preview(
    request: Request,
    studio: StudioDep,
    previews: _Shown,
    _who: UploadUser,
    tiles: Annotated[int, Query(ge=0, le=1000)] = 0,
) -> Response:
    """Return what is in the source; without a script, the whole page with it."""
    texts, refused = await _sent(request, studio)
    form = await run_in_threadpool(fill_form, studio, texts, is_sent=False, refused=refused)
    return await run_in_threadpool(_look, request, previews, form, tiles)


@router.post(f"{_PLACE}/allow", include_in_schema=False)
async def allow(request: Request, studio: StudioDep, who: AdminUser) -> Response:
    """Allow the folder of the source, and go on with the form."""
    texts = sent_texts(await request.form())
    return await run_in_threadpool(_allow, request, studio, who, texts)


@router.post(f"{_PLACE}/draft", include_in_schema=False)
async def keep(request: Request, _studio: StudioDep, _who: TrainerUser) -> Response:
    """Save the form of a page that is left."""
    texts = sent_texts(await request.form())
    await run_in_threadpool(_save, request, texts)
    return Response(status_code=204)


@router.post(f"{_PLACE}/reset", include_in_schema=False)
def reset(request: Request, _studio: StudioDep, _who: TrainerUser) -> Response:
    """Delete the draft and show an empty form."""
    drop_draft(request, _DRAFT)
    return see_other(request, _PLACE, tab_query(request))


@router.get(f"{_PLACE}/folders", include_in_schema=False)
def folders(
    request: Request, studio: StudioDep, _who: TrainerUser, folder: Annotated[str, Query(max_length=4096)] = ""
) -> Response:
    """Return a list of an allowed folder for the chooser."""
    try:
        found = studio.paths.listing(folder)
    except ZigguratError as error:
        return part(request, "new_dataset/folders.html", found=studio.paths.listing(), error=error)
    return part(request, "new_dataset/folders.html", found=found)


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


def _check(request: Request, studio: Studio, previews: Previews, texts: dict[str, str]) -> Response:
    saved_at = _save(request, texts)  # first: the answer to what is typed next may be sooner
    form = fill_form(studio, texts, is_sent=False)
    values = _values(request, form, _known(previews, form), saved_at=saved_at)
    return part(request, "new_dataset/checked.html", **values)


def _save(request: Request, texts: Mapping[str, str]) -> float | None:
    """Save the form as a draft; return when, or None where it is as it was at the start."""
    typed = {name: text for name, text in texts.items() if name != "form_id"}
    if all(text == start_texts().get(name, "") for name, text in typed.items()):
        return None
    draft = save_draft(request, _DRAFT, FormData(list(typed.items())))
    return None if draft is None else draft.saved_at


def _known(previews: Previews, form: DatasetForm) -> _Seen:
    """Return the preview of the form's source where it was made a short time ago."""
    if form.spec is None or "source" in form.problems:
        return _Seen()
    return _Seen(preview=previews.known(form.spec.model_dump(mode="json")))


def _with_archive_seen(previews: Previews, form: DatasetForm) -> DatasetForm:
    """Return the form with a problem where no format is chosen for an archive, and its content has no clear one."""
    asked = form.request
    if asked is None or form.spec is None or form.chosen is not None or is_elsewhere(form.texts["source"]):
        return form
    try:
        previews.of(form.spec.model_dump(mode="json"))
    except ZigguratError as error:
        return _without_format(form, error)
    return form


def _without_format(form: DatasetForm, error: ZigguratError) -> DatasetForm:
    """Return the form with a problem at the format, or at its option, where a preview did not find it clear."""
    if is_unrecognized(error):
        wrong = unrecognized_text(Path(form.texts["source"]), error)
        return replace(form, problems={**form.problems, "format": wrong})
    asks = str(error.details.get("field", "")).startswith("options.")  # an option of the format must say it
    return refuse(form, error) if asks or error.details.get("options") else form


def _create(request: Request, studio: Studio, previews: Previews, who: Identity, form: DatasetForm) -> Response:
    asked = form.request
    if asked is None:
        return _page(request, form, _known(previews, form), 422, saved_at=_save(request, form.texts))
    try:
        job = create_dataset(studio, who, asked)
    except ZigguratError as error:
        saved_at = _save(request, form.texts)
        return _page(request, refuse(form, error), _known(previews, form), status_of(error), saved_at=saved_at)
    drop_draft(request, _DRAFT)
    return see_other(request, f"/datasets/{job.id}")


def _allow(request: Request, studio: Studio, who: Identity, texts: dict[str, str]) -> Response:
    try:
        allow_root(studio, who, texts["source"])
    except ZigguratError as error:
        form = fill_form(studio, texts, is_sent=False, refused={"source": problem_text(error)})
        values = _values(request, form, _Seen(), saved_at=_save(request, form.texts))
        template = "checked" if is_part(request, "dataset-fields") else "page"
        return page(request, f"new_dataset/{template}.html", status_of(error), **values)
    _save(request, texts)
    return see_other(request, _PLACE)


def _look(request: Request, previews: Previews, form: DatasetForm, first_tile: int) -> Response:
    seen: Preview | None = None
    error: dict[str, Any] | None = None
    if form.spec is not None and "source" not in form.problems and not is_elsewhere(form.texts["source"]):
        try:
            again = request.query_params.get("again") == "true"
            seen = previews.of(form.spec.model_dump(mode="json"), form.texts.get("form_id", ""), again=again)
        except SupersededError:
            return Response(status_code=204)
        except ZigguratError as refused:
            form, error = _without_format(form, refused), refused.as_dict()
            if is_unrecognized(refused):
                error["rule"] = form.wrong("format")
    found = _Seen(preview=seen, error=error, first_tile=first_tile)
    if is_part(request, "preview"):  # the check of the form saved the draft; what is typed meanwhile is newer
        return part(request, "new_dataset/previewed.html", **_values(request, form, found))
    return _page(request, form, found, saved_at=_save(request, form.texts))


def _page(
    request: Request, form: DatasetForm, seen: _Seen | None = None, status: int = 200, *, saved_at: float | None = None
) -> Response:
    values = _values(request, form, seen or _Seen(), saved_at=saved_at)
    return page(request, "new_dataset/page.html", status, **values)


def _values(request: Request, form: DatasetForm, seen: _Seen, *, saved_at: float | None = None) -> dict[str, Any]:
    asked = form.request
    studio: Studio = request.app.state.studio
    shown = seen.preview
    is_admin = identity_of(request).may("admin", "admin")
    return {
        "form": form,
        "form_id": form.texts.get("form_id") or secrets.token_urlsafe(9),
        "projects": studio.projects.names(),
        "methods": METHODS,
        "kind_names": KIND_NAMES,
        "taken_away": as_text(asked, str(request.base_url).rstrip("/")) if asked is not None else None,
        "preview": shown,
        "tiles": _tiles(shown, seen.first_tile) if shown is not None else [],
        "error": seen.error,
        "elsewhere": is_elsewhere(form.texts["source"]),
        "leak": shown.leak_warning() if shown is not None else "",
        "tab": source_tab(studio, form),
        "hub": form.texts["source"].removeprefix(HUB) if form.texts["source"].startswith(HUB) else "",
        "has_hub": find_spec("huggingface_hub") is not None,
        "uploaded": uploaded_name(studio, form.texts["source"]),
        "detection": detection_of(form, shown),
        "splits": split_counts(form, shown),
        "uses_shares": uses_shares(form, shown),
        "folds": folds_of(form, shown),
        "ready": ready_of(studio, form, shown),
        "has_images": (shown.kind if shown is not None else form.kind) not in NO_IMAGES,
        "allowable": studio.paths.folder_to_allow(form.texts["source"]) if form.is_outside and is_admin else "",
        "saved_at": saved_at,
    }


def _tiles(preview: Preview, first: int) -> list[int]:
    """Return the numbers of the samples that are shown: some of them, spread over the whole source."""
    count = len(preview.found["samples"])
    steps = max(1, -(-count // _TILES))
    return list(range(first % steps, count, steps))[:_TILES]
