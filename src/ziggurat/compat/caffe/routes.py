"""REST route of imports of Caffe: ``POST /api/v1/imports/caffe``."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import Response
from pydantic import Field

from ziggurat.api.responses import answer
from ziggurat.api.schemas import Json, RequestBody
from ziggurat.compat.import_client import import_network
from ziggurat.compat.studio_imports import import_into_studio
from ziggurat.errors import UsageError
from ziggurat.server.dependencies import StudioDep, TrainerUser
from ziggurat.server.permissions import new_router

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["imports"])


class _Import(RequestBody):
    text: str = Field("", max_length=4 << 20, description="Text of a `.prototxt`; or give `source`.")
    source: str = Field("", max_length=4096, description="A `.prototxt`, archive or folder on the studio's machine.")
    weights: str = Field("", max_length=4096, description="A `.caffemodel`.")
    mean: str = Field("", max_length=4096, description="A mean image (`.binaryproto`).")
    labels: str = Field("", max_length=4096, description="Class names, one in each line.")
    solver: str = Field("", max_length=4096, description="A `solver.prototxt`.")
    until: str = Field("", max_length=300, description="Last layer that is imported, or several: `A,B`; empty: all.")
    classes: int = Field(
        0, ge=0, le=1 << 20, description="`num_output` of a last layer without one; 0: number of labels."
    )
    input: str = Field("", max_length=40, description="Size of the images, such as `1x28x28`; empty: that of the file.")
    color: Literal["BGR", "RGB"] = "BGR"
    compare: bool = Field(True, description="Whether the network file is compared with Caffe's forward pass.")
    name: str = Field("", max_length=100, description="Adds the weights under this name; empty: they are not kept.")


@router.post("/imports/caffe", response_model=Json)
def import_caffe(studio: StudioDep, who: TrainerUser, body: _Import) -> Response:
    """Convert a network of Caffe to a network file for PyTorch, which is compared with it.

    The answer has ``network`` (its text), ``layers``, ``done``, ``warnings``, ``training`` (fields of a spec) and
    ``parity``; with ``name`` also ``pretrained``, by which a training starts from the weights. The line of an error is
    ``details.line``.
    """
    if bool(body.text.strip()) == bool(body.source):
        raise UsageError("An import has a `text` or a `source`.", details={"field": "text"})
    request: dict[str, Any] = body.model_dump(exclude={"name"})
    for field in ("source", "weights", "mean", "labels", "solver"):
        request[field] = str(studio.paths.allowed(request[field])) if request[field] else ""
    request["text"] = body.text or None
    return answer(import_into_studio(studio, who, import_network, request, name=body.name, source="Caffe"))
