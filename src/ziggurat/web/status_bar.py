"""Status bar of every page: devices, memory, disk, running and queued jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from ziggurat.entities import Job

__all__ = ["StatusBar", "status_bar_of"]


@dataclass(frozen=True, kw_only=True)
class StatusBar:
    """What the strip shows.

    Args:
        machine: as ``ziggurat.workspace.studio.machine.Machine.strip`` gives it.
        running: jobs that a worker is at, the oldest first.
        states: state → how many jobs are in it.
        owners: index of an accelerator → the job that has it.
    """

    machine: dict[str, Any]
    running: list[Job]
    states: Mapping[str, int]
    owners: dict[int, Job]


def status_bar_of(request: Request) -> StatusBar:
    """Return what the strip shows now."""
    studio = request.app.state.studio
    running = studio.jobs.running()
    return StatusBar(
        machine=studio.machine.strip(),
        running=running,
        states=studio.jobs.counts(),
        owners={index: job for job in running for index in job.devices},
    )
