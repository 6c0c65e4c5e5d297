"""Routes for trainings and networks, and previews before a job is created."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Query, Request, Response
from pydantic import Field

from ziggurat.api.operation_routes import add_operation
from ziggurat.api.responses import answer
from ziggurat.api.schemas import BackendName, JobShape, JobsShape, Json, NewJobBody, RequestBody, TextShape
from ziggurat.entities.backend_info import DEFAULT_BACKEND
from ziggurat.operations.models import create_training, start_demo
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.job_names import JobName
from ziggurat.server.permissions import new_router
from ziggurat.workspace import previews
from ziggurat.workspace.studio import networks as standard
from ziggurat.workspace.studio.batch_trials import TEST_BATCH_LIMIT_S

__all__ = ["previews_router", "router"]

router = new_router(prefix="/api/v1", tags=["training"])


class _Network(RequestBody):
    network: str = Field("", max_length=200, description="Name of a standard network; empty where there is a text.")
    text: str = Field("", max_length=2_000_000, description="Of a network file.")
    backend: BackendName = DEFAULT_BACKEND


class _Describe(_Network):
    input_shape: list[Annotated[int, Field(ge=1, le=65536)]] | None = Field(None, min_length=1, max_length=4)
    classes: int | None = Field(None, ge=1, le=1_000_000)
    tensorboard: bool = Field(False, description="Whether its graph is kept for a while, to be shown in TensorBoard.")


class _Debug(_Network):
    dataset: Annotated[str, JobName("dataset")] = Field(
        "", description="Id or name of a dataset that is done; empty for handwritten digits."
    )
    batch_size: int | None = Field(None, ge=1, le=4096)


@router.post("/trainings", response_model=JobsShape, status_code=201)
def create(studio: StudioDep, who: TrainerUser, body: NewJobBody) -> Response:
    """Put a training, or a sweep of several, into the queue; all of them, or none."""
    studio.paths.check_spec(body.spec)
    return answer({"jobs": create_training(studio, who, body.request())}, 201)


add_operation(router, start_demo, shape=JobShape, status=201)


@router.get("/networks", response_model=list[Json])
def networks(_who: ViewerUser, framework: BackendName = DEFAULT_BACKEND) -> Response:
    """Return the standard networks of a framework."""
    return answer(standard.standard_networks(framework))


@router.get("/networks/{name}", response_model=TextShape)
def network_text(_who: ViewerUser, name: str, framework: BackendName = DEFAULT_BACKEND) -> Response:
    """Return the source of a standard network, to be changed."""
    return answer({"text": standard.network_text(name, framework)})


@router.post("/networks/describe", response_model=Json)
def describe(request: Request, studio: StudioDep, _who: TrainerUser, body: _Describe) -> Response:
    """Describe a network: layers, shapes, parameters, cost. Its code runs in a process of its own.

    With `tensorboard`, the answer has `tensorboard` too: `address` of the page that opens its graph there (from the
    root of the server; null where there is none), and `problem`, which says why there is none.
    """
    options = body.model_dump(exclude={"tensorboard"})
    if not body.tensorboard:
        return answer(studio.networks.describe(**options))
    found = studio.graphs.describe(**options)
    name, problem = found["tensorboard"]["graph"], found["tensorboard"]["problem"]
    address = f"{quote(request.scope.get('root_path', ''))}/models/graphs/{name}" if name else None
    return answer({**found, "tensorboard": {"address": address, "problem": problem}})


@router.post("/networks/debug", response_model=Json)
def debug(studio: StudioDep, _who: TrainerUser, body: _Debug) -> Response:
    """Run a network eagerly on one real batch, in a process of its own."""
    return answer(studio.networks.debug(**body.model_dump()))


previews_router = new_router(prefix="/api/v1", tags=["previews"])


class _RateCurve(RequestBody):
    spec: dict[str, Any] = Field(description="Of a training; network and data may still be missing.")
    points: int = Field(300, ge=2, le=10_000)
    steps_per_epoch: int | None = Field(None, ge=1, lt=2**31, description="Where the spec does not say them.")


class _Augmented(RequestBody):
    dataset: Annotated[str, JobName("dataset")] = Field(
        max_length=200, description="Id or name of a dataset that is done."
    )
    spec: dict[str, Any] = Field(description="Of a training; network and data may still be missing.")
    row: int | None = Field(None, ge=0, lt=2**31, description="Of the split; left out, several.")
    split: Literal["train", "val", "test"] = "train"
    count: int = Field(12, ge=1, le=100, description="How often the one row is shown, or how many rows are.")
    seed: int = Field(0, ge=0, lt=2**32, description="Of the training: the same seed gives the same bytes.")


class _Preflight(NewJobBody):
    describe: bool = Field(True, description="Whether the data is measured and the network built: takes seconds.")


class _TestBatch(NewJobBody):
    find_rate: bool = Field(True, description="Whether learning rates are tried, too: most of the time.")
    ticket: str = Field("", max_length=64, pattern="^[A-Za-z0-9_-]*$", description="By which it can be canceled.")
    time_limit_s: float = Field(TEST_BATCH_LIMIT_S, ge=1, le=3600, description="How long it may take.")


_ChosenNetwork = Annotated[
    str | None,
    Query(
        max_length=200,
        description="Network that is chosen already, as `framework/name`, `framework/` or `name`; empty for a file.",
    ),
]


class _PreviewSource(RequestBody):
    spec: dict[str, Any] = Field(description="Of a dataset; all but `source` may be missing.")
    samples: int = Field(24, ge=0, le=200, description="How many are shown.")
    time_limit_s: float = Field(10.0, ge=0.1, le=120, description="How long to look.")


@previews_router.post("/trainings/rate-curve", response_model=Json)
def rate_curve(_who: ViewerUser, body: _RateCurve) -> Response:
    """Return the learning rate over a training, as the engine will set it: ``epochs``, ``rates``, ``sentence``."""
    return answer(previews.rate_curve(body.spec, points=body.points, steps_per_epoch=body.steps_per_epoch))


@previews_router.post("/trainings/augmented", response_model=Json)
def augmented(studio: StudioDep, _who: TrainerUser, body: _Augmented) -> Response:
    """Return images as the network will get them: ``seed``, ``pictures`` (PNG in base64), ``sentence``."""
    studio.paths.check_spec(body.spec)
    options = body.model_dump(include={"row", "split", "count", "seed"})
    return answer(studio.training.augmented(body.dataset, body.spec, **options))


@previews_router.post("/trainings/preflight", response_model=Json)
def preflight(studio: StudioDep, _who: TrainerUser, body: _Preflight) -> Response:
    """Return what a training will take: ``findings``, ``steps``, ``steps_per_epoch``, ``parameters``."""
    studio.paths.check_spec(body.spec)
    return answer(studio.training.preflight(body.request(), describe=body.describe))


@previews_router.post("/trainings/test-batch", response_model=Json)
def try_batch(studio: StudioDep, _who: TrainerUser, body: _TestBatch) -> Response:
    """Train some steps in a separate process, and return measurements; no job is made.

    `total_s`, `epoch_s`, `step_s`, `data_wait_share`, `memory_bytes`, `largest_batch` (null if unknown), and `rate`:
    `suggested` and `largest_finite` learning rate with the curve (`rates`, `losses`), null if not requested. Only one
    runs at a time; the pre-flight check uses its results.
    """
    studio.paths.check_spec(body.spec)
    options = body.model_dump(include={"find_rate", "ticket", "time_limit_s"})
    return answer(studio.training.test_batch(body.request(), **options))


@previews_router.delete("/trainings/test-batch/{ticket}", status_code=204)
def cancel_test_batch(studio: StudioDep, _who: TrainerUser, ticket: str) -> Response:
    """Cancel a running test batch; its request is answered with an error."""
    studio.training.test_batches.cancel(ticket)
    return Response(status_code=204)


@previews_router.get("/datasets/{dataset_id}/recipe", response_model=Json)
def recipe(studio: StudioDep, _who: ViewerUser, dataset_id: str, network: _ChosenNetwork = None) -> Response:
    """Return the recommended recipe for a dataset: `network`, `fields`, `summary`, `reason`.

    `dataset_id` is that of a dataset, or `digits`. `network` is written as `framework/name`, and `fields` maps paths of
    the spec, such as `schedule.policy`, to values. The answer is null if no network can be trained on the dataset, or
    if it is not done.
    """
    found = studio.training.recipe(dataset_id, network=network)
    return answer(None if found is None else asdict(found))


@previews_router.get("/datasets/{dataset_id}/networks", response_model=list[Json])
def cards(
    studio: StudioDep, _who: ViewerUser, dataset_id: str, batch_size: Annotated[int, Query(ge=1, le=1_000_000)] = 64
) -> Response:
    """Return the standard networks with their memory and time on a dataset, the recommended one first.

    Each has `name`, `title`, `parameters`, `epoch_s` and `memory_bytes` (null if unknown), `badge`, and `why_not`: why
    it cannot be trained on the dataset, empty if it can.
    """
    return answer([asdict(card) for card in studio.training.cards(dataset_id, batch_size)])


@previews_router.post("/trainings/text", response_model=Json)
def text(studio: StudioDep, _who: TrainerUser, request: Request, body: NewJobBody) -> Response:
    """Return the same training in other words: ``cli``, ``json``, ``python``."""
    studio.paths.check_spec(body.spec)
    return answer(studio.training.as_text(body.request(), url=str(request.base_url).rstrip("/")))


@previews_router.post("/datasets/preview", response_model=Json)
def preview(studio: StudioDep, _who: TrainerUser, body: _PreviewSource) -> Response:
    """Return what is in a source, as far as it can be seen in time: ``counts``, ``classes``, ``samples``, …

    A sample has its image (``png``) and what is marked in it: ``objects``, each with ``class``, ``name``, ``box``
    (left, top, right, bottom, in pixels of ``width_px`` by ``height_px``) and perhaps ``polygons`` or ``mask`` (run
    lengths as COCO writes them, of the same pixels), and ``mask_png``, an image of class numbers. ``colours`` and
    ``ignore_class`` say how masks are to be colored.
    """
    studio.paths.check_spec(body.spec)
    return answer(studio.datasets.preview(body.spec, samples=body.samples, time_limit_s=body.time_limit_s))
