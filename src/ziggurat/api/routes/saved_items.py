"""Routes for the saved items of the user who asks: views, presets and drafts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Field

from ziggurat.api.responses import answer
from ziggurat.api.schemas import RequestBody, SavedItemShape
from ziggurat.entities import SAVED_KINDS
from ziggurat.server.dependencies import StudioDep, ViewerUser, ViewerWriteUser
from ziggurat.server.permissions import new_router

__all__ = ["router"]

router = new_router(prefix="/api/v1/saved", tags=["saved items"])

_Forever = Annotated[bool, Query(description="Whether it cannot be restored; also one that is deleted already.")]
_Kind = Annotated[str, Path(description=f"One of: {', '.join(SAVED_KINDS)}.")]


class _Content(RequestBody):
    content: Any = Field(description="Any JSON value of at most 1 MiB.")


@router.get("/{kind}", response_model=list[SavedItemShape])
def saved_items(studio: StudioDep, who: ViewerUser, kind: _Kind) -> Response:
    """Return the saved items of a kind by name; every user has their own."""
    return answer([asdict(item) for item in studio.saved.list(who.name, kind)])


@router.put("/{kind}/{name:path}", response_model=SavedItemShape)
def save_item(studio: StudioDep, who: ViewerWriteUser, kind: _Kind, name: str, body: _Content) -> Response:
    """Save an item; one of the same kind and name is replaced."""
    return answer(asdict(studio.saved.put(who.name, kind, name, body.content)))


@router.delete("/{kind}/{name:path}", status_code=204)
def delete_item(studio: StudioDep, who: ViewerWriteUser, kind: _Kind, name: str, forever: _Forever = False) -> Response:
    """Delete an item; views and presets can be restored for some days."""
    studio.saved.delete(who.name, kind, name, forever=forever)
    return Response(status_code=204)


@router.post("/{kind}/{name:path}/restore", response_model=SavedItemShape)
def restore_item(studio: StudioDep, who: ViewerWriteUser, kind: _Kind, name: str) -> Response:
    """Put a deleted view or preset back, by its name or the id in the trash."""
    return answer(asdict(studio.saved.restore(who.name, kind, name)))
