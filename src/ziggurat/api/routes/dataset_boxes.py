"""Routes for corrections of boxes, image by image, and for boxes that a model proposes."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from pydantic import Field

from ziggurat.api.operation_routes import add_operation
from ziggurat.api.responses import answer
from ziggurat.api.schemas import JobShape, Json, RequestBody
from ziggurat.errors import UsageError
from ziggurat.operations import datasets as operations
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.workspace.box_corrections import ImageBoxes

__all__ = ["router"]

router = new_router(prefix="/api/v1/datasets/{job_id}/boxes", tags=["datasets"])

_Row = Annotated[int, Path(ge=0, lt=2**31)]
_Version = Field(ge=0, lt=2**31, description="Number of the state that the change was made on, as it was read.")
_IMAGE: Final = "/{split}/{row}"


class _Object(RequestBody):
    class_: int | str = Field(alias="class", description="Number or name of the class.")
    box: list[float] = Field(
        min_length=4, max_length=4, description="Left, top, right and bottom in px of the stored image."
    )
    source: int | None = Field(None, description="Place of the object in the dataset, from 0; none for a new object.")


class _Boxes(RequestBody):
    version: int = _Version
    objects: list[_Object] = Field(max_length=5000)


class _Changed(RequestBody):
    version: int = _Version


class _NewVersion(RequestBody):
    name: str = Field("", max_length=200, description="Of the new version.")
    samples: list[str] = Field([], description="As SPLIT/ROW or by key; empty for all that are corrected.")


@router.get("", response_model=list[Json])
def pending(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the images with corrected boxes that are not a version yet.

    Each has ``split``, ``row``, ``key``, ``version``, ``user``, ``time`` and ``changes``.
    """
    return answer(studio.datasets.boxes.pending(job_id))


add_operation(router, operations.make_version, shape=JobShape, status=201, body=_NewVersion)


@router.get(_IMAGE, response_model=Json)
def boxes(studio: StudioDep, _who: ViewerUser, job_id: str, split: str, row: _Row) -> Response:
    """Return the boxes of an image as they stand; the header ``ETag`` has their number.

    The answer has ``version``, ``user``, ``time``, ``applied``, ``can_undo``, ``changes``, ``size`` (width, height),
    ``classes`` and ``objects``: ``source``, ``class``, ``box``, and ``crowd``, ``difficult``, ``polygons`` and ``mask``
    where they hold.
    """
    return _answer(studio.datasets.boxes.get(job_id, f"{split}/{row}"))


@router.put(_IMAGE, response_model=Json)
def save(
    studio: StudioDep, who: TrainerUser, request: Request, job_id: str, split: str, row: _Row, body: _Boxes
) -> Response:
    """Replace the boxes of an image; 409 where somebody saved newer ones: ``details.current`` has these.

    What the dataset knows of an object besides class and box stays where ``source`` names it. A header ``If-Match``
    must have the same number as ``version``.
    """
    matched = request.headers.get("if-match", "").strip()
    if matched not in ("", "*", _tag(body.version)):
        raise UsageError("`If-Match` and `version` name the same state.", received=f"{matched[:40]} and {body.version}")
    objects = [each.model_dump(by_alias=True) for each in body.objects]
    found = studio.datasets.boxes.save(job_id, f"{split}/{row}", objects, version=body.version, user=who.name)
    return _answer(found)


@router.delete(_IMAGE, response_model=Json)
def discard(
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    split: str,
    row: _Row,
    version: Annotated[int, Query(ge=0, lt=2**31, description="Number of the state that is discarded.")],
) -> Response:
    """Take the boxes of the dataset again; Undo brings the corrections back."""
    return _answer(studio.datasets.boxes.discard(job_id, f"{split}/{row}", version=version, user=who.name))


@router.post(_IMAGE + "/undo", response_model=Json)
def undo(studio: StudioDep, who: TrainerUser, job_id: str, split: str, row: _Row, body: _Changed) -> Response:
    """Bring the boxes back that an image had before the newest change."""
    return _answer(studio.datasets.boxes.undo(job_id, f"{split}/{row}", version=body.version, user=who.name))


@router.get(_IMAGE + "/proposals", response_model=Json)
def proposals(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    split: str,
    row: _Row,
    source: Annotated[str, Query(max_length=200, description="Id of a source; empty for the first.")] = "",
) -> Response:
    """Return boxes that a detection model finds in an image.

    The answer has ``sources`` (``id`` and ``title`` of each model or evaluation that can be asked) and ``proposals``
    (``class``, ``box`` in px of the stored image, and ``score``), best first.
    """
    found = studio.box_proposals.proposals(source, job_id, split, row)
    sources = studio.box_proposals.sources(job_id, split)
    return answer({"sources": sources, "proposals": [each.as_json() for each in found]})


def _tag(version: int) -> str:
    return f'"{version}"'


def _answer(found: ImageBoxes) -> Response:
    content: dict[str, Any] = found.as_json()
    response = answer(content)
    response.headers["ETag"] = _tag(found.state.version)
    response.headers["Cache-Control"] = "no-store"
    return response
