"""Export of the curves of a job as a CSV table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Final

from ziggurat.workspace.studio import Studio

__all__ = ["curves_csv"]

_MOST_POINTS: Final = 10_000_000


def curves_csv(studio: Studio, job_id: str, tags: list[str]) -> Iterator[bytes]:
    """Return the points of curves as CSV, one curve after the other: ``tag,step,epoch,time,value``.

    Args:
        studio: where they are.
        job_id: whose.
        tags: names of the curves.
    """
    yield b"tag,step,epoch,time,value\r\n"
    for tag in tags:
        curve = studio.curves.curve(job_id, tag, max_points=_MOST_POINTS)
        text = io.StringIO()
        columns = (curve.steps.tolist(), curve.epochs.tolist(), curve.times.tolist(), curve.values.tolist())
        csv.writer(text).writerows((tag, *row) for row in zip(*columns, strict=True))
        yield text.getvalue().encode()
