"""Page of pretrained weights, with its form actions: add a file, delete, download, cancel a download."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from ziggurat.entities import Identity
from ziggurat.errors import UsageError, ZigguratError
from ziggurat.operations import weights
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router, require
from ziggurat.web.flash import Outcome, flash_messages, see_deleted
from ziggurat.web.forms import sent_files, take_files
from ziggurat.web.pages.pretrained.view import FIELDS, field_of, pretrained_view
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.weights import NewWeights, class_names_of, name_of_file, preprocessing_of

__all__ = ["router"]

router = new_router()

_PLACE: Final = "/pretrained"
_FILE_BYTES: Final = 8 << 30
_LONGEST: Final = 4 << 20
_LISTS: Final = "weights-lists"
_SenderUser = Annotated[Identity, require("trainer", "write", limit_bytes=_FILE_BYTES)]
"""A user who may make and change, and sends a file of weights."""


@router.get(_PLACE, include_in_schema=False)
def pretrained(
    request: Request, studio: StudioDep, _who: ViewerUser, said: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """Return the page, or its lists as they are now."""
    if is_part(request, _LISTS):
        return part(request, "pretrained/lists.html", view=pretrained_view(studio))
    outcome = flash_messages(request).take(said) if said else None
    return _page(request, studio, outcome=outcome)


@router.post(f"{_PLACE}/add", include_in_schema=False)
async def add(request: Request, studio: StudioDep, who: _SenderUser) -> Response:
    """Add a file of weights; where it cannot be, show the form with what is wrong."""
    async with request.form() as sent:
        return await run_in_threadpool(_add, request, studio, who, sent)


@router.post(_PLACE + "/{name}/delete", include_in_schema=False)
def remove(request: Request, studio: StudioDep, who: TrainerUser, name: str) -> Response:
    """Delete weights that no training needs now."""
    try:
        deleted_id = weights.remove(studio, who, name)
    except ZigguratError as error:  # deleted in another tab, or in use
        return _page(request, studio, error=error)
    return see_deleted(request, _PLACE, name, deleted_id)


@router.post(_PLACE + "/{name}/download", include_in_schema=False)
def download(request: Request, studio: StudioDep, who: TrainerUser, name: str) -> Response:
    """Download an entry of the list in the background."""
    try:
        weights.download(studio, who, name)
    except ZigguratError as error:  # it was added in another tab
        return _page(request, studio, error=error)
    return see_other(request, _PLACE)


@router.post(_PLACE + "/{name}/cancel", include_in_schema=False)
def cancel(request: Request, studio: StudioDep, who: TrainerUser, name: str) -> Response:
    """End a download, or take one that failed out of the list."""
    try:
        weights.cancel(studio, who, name)
    except ZigguratError as error:  # it has ended
        return _page(request, studio, error=error)
    return see_other(request, _PLACE)


def _add(request: Request, studio: Studio, who: Identity, sent: FormData) -> Response:
    typed = {name: str(sent.get(name) or "")[:_LONGEST] for name in FIELDS}
    files, source = sent_files(sent, "file"), ""
    try:
        if not files:
            raise UsageError(
                "No file of weights is chosen.", advice="Choose a file of this machine.", details={"field": "file"}
            )
        name_of_file(Path(str(files[0].filename)))
        new = _new_weights(typed)
        source = take_files(studio, files[:1])
        file = next(each for each in Path(source).rglob("*") if each.is_file())
        made = weights.add(studio, who, file, new)
    except ZigguratError as error:
        return _refused(request, studio, error, typed)
    finally:
        if source:
            studio.uploads.remove(Path(source).parent.name)
    return _done(request, f"{made.title} was added: {made.arrays} arrays. A spec names it {made.reference}.")


def _new_weights(typed: dict[str, str]) -> NewWeights:
    given: dict[str, Any] = {name: typed[name] for name in ("name", "title", "network", "license", "source", "sha256")}
    preprocessing = preprocessing_of(*(typed[name] for name in ("mean", "std", "size", "color")))
    return NewWeights(**given, classes=class_names_of(typed["classes"].encode()), preprocessing=preprocessing)


def _refused(request: Request, studio: Studio, error: ZigguratError, typed: dict[str, str]) -> Response:
    """Show the form again with what was typed, and what is wrong with it; a file must be chosen again."""
    field = field_of(error) or "file"
    return _page(request, studio, status=status_of(error), typed=typed, problems={field: str(error)})


def _done(request: Request, text: str) -> Response:
    return see_other(request, _PLACE, {"said": flash_messages(request).add(Outcome(text=text))})


def _page(request: Request, studio: Studio, *, status: int = 200, **values: Any) -> Response:
    shown = {"outcome": None, "problems": {}, "typed": dict.fromkeys(FIELDS, ""), **values}
    return page(request, "pretrained/page.html", status, topics=("weights",), view=pretrained_view(studio), **shown)
