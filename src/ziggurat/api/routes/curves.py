"""Routes for a job's curves."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np
from fastapi import Query, Response

from ziggurat.api.responses import answer
from ziggurat.api.schemas import CurveShape
from ziggurat.entities import Curve, Mark
from ziggurat.server.dependencies import StudioDep, ViewerUser
from ziggurat.server.permissions import new_router

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["curves"])

_Since = Annotated[int, Query(ge=-1, lt=2**63, description="Only points after this step.")]
_Most = Annotated[int, Query(ge=5, le=100_000, description="Points of each at most; minima and maxima stay.")]
_Digits = Annotated[
    int | None,
    Query(
        ge=1, le=17, description="Significant digits of the values, and times to a hundredth of a second; none for all."
    ),
]


@router.get("/jobs/{job_id}/tags", response_model=list[str])
def tags(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the names of a job's curves."""
    return answer(studio.curves.tags(job_id))


@router.get("/jobs/{job_id}/marks", response_model=list[Mark])
def marks(studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the moments that explain a job's curves: interventions, new attempts, a divergence."""
    return answer(studio.jobs.marks(job_id))


@router.get("/jobs/{job_id}/curves", response_model=list[CurveShape])
def curves(
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    tag: Annotated[list[str], Query(description="Names of curves; none for all.")] = [],  # noqa: B006 - never changed
    since_step: _Since = -1,
    max_points: _Most = 2000,
    digits: _Digits = None,
) -> Response:
    """Return curves of a job; with ``digits`` a third as long, which a chart cannot tell from the whole."""
    found = studio.curves.some(job_id, tag, since_step=since_step, max_points=max_points)
    return answer(found if digits is None else [_shortened(curve, digits) for curve in found])


def _shortened(curve: Curve, digits: int) -> Curve:
    values = np.array([float(f"{value:.{digits}g}") for value in curve.values.tolist()], np.float64)
    return dataclasses.replace(curve, values=values, times=np.round(curve.times, 2))
