"""Trash: deleted jobs, weights, uploads and saved items are put back, or removed for good; uploads are listed too."""

from __future__ import annotations

from typing import Annotated

from fastapi import Form, Query, Request, Response

from ziggurat.entities import Identity
from ziggurat.entities.trash import SAVED, UPLOAD, WEIGHTS
from ziggurat.errors import ZigguratError
from ziggurat.formatting import plural
from ziggurat.operations import jobs, weights
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser, ViewerWriteUser
from ziggurat.server.permissions import new_router
from ziggurat.web.flash import Outcome, Refused, flash_messages, see_deleted
from ziggurat.web.rendering import page, see_other
from ziggurat.web.urls import LIST_PAGES
from ziggurat.workspace.accounts import ForbiddenError, check_permission
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.deleted import DeletedItem

__all__ = ["router"]

router = new_router()

_Ids = Annotated[list[str], Form(max_length=1000)]
_Said = Annotated[str, Query(max_length=100)]
_SHOWN = 10


@router.get("/trash", include_in_schema=False)
def trash(request: Request, studio: StudioDep, who: ViewerUser, said: _Said = "") -> Response:
    """Return the page."""
    outcome = flash_messages(request).take(said) if said else None
    deleted = studio.deleted.list(who.name)
    return page(
        request,
        "home/trash.html",
        deleted=deleted,
        total_bytes=sum(each.size_bytes for each in deleted),
        saved_kinds=SAVED,
        outcome=outcome,
        days=studio.settings.trash_days,
    )


@router.post("/trash/restore", include_in_schema=False)
def restore(
    request: Request, studio: StudioDep, who: ViewerWriteUser, ids: _Ids, back: Annotated[str, Form()] = ""
) -> Response:
    """Put something back, and show the list that it is in."""
    restored: list[tuple[str, str]] = []
    refused = []
    for item_id in dict.fromkeys(ids):
        name = item_id
        try:
            item = studio.deleted.find(item_id, who.name)
            name = item.name or item_id
            restored.append((item.kind, _restored(studio, who, item)))
        except ForbiddenError:
            raise
        except ZigguratError as error:
            refused.append(Refused("", name, f"{error.rule} {error.advice}".strip()))
    said = f"{restored[0][1]} is back." if len(restored) == 1 else f"{len(restored)} items are back."
    text = said if restored else ""
    outcome = Outcome(text=text, refused=refused[:_SHOWN], refused_total=len(refused))
    path = "/trash" if back == "trash" or not restored else LIST_PAGES.get(restored[0][0], "/")
    return see_other(request, path, {"said": flash_messages(request).add(outcome)})


@router.post("/trash/remove", include_in_schema=False)
def remove(request: Request, studio: StudioDep, who: ViewerWriteUser, ids: _Ids) -> Response:
    """Remove something that was deleted from the disk."""
    error: ZigguratError | None = None
    for item_id in dict.fromkeys(ids):
        try:
            _remove(studio, who, studio.deleted.find(item_id, who.name))
        except ForbiddenError:
            raise
        except ZigguratError as refused:
            error = refused
    outcome = Outcome(text="" if error else "Removed for good.", error=error.as_dict() if error else None)
    return see_other(request, "/trash", {"said": flash_messages(request).add(outcome)})


@router.post("/trash/empty", include_in_schema=False)
def empty(request: Request, studio: StudioDep, who: TrainerUser) -> Response:
    """Remove everything that was deleted from the disk."""
    removed = jobs.empty_trash(studio, who)
    outcome = Outcome(text=f"{plural(len(removed), 'item')} removed for good.")
    return see_other(request, "/trash", {"said": flash_messages(request).add(outcome)})


@router.get("/uploads", include_in_schema=False)
def uploads(request: Request, studio: StudioDep, _who: TrainerUser, said: _Said = "") -> Response:
    """Return the page of uploads that wait to become datasets."""
    outcome = flash_messages(request).take(said) if said else None
    kept_s = next(each.value for each in studio.limits.all() if each.name == "uploads_kept_s")
    return page(request, "home/uploads.html", uploads=studio.uploads.all(), kept_s=kept_s, outcome=outcome)


@router.post("/uploads/{upload_id}/delete", include_in_schema=False)
def delete_upload(request: Request, studio: StudioDep, _who: TrainerUser, upload_id: str) -> Response:
    """Delete an upload; it can be restored."""
    try:
        name = studio.uploads.describe(upload_id).name
        studio.uploads.delete(upload_id)
    except ZigguratError as error:  # deleted in another tab
        return see_other(request, "/uploads", {"said": flash_messages(request).add(Outcome(error=error.as_dict()))})
    return see_deleted(request, "/uploads", name, upload_id)


def _restored(studio: Studio, who: Identity, item: DeletedItem) -> str:
    """Put an item back and return its name."""
    if item.kind == WEIGHTS:
        return weights.restore(studio, who, item.id).title
    if item.kind == UPLOAD:
        check_permission(who, "trainer", "write")
        studio.uploads.restore(item.id)
    elif item.kind in SAVED:
        studio.saved.restore(who.name, item.kind, item.id)
    else:
        return jobs.restore_job(studio, who, item.id).name
    return item.name


def _remove(studio: Studio, who: Identity, item: DeletedItem) -> None:
    if item.kind == WEIGHTS:
        weights.remove(studio, who, item.id, forever=True)
    elif item.kind == UPLOAD:
        check_permission(who, "trainer", "write")
        studio.uploads.remove(item.id)
    elif item.kind in SAVED:
        studio.saved.delete(who.name, item.kind, item.id, forever=True)
    else:
        jobs.delete_job(studio, who, item.id, forever=True)
