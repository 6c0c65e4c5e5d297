"""Owns the routes of trained models: predict, look inside, evaluate, export."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Form, Response
from pydantic import Field

from ziggurat.api.guard import new_router
from ziggurat.api.routes.access import Held, Looker, Trainer
from ziggurat.api.routes.answers import answer, download
from ziggurat.api.routes.asked import RequestBody
from ziggurat.api.routes.job_files import ArchiveFormat
from ziggurat.api.routes.pictures import Pictures
from ziggurat.api.routes.shapes import Json, PredictionsShape
from ziggurat.errors import UsageError

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["models"])

_Checkpoint = Annotated[str, Form(description="A name, `best` or `latest`; empty: the best, or else the latest.")]


class _Evaluate(RequestBody):
    split: Literal["train", "val", "test"] = "val"
    checkpoint: str | None = None


class _Export(RequestBody):
    format: str = Field(max_length=100, description="Such as `onnx`.")
    preprocessing: Literal["inside", "beside"] | None = None
    checkpoint: str | None = None
    archive: ArchiveFormat = "zip"


@router.post("/models/{job_id}/predict", response_model=PredictionsShape)
def predict(
    studio: Held,
    _who: Looker,
    job_id: str,
    pictures: Pictures,
    top: Annotated[int, Form(ge=1, le=1000)] = 5,
    checkpoint: _Checkpoint = "",
    device: Annotated[str, Form(pattern="^(cpu|[0-9]{1,3})?$")] = "",
) -> Response:
    """Predict for pictures that are sent or named; one that cannot be read is among the failures."""
    found = studio.training.predict(job_id, pictures, top=top, checkpoint=checkpoint, device=device)
    return answer(found)


@router.post("/models/{job_id}/activations", response_model=Json)
def activations(
    studio: Held,
    _who: Looker,
    job_id: str,
    pictures: Pictures,
    checkpoint: _Checkpoint = "",
) -> Response:
    """Return what each layer makes of a picture: shape, mean, deviation, histogram, and small pictures."""
    if len(pictures) != 1:
        raise UsageError("Activations are those of one picture.", received=str(len(pictures)))
    return answer(studio.training.activations(job_id, pictures[0], checkpoint=checkpoint))


@router.post("/models/{job_id}/evaluate", response_model=Json)
def evaluate(studio: Held, _who: Trainer, job_id: str, body: _Evaluate) -> Response:
    """Evaluate on every sample of a split: ``scalars``, ``accuracy``, ``confusion``, ``classes``."""
    return answer(studio.training.evaluate(job_id, split=body.split, checkpoint=body.checkpoint))


@router.post("/models/{job_id}/export", response_class=Response)
def export(studio: Held, who: Trainer, job_id: str, body: _Export) -> Response:
    """Return a model in a format of other programs, as an archive whose ``info.json`` proves that it gives the same."""
    name = studio.jobs.get(job_id).name or job_id
    options = body.model_dump(include={"preprocessing", "checkpoint"})
    parts = studio.training.exported(job_id, body.format, body.archive, **options)
    studio.people.note(who, "model.export", job_id, format=body.format)
    return download(parts, f"{name}-{body.format}", body.archive)
