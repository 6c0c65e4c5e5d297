"""Routes for trainings and networks."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Request, Response
from pydantic import Field

from ziggurat.api.backend_names import BackendName
from ziggurat.api.requests import NewJobBody, RequestBody
from ziggurat.api.responses import answer
from ziggurat.api.schemas import JobsShape, Json, TextShape
from ziggurat.entities.backend_info import DEFAULT_BACKEND
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio import networks as standard

__all__ = ["router"]

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
    dataset: str = Field("", description="Id of a dataset that is done; empty for handwritten digits.")
    batch_size: int | None = Field(None, ge=1, le=4096)


@router.post("/trainings", response_model=JobsShape, status_code=201)
def create(studio: StudioDep, who: TrainerUser, body: NewJobBody) -> Response:
    """Put a training, or a sweep of several, into the queue; all of them, or none."""
    studio.paths.check_spec(body.spec)
    jobs = studio.training.create(body.request(), owner=who.name)
    for job in jobs:
        studio.people.note(who, "training.create", job.id)
    return answer({"jobs": jobs}, 201)


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
