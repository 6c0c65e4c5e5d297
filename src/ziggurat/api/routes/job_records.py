"""Routes for records of a training: machine load, sample predictions, last batches, timeline, early stopping."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from ziggurat.api.responses import answer
from ziggurat.entities.black_box import LastBatch
from ziggurat.entities.machine_load import MachineLoad
from ziggurat.entities.sample_predictions import MOST_SAMPLES, SamplePredictions
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.workspace.studio.job_timeline import EarlyStoppingState, TimelineEvent

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["jobs"])


@router.get("/jobs/{job_id}/machine-load", response_model=MachineLoad)
def machine_load(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the load of the machine while a training ran: ``times``, and ``curves`` with a value for each.

    A curve has ``name``, ``title``, ``unit`` (``%``, ``bytes``, ``bytes/s``, ``samples/s``), ``values`` (null if not
    measured) and ``limit``. Everything is empty for a job without records.
    """
    return answer(studio.outputs.machine_load(job_id))


@router.get("/jobs/{job_id}/sample-predictions", response_model=SamplePredictions)
def sample_predictions(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the predictions for a few validation samples, the same after each validation.

    ``samples`` describes the samples; ``records`` has ``step``, ``epoch``, ``time`` and ``predictions`` of each
    validation. The content of a prediction depends on ``kind``; for a classification it is ``class`` and ``score``.
    """
    return answer(studio.outputs.sample_predictions(job_id))


@router.get("/jobs/{job_id}/sample-predictions/{number}/image", response_class=Response)
def sample_image(
    studio: StudioDep, _who: ViewerUser, job_id: str, number: Annotated[int, Path(ge=0, lt=MOST_SAMPLES)]
) -> Response:
    """Return the image of one of these samples as PNG, if it is in no dataset of the studio."""
    return Response(studio.outputs.sample_image(job_id, number), media_type="image/png")


@router.get("/jobs/{job_id}/last-batches", response_model=LastBatch)
def last_batches(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the last steps before a loss became NaN or infinite, and the samples of the last batch.

    ``steps`` has ``step``, ``epoch``, ``values`` and facts on the ``arrays`` of each batch, the oldest first; ``rows``
    are those of the last batch in its ``split``, empty if they are not known. Everything is empty for other jobs.
    """
    return answer(studio.outputs.last_batches(job_id))


@router.get("/jobs/{job_id}/timeline", response_model=list[TimelineEvent])
def timeline(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the events of a training, the oldest first; those with a ``number`` are the flags on the charts."""
    return answer(studio.jobs.timeline(job_id))


@router.get("/jobs/{job_id}/early-stopping", response_model=EarlyStoppingState | None)
def early_stopping(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the state of early stopping, such as 1 of 5 epochs without gain; null if it is off."""
    return answer(studio.jobs.early_stopping(job_id))
