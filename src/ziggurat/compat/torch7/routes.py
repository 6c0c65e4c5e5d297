"""REST route of imports of Torch: ``POST /api/v1/imports/torch``."""

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
    text: str = Field("", max_length=1 << 20, description="Text of a network file in Lua; or give `source`.")
    source: str = Field(
        "", max_length=4096, description="A `.lua` or `.t7` file, archive or folder on the studio's machine."
    )
    weights: str = Field("", max_length=4096, description="A saved model (`.t7`) with the weights.")
    mean: str = Field("", max_length=4096, description="A mean image (`.jpg`, `.png` or `.binaryproto`).")
    labels: str = Field("", max_length=4096, description="Class names, one in each line.")
    classes: int = Field(0, ge=0, le=1 << 20, description="`params.nclasses`; 0: the number of labels.")
    input: str = Field("", max_length=40, description="Size of the images, such as `1x28x28`; empty: one that fits.")
    color: Literal["BGR", "RGB"] = "RGB"
    compare: bool = Field(True, description="Whether the network file is compared with Torch's forward pass.")
    name: str = Field("", max_length=100, description="Adds the weights under this name; empty: they are not kept.")


@router.post("/imports/torch", response_model=Json)
def import_torch(studio: StudioDep, who: TrainerUser, body: _Import) -> Response:
    """Convert a network of Torch to a network file for PyTorch, which is compared with it.

    Lua runs in a process of its own, without files and programs, for four seconds at most. The answer has ``network``
    (its text), ``layers``, ``done``, ``warnings``, ``training`` (fields of a spec) and ``parity``; with ``name`` also
    ``pretrained``, by which a training starts from the weights. The line of an error is ``details.line``.
    """
    if bool(body.text.strip()) == bool(body.source):
        raise UsageError("An import has a `text` or a `source`.", details={"field": "text"})
    request: dict[str, Any] = body.model_dump(exclude={"name"})
    for field in ("source", "weights", "mean", "labels"):
        request[field] = str(studio.paths.allowed(request[field])) if request[field] else ""
    request |= {"text": body.text or None, "tool": "torch7" if body.text else ""}
    return answer(import_into_studio(studio, who, import_network, request, name=body.name, source="Torch"))
