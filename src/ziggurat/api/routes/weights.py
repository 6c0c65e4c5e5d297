"""Routes for pretrained weights: list, add files, download public ones, remove."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import Response
from pydantic import Field

from ziggurat.api.operation_routes import add_operation
from ziggurat.api.responses import answer
from ziggurat.api.schemas import Json, RequestBody
from ziggurat.entities.pretrained_weights import PretrainedWeights
from ziggurat.operations import weights as operations
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.weights_downloads import WeightsDownload
from ziggurat.workspace.weights import NewWeights, preprocessing_of

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["weights"])

_Line = Annotated[str, Field(max_length=1000)]


class _NewWeights(RequestBody):
    file: str = Field(
        max_length=4096,
        description="File (.safetensors, .pth, .pt) on the studio's machine, or the `source` of an upload with one.",
    )
    name: str = Field("", max_length=100, description="In specs, as `weights:NAME`; empty: that of the file.")
    title: _Line = ""
    network: str = Field("", max_length=100, description="Standard network that they fit, such as `resnet18`.")
    license: _Line = ""
    source: str = Field("", max_length=1000, description="URL, or a sentence that says where they come from.")
    sha256: str = Field("", max_length=64, description="Of the file, or its first 8 digits or more; it is compared.")
    class_count: int = Field(0, ge=0, lt=2**31, description="Classes of the last layer; 0: those of the file.")
    classes: list[Annotated[str, Field(max_length=1000)]] = Field(default=[], max_length=100_000)
    mean: list[float] = Field(default=[], max_length=4, description="Of the colors of images from 0 to 1.")
    std: list[float] = Field(default=[], max_length=4, description="Of the colors, likewise.")
    size: list[int] = Field(default=[], max_length=2, description="Height and width in pixels.")
    color: str = Field("", max_length=10, description="`RGB`, `BGR` or `GRAY`.")


@router.get("/weights", response_model=list[Json])
def weights(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the pretrained weights by name: ``name``, ``reference`` (for ``pretrained`` of a spec), ``network``, …

    Also ``license``, ``source``, ``sha256``, ``source_sha256``, ``class_count``, ``classes``, ``preprocessing``, and
    ``users``: the trainings that start from them.
    """
    return answer([_values(studio, each) for each in studio.weights.all()])


@router.get("/weights/{name}", response_model=Json)
def one(studio: StudioDep, _who: ViewerUser, name: str) -> Response:
    """Return pretrained weights by their name."""
    return answer(_values(studio, studio.weights.get(name)))


@router.post("/weights", response_model=Json, status_code=201)
def add(studio: StudioDep, who: TrainerUser, body: _NewWeights) -> Response:
    """Add a file of weights, after it was checked; one of PyTorch is converted, and none of its code is run."""
    preprocessing = preprocessing_of(
        *(" ".join(map(str, part)) for part in (body.mean, body.std, body.size)), color=body.color
    )
    given = body.model_dump(exclude={"file", "mean", "std", "size", "color"})
    new = NewWeights(**{**given, "classes": tuple(body.classes), "preprocessing": preprocessing})
    return answer(_values(studio, operations.add(studio, who, _file(studio, body.file), new)), 201)


add_operation(router, operations.remove, status=204)
add_operation(router, operations.restore, shape=Json, shown=lambda studio, made: _values(studio, made))


@router.get("/weights-downloads", response_model=list[Json])
def downloads(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the download list: ``name``, ``title``, ``url``, ``sha256``, ``license``, ``is_added``, ``download``, …

    A file that comes with Ziggurat has ``packaged_file`` and no ``url``: it is copied, without a connection.
    ``download`` is null, or has ``state`` (``waiting``, ``running``, ``failed``, ``canceled``), ``received_bytes``,
    ``total_bytes`` and ``error``.
    """
    there = {each.name for each in studio.weights.all()}
    running = {each.name: each for each in studio.weights_downloads.all()}
    listed = (
        {**asdict(each), "is_added": each.name in there, "download": _download(running.get(each.name))}
        for each in studio.weights.public
    )
    return answer(list(listed))


add_operation(router, operations.download, shape=Json, status=202, shown=lambda _studio, made: _download(made))
add_operation(router, operations.cancel, status=204)
add_operation(router, operations.delete_features, status=204)


def _file(studio: Studio, path: str) -> Path:
    """Return the file at a path that users may name; of a folder with one file, such as an upload, that file."""
    found = studio.paths.allowed(path)
    files = [each for each in found.rglob("*") if each.is_file()] if found.is_dir() else []
    return studio.paths.allowed(str(files[0])) if len(files) == 1 else found  # it may be a link


def _values(studio: Studio, entry: PretrainedWeights) -> dict[str, Any]:
    users = [asdict(each) for each in studio.weights.users(entry.name)]
    return {**entry.as_json(), "reference": entry.reference, "users": users}


def _download(found: WeightsDownload | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)
