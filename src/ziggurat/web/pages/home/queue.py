"""Queue of the runs page: what runs, what waits, and moves within it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.entities import Identity, Job
from ziggurat.errors import JobError, UnknownNameError
from ziggurat.operations.jobs import reorder_job
from ziggurat.web.pages.job.view import JobAction, actions_of
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.jobs import Jobs

__all__ = ["Queue", "move_in_queue", "place_in_queue", "queue_of"]

MOVES: Final = ("first", "up", "down", "last")
"""Where a button moves a job of the queue."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A job of the queue.

    Args:
        place: from 1.
        job: it; its ``reason`` says why it waits.
        expected_start: seconds since 1970; None while unknown.
        actions: what can be done with it.
    """

    place: int
    job: Job
    expected_start: float | None
    actions: Sequence[JobAction]


@dataclass(frozen=True, kw_only=True)
class Queue:
    """What runs and what waits.

    Args:
        running: the oldest first, each with what can be done with it.
        waiting: the next one first, as many as are shown.
        following: id of the first that is not shown; empty where all are.
        total: how many wait.
        is_whole: whether more than the first few were asked for.
    """

    running: Sequence[tuple[Job, Sequence[JobAction]]]
    waiting: Sequence[Waiting]
    following: str
    total: int
    is_whole: bool


def queue_of(studio: Studio, limit: int, *, is_whole: bool = False, running: Sequence[Job] | None = None) -> Queue:
    """Return what runs and what waits.

    Args:
        studio: that is held.
        limit: how many waiting jobs are shown.
        is_whole: whether more than the first few were asked for.
        running: running jobs, if already loaded.
    """
    jobs = studio.jobs
    found = jobs.queue(limit + 1)
    waiting = [
        Waiting(place=place, job=job, expected_start=jobs.expected_start(job.id), actions=actions_of(job))
        for place, job in enumerate(found[:limit], start=1)
    ]
    total = len(found) if len(found) <= limit else jobs.counts()["queued"]
    following = found[limit].id if len(found) > limit else ""
    total = max(total, len(found))  # some may have come meanwhile
    at_work = [(job, actions_of(job)) for job in (jobs.running() if running is None else running)]
    return Queue(running=at_work, waiting=waiting, following=following, total=total, is_whole=is_whole)


def move_in_queue(studio: Studio, who: Identity, job_id: str, move: str) -> int:
    """Move a job of the queue, and return its new place, from 1.

    Args:
        studio: that has the queue.
        who: moves it.
        job_id: of the job.
        move: a name in ``MOVES``.

    Raises:
        UnknownNameError: where there is no such move.
        JobError: where it is not in the queue.
    """
    if move not in MOVES:
        raise UnknownNameError("move", move, MOVES)
    order = [each for each, _ in studio.jobs.queue_order()]
    here = _place(studio.jobs, order, job_id)
    there = {"first": 0, "up": max(0, here - 1), "down": min(len(order) - 1, here + 1), "last": len(order) - 1}[move]
    if there == here:
        return here + 1
    rest = [each for each in order if each != job_id]
    return place_in_queue(studio, who, job_id, rest[there] if there < len(rest) else None)


def place_in_queue(studio: Studio, who: Identity, job_id: str, before: str | None) -> int:
    """Put a job of the queue before another one, or last, and return its new place, from 1.

    Jobs of a higher priority come first. So a job that is put among those of another priority takes that one over.

    Raises:
        JobError: where one of them is not in the queue.
    """
    queue = studio.jobs.queue_order()
    _, own = queue[_place(studio.jobs, [each for each, _ in queue], job_id)]
    rest = [(each, priority) for each, priority in queue if each != job_id]
    there = len(rest) if before is None else _place(studio.jobs, [each for each, _ in rest], before)
    ahead = rest[there - 1][1] if there else None
    behind = rest[there][1] if there < len(rest) else None
    priority = _fitting(own, ahead, behind)
    reorder_job(
        studio,
        who,
        job_id,
        rest[there][0] if behind == priority else None,  # None: behind all others of its priority
        priority=priority if priority != own else None,
        is_placed=priority in (ahead, behind),
    )
    return there + 1


def _fitting(priority: int, ahead: int | None, behind: int | None) -> int:
    """Return the priority nearest to its own with which a job stands between two others."""
    if behind is not None and priority < behind:
        return behind
    return ahead if ahead is not None and priority > ahead else priority


def _place(jobs: Jobs, order: Sequence[str], job_id: str) -> int:
    if job_id not in order:
        state = jobs.get(job_id).state
        raise JobError(
            "Only jobs in the queue are moved.",
            received=f"job {job_id} is {state}",
            advice="Check the queue again: it has changed meanwhile.",
        )
    return order.index(job_id)
