"""Routes for trained models: predict, inspect activations, evaluate, export, publish."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import Depends, Form, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from ziggurat.api.operation_routes import add_operation
from ziggurat.api.responses import answer
from ziggurat.api.routes.jobs import ArchiveFormat
from ziggurat.api.schemas import JobPageShape, Json, PredictionsShape, RequestBody, Text
from ziggurat.errors import UsageError
from ziggurat.operations import models
from ziggurat.server.dependencies import ImageViewerUser, StudioDep, TrainerUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.job_names import JobName
from ziggurat.server.permissions import new_router
from ziggurat.server.posted_images import Pictures, SomePictures, check_some
from ziggurat.workspace.job_query import JobQuery
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.models import PublishedModel

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["models"])


_Checkpoint = Annotated[str, Form(description="A name, `best` or `latest`; empty: the best, or else the latest.")]


def _asked_how(
    checkpoint: _Checkpoint = "", device: Annotated[str, Form(pattern="^(cpu|[0-9]{1,3})?$")] = ""
) -> dict[str, str]:
    return {"checkpoint": checkpoint, "device": device}


_How = Annotated[dict[str, str], Depends(_asked_how)]
"""Which checkpoint answers, and where it is computed."""


def _asked_grad_cam(
    grad_cam: Annotated[bool, Form(description="Also tell where in one image it looked (Grad-CAM).")] = False,
    grad_cam_class: Annotated[
        str, Form(max_length=1000, description="Number of a class, or its name; empty: the likeliest.")
    ] = "",
    grad_cam_layer: Annotated[
        str, Form(max_length=1000, description="A layer with maps; empty: the one of the last convolution.")
    ] = "",
) -> dict[str, str] | None:
    return {"class": grad_cam_class, "layer": grad_cam_layer} if grad_cam else None


def _asked_answer(
    how: _How,
    top: Annotated[int, Form(ge=1, le=1000, description="Classes of each that are named.")] = 5,
    drawn: Annotated[
        bool, Form(alias="pictures", description="Also predictions that are images, as `picture`: PNG in base64.")
    ] = False,
) -> dict[str, Any]:
    return {"top": top, "drawn": drawn, **how}


_Answer = Annotated[dict[str, Any], Depends(_asked_answer)]
"""What of a prediction is answered, and by which checkpoint."""

_GradCam = Annotated[dict[str, str] | None, Depends(_asked_grad_cam)]
"""Which class and layer are looked at; None if not requested."""


_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Evaluate(RequestBody):
    split: Literal["train", "val", "test"] = "val"
    checkpoint: str | None = None


class _ModelExport(RequestBody):
    format: str = Field(max_length=100, description="Such as `onnx`.")
    preprocessing: Literal["inside", "beside"] | None = None
    checkpoint: str | None = None
    archive: ArchiveFormat = "zip"


class _Values(RequestBody):
    rows: list[dict[str, Any] | list[Any]] = Field(
        default=[], description="Rows of a table: each column → value, or a list in the order of the columns."
    )
    texts: list[Text] = Field(default=[], description="Texts, for a network that takes texts.")
    top: int = Field(5, ge=1, le=1000, description="Classes of each that are named.")
    checkpoint: str = Field("", max_length=200, description="A name, `best` or `latest`; empty: the best, or latest.")
    device: str = Field("", pattern="^(cpu|[0-9]{1,3})?$")
    pictures: bool = Field(False, description="Also predictions that are images, as `picture`: PNG in base64.")


async def _sent_values(request: Request) -> _Values | None:
    """Return the body of a request in JSON; None for a form."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return None
    try:
        return _Values.model_validate_json(await request.body())
    except ValidationError as error:
        raise RequestValidationError(
            [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
        ) from None


_SentValues = Annotated[_Values | None, Depends(_sent_values)]
"""Rows or texts of a request in JSON; None where images are sent as a form."""

_JSON_BODY: Final = {
    "requestBody": {"content": {"application/json": {"schema": _Values.model_json_schema()}}, "required": True}
}
"""What the description of the route has beside its form."""


@router.get("/models", response_model=JobPageShape)
def list_models(studio: StudioDep, _who: ViewerUser, query: Annotated[JobQuery, Query()]) -> Response:
    """Return some of the trainings that a filter leaves, as `/jobs` does; `kind` may not be given."""
    return answer(studio.jobs.page(query.of_kind("train").chosen()))


@router.post("/models/{job_id}/predict", response_model=PredictionsShape, openapi_extra=_JSON_BODY)
def predict(
    studio: StudioDep,
    _who: ImageViewerUser,
    job_id: str,
    values: _SentValues,
    pictures: SomePictures,
    asked: _Answer,
    looked: _GradCam,
) -> Response:
    """Predict for images that are sent or named; one that cannot be read is among the failures.

    A short video (``.mp4``, ``.mov``, ``.mkv``, ``.webm``, ``.avi``, ``.mpg``) stands for up to 100 of its frames;
    ``file`` is then such as ``clip.mp4 0:01.50``.

    For a network that takes rows of a table or texts, the body is JSON: ``{"rows": [{"column": value, …}, …]}`` or
    ``{"texts": ["…"]}``; ``file`` of each prediction is its number, from 1. What a prediction has beside depends on the
    task (``classes``, ``values``, ``labels``, ``size``, ``embedding``, or ``outputs``); with ``pictures`` also
    ``picture``, such as a mask in the colors of the classes, null where it is no image, and ``input``, the image as the
    network gets it.

    With ``grad_cam``, of one image also where in it the network finds what speaks for a class: ``grad_cam`` has
    ``class``, ``number``, ``probability``, ``layer``, ``layers``, ``heat`` (rows of numbers from 0 to 1), ``largest``,
    ``png``, ``heat_png`` and ``colours``; it is null where the image cannot be read.
    """
    if values is not None:
        options = values.model_dump(include={"rows", "texts", "top", "checkpoint", "device"})
        return answer(studio.models.predict_values(job_id, **options, drawn=values.pictures))
    check_some(pictures)
    if looked is not None and len(pictures) != 1:
        raise UsageError("Grad-CAM is of one image.", received=f"{len(pictures)} images")
    found = studio.models.predict(job_id, pictures, **asked)
    if looked is None:
        return answer(found)
    heat = None
    if not found["failures"]:
        how = {name: asked[name] for name in ("checkpoint", "device")}
        heat = studio.models.grad_cam(job_id, pictures[0], **how, **looked)
        heat = {name: value for name, value in heat.items() if name not in ("file", "classes")}
    return answer({**found, "grad_cam": heat})


class _Generate(RequestBody):
    count: int = Field(16, ge=1, le=1000, description="Samples.")
    seed: int | None = Field(None, ge=0, lt=2**63, description="Of the noise that is drawn; 0 where it is left out.")
    inputs: dict[str, list[Any]] = Field(
        default={}, description="Input of the network → the numbers of one row for all samples, or of one row for each."
    )
    first: dict[str, list[float]] = Field(
        default={}, description="Input of the network → numbers in the place of the first ones that are drawn."
    )
    checkpoint: str = Field("", max_length=200, description="A name, `best` or `latest`; empty: the best, or latest.")
    device: str = Field("", pattern="^(cpu|[0-9]{1,3})?$")
    pictures: bool = Field(False, description="Also samples that are images, as `picture`: PNG in base64.")


@router.post("/models/{job_id}/generate", response_model=Json)
def generate(studio: StudioDep, _who: ImageViewerUser, job_id: str, body: _Generate) -> Response:
    """Return what a network that generates makes of noise: ``predictions``, ``file`` a number from 1.

    ``inputs`` has what the network may be given: name → ``shape`` and ``dtype`` of a row. The same seed gives the same
    samples.
    """
    options = body.model_dump(exclude={"pictures"})
    return answer(studio.models.generate(job_id, **options, drawn=body.pictures))


@router.post("/models/{job_id}/activations", response_model=Json)
def activations(
    studio: StudioDep,
    _who: ImageViewerUser,
    job_id: str,
    pictures: Pictures,
    checkpoint: _Checkpoint = "",
) -> Response:
    """Return what each layer makes of an image: shape, mean, deviation, histogram, and small images."""
    if len(pictures) != 1:
        raise UsageError(f"{len(pictures)} images were sent; activations are shown for one.")
    return answer(studio.models.activations(job_id, pictures[0], checkpoint=checkpoint))


@router.post("/models/{job_id}/evaluate", response_model=Json)
def evaluate(studio: StudioDep, _who: TrainerUser, job_id: str, body: _Evaluate) -> Response:
    """Evaluate on every sample of a split: ``scalars``, ``accuracy``, ``confusion``, ``classes``."""
    return answer(studio.models.evaluate(job_id, split=body.split, checkpoint=body.checkpoint))


@router.post("/models/{job_id}/export", response_class=Response)
def export(studio: StudioDep, who: TrainerUser, job_id: str, body: _ModelExport) -> Response:
    """Return a model in a format of other programs, as an archive whose ``info.json`` proves that it gives the same."""
    name = studio.jobs.get(job_id).name or job_id
    options = body.model_dump(include={"preprocessing", "checkpoint"})
    parts = models.export(studio, who, job_id, body.format, body.archive, **options)
    return download(parts, f"{name}-{body.format}", body.archive)


class _OperatingPoint(RequestBody):
    evaluation: Annotated[str, JobName("evaluate")] = Field(
        "", max_length=200, description="Evaluation on the validation split to choose on; empty: the newest."
    )
    threshold: float | None = Field(
        None, ge=0, le=1, allow_inf_nan=False, description="Of every class that `thresholds` does not name."
    )
    thresholds: dict[str, _Share] | None = Field(None, description="Name of a class → its threshold.")


@router.get("/models/{job_id}/operating-point", response_model=Json | None)
def operating_point(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return ``thresholds`` (name → number), whether they are ``used``, and else the ``problem``; null without any."""
    return answer(studio.operating_points.of_model(job_id))


add_operation(router, models.set_operating_point, shape=Json, body=_OperatingPoint)
add_operation(router, models.clear_operating_point, status=204)


class _BackgroundExport(RequestBody):
    format: str = Field(max_length=100, description="Such as `onnx`.")
    preprocessing: Literal["inside", "beside"] = "inside"
    checkpoint: str = Field("", max_length=200, description="A name, `best` or `latest`; empty: the best, or latest.")


@router.get("/models/{job_id}/exports", response_model=list[Json])
def exports(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the exports of a model, newest first: ``name``, ``state``, ``result`` with its ``parity``, ``error``, …"""
    return answer(studio.exports.of_job(job_id))


add_operation(router, models.start_export, shape=Json, status=202, body=_BackgroundExport, name="start")
add_operation(router, models.remove_export, status=204, name="remove")


@router.get("/models/{job_id}/exports/{name}", response_model=Json, name="export")
def export_state(studio: StudioDep, _who: ViewerUser, job_id: str, name: str) -> Response:
    """Return how an export is: ``state`` is ``waiting``, ``running``, ``done``, ``failed`` or ``interrupted``."""
    return answer(studio.exports.get(job_id, name))


@router.get("/models/{job_id}/exports/{name}/download", response_class=Response)
def fetch(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    name: str,
    format: Annotated[ArchiveFormat, Query()] = "zip",  # noqa: A002 - the word that people use
) -> Response:
    """Return an export that is done, as an archive whose ``info.json`` proves that it gives the same."""
    found = studio.exports.get(job_id, name)
    parts = studio.exports.archive(job_id, name, format)
    return download(parts, f"{studio.jobs.get(job_id).name or job_id}-{found.format}", format)


add_operation(router, models.start_serving, shape=Json, status=202)
add_operation(router, models.stop_serving, status=204)


@router.get("/models/{job_id}/exports/{name}/server", response_model=Json | None, name="serving")
def serving(studio: StudioDep, _who: ViewerUser, job_id: str, name: str) -> Response:
    """Return ``state``, ``url``, ``requests``, ``self_test`` and ``log`` of the server of an export; null without one.

    ``state`` is ``loading``, ``ready`` or ``failed``, then with the ``reason``.
    """
    return answer(studio.serving.state(job_id, name))


class _Publish(RequestBody):
    name: str = Field(max_length=200, description="That no other published model has.")
    job: Annotated[str, JobName("train")] = Field(
        max_length=200, description="Id or name of a training that has ended."
    )
    checkpoint: str = Field("", max_length=200, description="A name, `best` or `latest`; empty: the best, or latest.")
    notes: Text = Field("", description="What others should know of it.")


@router.get("/pretrained", response_model=list[Json])
def published(studio: StudioDep, _who: ViewerUser) -> Response:
    """Return the published models: ``name``, ``job``, ``checkpoint``, ``owner``, ``notes``, ``is_whole``, …"""
    return answer([_values(studio, each) for each in studio.published.all()])


@router.post("/pretrained", response_model=Json, status_code=201)
def publish(studio: StudioDep, who: TrainerUser, body: _Publish) -> Response:
    """Publish a checkpoint of a training; as long as it is, neither can be deleted."""
    return answer(_values(studio, models.publish(studio, who, **body.model_dump())), 201)


add_operation(router, models.withdraw, status=204)


def _values(studio: Studio, model: PublishedModel) -> dict[str, Any]:
    return {**vars(model), "is_whole": studio.published.is_whole(model)}
