"""Routes of ``/api/v1`` that return the state of a job's TensorBoard and start it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.api.responses import answer
from ziggurat.layout import JobFolder
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.http_errors import NotReadyError
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio import Studio

__all__ = ["TensorBoardShape", "router"]

router = new_router(prefix="/api/v1", tags=["jobs"])


@dataclass(frozen=True, kw_only=True)
class TensorBoardShape:
    """A job's TensorBoard.

    Args:
        address: of its page, from the root of the server.
        state: ``off`` until somebody looks, and after nobody did for a quarter of an hour.
        idle_s: since when nobody looked; null where it is off.
        folder: of its event files.
        command: what starts one without the studio.
    """

    address: str
    state: Literal["off", "starting", "ready"]
    idle_s: float | None
    folder: str
    command: str


@router.get("/jobs/{job_id}/tensorboard", response_model=TensorBoardShape)
def look_at_tensorboard(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return where a job's TensorBoard is shown and whether it runs; nothing is started."""
    return answer(_shape(request, studio, job_id))


@router.post("/jobs/{job_id}/tensorboard", response_model=TensorBoardShape)
async def start_tensorboard(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Start a job's TensorBoard where it does not run; ask again while its state is `starting`."""
    await run_in_threadpool(studio.jobs.get, job_id)
    try:
        await request.app.state.board_starts.target(studio.tensorboards, job_id)
    except NotReadyError:
        pass  # the state says it
    return answer(await run_in_threadpool(_shape, request, studio, job_id))


def _shape(request: Request, studio: Studio, job_id: str) -> TensorBoardShape:
    folder = JobFolder(Path(studio.jobs.get(job_id).folder)).tensorboard
    found = next((each for each in studio.tensorboards.status() if each.job_id == job_id), None)
    is_ready = found is not None and found.port is not None
    is_starting = found is not None or request.app.state.board_starts.is_under_way(job_id)
    return TensorBoardShape(
        address=f"{quote(request.scope.get('root_path', ''))}/jobs/{quote(job_id, safe='')}/tensorboard/",
        state="ready" if is_ready else "starting" if is_starting else "off",
        idle_s=None if found is None else found.idle_s,
        folder=str(folder),
        command=f"tensorboard --logdir {shlex.quote(str(folder))}",
    )
