"""Chart of a training's learning rate: the planned course, what was used, and what is to come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.entities import Job
from ziggurat.errors import ZigguratError
from ziggurat.formatting import as_number
from ziggurat.workspace.previews import rate_curve
from ziggurat.workspace.studio import Studio

__all__ = ["RateChart", "rate_chart"]

_POINTS: Final = 160
_WIDTH: Final = 312
_HEIGHT: Final = 108
_LEFT: Final = 44
_RIGHT: Final = 308
_TOP: Final = 10
_BOTTOM: Final = 76
_TICKS: Final = 4
_TAG: Final = "learning_rate"

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class RateChart:
    """Lines and ticks in the pixels of the drawing.

    Args:
        planned: points of the schedule, as SVG takes them; empty if unknown.
        used: points of what the worker used.
        ahead: points of what holds until the end where a person set the rate; else empty.
        end: place of the newest value; None before the first.
        x_ticks: place and text of the ticks at the bottom: epochs.
        y_ticks: place and text of those at the left.
    """

    planned: str
    used: str
    ahead: str
    end: tuple[float, float] | None
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    width: int = _WIDTH
    height: int = _HEIGHT
    box: tuple[int, int, int, int] = (_LEFT, _TOP, _RIGHT, _BOTTOM)


def rate_chart(studio: Studio, job: Job, asked: float | None) -> RateChart | None:
    """Return the chart; None where nothing is known of the rate.

    Args:
        studio: where the job is.
        job: a training.
        asked: learning rate set by a person; None if there is none.
    """
    used = _used(studio, job)
    planned = _planned(job)
    epochs = float(job.max_epoch or job.spec.get("epochs") or 0)
    most = max((rate for _, rate in (*planned, *used)), default=0.0)
    if epochs <= 0 or most <= 0 or not math.isfinite(most):
        return None
    ahead = [used[-1], (epochs, asked)] if used and asked is not None and job.is_active else []
    top = max(most, asked or 0.0)

    def place(point: tuple[float, float]) -> tuple[float, float]:
        x = _LEFT + (_RIGHT - _LEFT) * min(1.0, point[0] / epochs)
        return round(x, 1), round(_BOTTOM - (_BOTTOM - _TOP) * point[1] / top, 1)

    def line(points: Points) -> str:
        return " ".join(f"{x:g},{y:g}" for x, y in map(place, points))

    return RateChart(
        planned=line(planned),
        used=line(used),
        ahead=line(ahead),
        end=place(used[-1]) if used else None,
        x_ticks=tuple((place((epoch, 0.0))[0], as_number(epoch)) for epoch in _epoch_ticks(epochs)),
        y_ticks=tuple((place((0.0, rate))[1], as_number(rate, 2)) for rate in (0.0, top / 2, top)),
    )


def _used(studio: Studio, job: Job) -> list[tuple[float, float]]:
    if _TAG not in job.scalars or not job.max_epoch or not job.total_steps:
        return []
    curve = studio.curves.curve(job.id, _TAG, max_points=_POINTS)
    length = job.total_steps / job.max_epoch
    pairs = zip(curve.steps.tolist(), curve.values.tolist(), strict=True)
    return [(step / length, value) for step, value in pairs if math.isfinite(value)]


def _planned(job: Job) -> list[tuple[float, float]]:
    try:
        found = rate_curve(job.spec, points=_POINTS)
    except ZigguratError:  # a spec of another release
        return []
    return list(zip(found["epochs"], found["rates"], strict=True))


def _epoch_ticks(epochs: float) -> list[float]:
    step = max(1, math.ceil(epochs / _TICKS))
    return [float(epoch) for epoch in range(0, int(epochs) + 1, step)]
