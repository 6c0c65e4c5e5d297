"""Routes for jobs that use a model: evaluate a split, predict for many images, inspect the results."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from ziggurat.api.operation_routes import add_operation
from ziggurat.api.responses import answer
from ziggurat.api.schemas import JobShape, JobsShape, Json, PageQuery, RequestBody
from ziggurat.errors import UsageError
from ziggurat.operations import models
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.job_names import JobName
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio.evaluation_differences import Difference
from ziggurat.workspace.studio.prediction_tables import TABLE_TYPES

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["evaluations"])

_ClassIndex = Annotated[int, Path(ge=0, lt=2**31)]
_CHECKPOINT = "A name, `best` or `latest`; empty: the best, or else the latest."


class _Evaluation(RequestBody):
    split: Literal["train", "val", "test"] = "val"
    checkpoint: str = Field("", max_length=200, description=_CHECKPOINT)
    after_training: bool = Field(False, description="Whether it waits until the training is done.")


class _Retraining(RequestBody):
    dataset: Annotated[str, JobName("dataset")] = Field(
        min_length=1, max_length=200, description="Id or name of the version to train on."
    )
    split: Literal["", "train", "val", "test"] = Field(
        "", description="Of the evaluations; empty: that of the evaluation, else `val`."
    )
    evaluation: Annotated[str, JobName("evaluate")] = Field(
        "", max_length=200, description="Id or name of the evaluation to compare with; empty: the newest."
    )


class _RetrainingShape(BaseModel):
    former: JobShape
    model: JobShape
    former_evaluation: JobShape
    evaluation: JobShape
    is_new: bool


class _Inference(RequestBody):
    source: str = Field(
        min_length=1, max_length=4096, description="Folder of images, or a text file with a path in each line."
    )
    image_folder: str = Field("", max_length=4096, description="Where relative paths of a list begin.")
    checkpoint: str = Field("", max_length=200, description=_CHECKPOINT)
    top: int = Field(5, ge=1, le=5, description="Classes that are kept of each image.")
    limit: int = Field(0, ge=0, lt=2**31, description="Images at most; 0 for all.")


class _Samples(PageQuery):
    label: int | None = Field(None, ge=-1, lt=2**31, description="Class number; -1 for samples without a label.")
    predicted: int | None = Field(None, ge=0, lt=2**31, description="Class number that the model chose.")
    only: Literal["", "wrong", "right"] = ""
    order: Literal["hardest", "easiest", "surest_wrong", "row"] = Field(
        "hardest", description="`hardest`: the worst first; `surest_wrong`: of a classifier."
    )
    min_score: float | None = Field(
        None, allow_inf_nan=False, description="Least confidence of a classifier, else least score of the task."
    )
    max_score: float | None = Field(None, allow_inf_nan=False)
    choose: list[Annotated[str, Field(max_length=200)]] = Field(
        default_factory=list,
        max_length=20,
        description="`NAME=VALUE`, repeatable: a field of the task, such as `errors=missed`; see `fields` in answers.",
    )

    def chosen(self) -> dict[str, Any]:
        """Return what ``Evaluations.samples`` takes."""
        pairs = [each.partition("=") for each in self.choose]
        for name, sign, _ in pairs:
            if not sign:
                raise UsageError(f"`choose` is `{name}`, not NAME=VALUE.", advice="Such as `choose=errors=missed`.")
        return {**self.model_dump(exclude={"choose"}), "asked": {name: value for name, _, value in pairs}}


class _Differences(PageQuery):
    which: Difference | None = Field(
        None,
        description="Of a classifier `fixed`, `broken`, `still_wrong`; else `better`, `worse`, `equal`; of two "
        "datasets also `label_changed`, `only_first`, `only_second`.",
    )
    margin: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="Difference of the score up to which it is equal; 5 % of the deviation of the first scores.",
    )


add_operation(router, models.create_evaluation, shape=JobShape, status=201, body=_Evaluation, name="create")
add_operation(router, models.create_inference, shape=JobShape, status=201, body=_Inference, name="create_many")


@router.post("/models/{job_id}/retrain", response_model=_RetrainingShape, status_code=201)
def retrain(studio: StudioDep, who: TrainerUser, job_id: str, body: _Retraining) -> Response:
    """Repeat a training on another version of its dataset, and evaluate it on the same split behind it.

    Where that training is there already, it is returned with status 200, and ``is_new`` is false. The differences of
    ``former_evaluation`` and ``evaluation`` say what changed.
    """
    found = models.retrain(studio, who, job_id, **body.model_dump())
    return answer(found, 201 if found.is_new else 200)


@router.get("/models/{job_id}/evaluations", response_model=JobsShape)
def of_model(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the jobs that used a model, of both kinds, newest first."""
    return answer({"jobs": studio.evaluations.of_model(job_id)})


@router.get("/evaluations/{job_id}", response_model=Json)
def summary(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return what was found: ``task``, ``count``, ``failures``, ``scalars``, ``metrics`` of a task; of a classifier
    ``accuracy``, ``confusion``, ``per_class``, …
    """
    return answer(studio.evaluations.summary(job_id))


@router.get("/evaluations/{job_id}/samples", response_model=Json)
def samples(studio: StudioDep, _who: ViewerUser, job_id: str, query: Annotated[_Samples, Query()]) -> Response:
    """Return ``total`` and ``samples`` that a filter leaves; a cell of the confusion is a label and a prediction."""
    return answer(studio.evaluations.samples(job_id, **query.chosen()))


@router.get("/evaluations/{job_id}/curves/{class_index}", response_model=Json)
def curves(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    class_index: _ClassIndex,
    points: Annotated[int, Query(ge=2, le=10_000)] = 200,
) -> Response:
    """Return precision, recall, false and true positive rates of a class over its thresholds."""
    return answer(studio.evaluations.curves(job_id, class_index, points=points))


@router.get("/evaluations/{job_id}/at-threshold", response_model=Json)
def at_threshold(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    threshold: Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)],
) -> Response:
    """Return the figures where samples below a score count as undecided: ``coverage``, ``accuracy``, ``per_class``."""
    return answer(studio.evaluations.at_threshold(job_id, threshold))


@router.get("/evaluations/{job_id}/top/{class_index}", response_model=list[Json])
def top_of_class(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    class_index: _ClassIndex,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
) -> Response:
    """Return the samples with the highest score of a class, the most confident first."""
    return answer(studio.evaluations.top_of_class(job_id, class_index, limit))


@router.get("/evaluations/{job_id}/differences/{other_id}", response_model=Json)
def differences(
    studio: StudioDep, _who: ViewerUser, job_id: str, other_id: str, query: Annotated[_Differences, Query()]
) -> Response:
    """Return the samples that another evaluation got right, got wrong, or still gets wrong.

    With the difference of the ``accuracy`` and its 95 % ``interval``, by method 10 of Newcombe (1998). Where the
    network does not classify: those whose score is better, worse or equal, with the ``mean`` difference and its 95 %
    ``interval``, by the normal approximation of the paired differences. Two versions of a dataset are joined by the
    content of the samples: ``versions`` says how many are ``common``, ``unmatched``, and have another label.
    """
    return answer(studio.evaluations.differences(job_id, other_id, **query.model_dump()))


@router.get("/evaluations/{job_id}/pictures/{row}", response_class=Response)
def picture(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    row: Annotated[int, Path(ge=0, lt=2**31)],
    max_side_px: Annotated[int, Query(ge=8, le=4096)] = 1024,
) -> Response:
    """Return an image that was predicted for, or a built-in digit, as PNG; other evaluations use a dataset."""
    content = studio.evaluations.picture(job_id, row, max_side_px=max_side_px)
    return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})


@router.get("/evaluations/{job_id}/table", response_class=Response)
def table(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    format: Annotated[Literal["csv", "json"], Query()] = "csv",  # noqa: A002 - the word that people use
) -> Response:
    """Return the predictions for all samples as a file."""
    name = quote(f"{studio.jobs.get(job_id).name or job_id}.{format}".replace("/", "-").encode("utf-8", "replace"))
    parts = studio.evaluations.table(job_id, format)
    shown = f"attachment; filename=\"predictions.{format}\"; filename*=UTF-8''{name}"
    return StreamingResponse(parts, media_type=TABLE_TYPES[format], headers={"Content-Disposition": shown})
