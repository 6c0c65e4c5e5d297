"""Scheduling policy for queued jobs: a pure function of jobs and nodes, with a reason for each waiting job.

The order is priority, then position. Jobs wait in three lines (accelerators, CPU, dataset creation), and the first
waiting job of each line reserves the resources that it needs. A job behind it starts only with resources outside that
reservation, or if it ends before the first one could start (Lifka, "The ANL/IBM SP scheduling system", 1995, calls
this EASY backfilling). So a stream of small jobs never starves a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ziggurat.entities import Job, NodeResources, Share
from ziggurat.jobs.allocator import Allocator, Waiting
from ziggurat.jobs.fewer_processes import SETTLED_S, Fewer
from ziggurat.jobs.reasons import (
    ANY_GPU_WILL_DO,
    clock_text,
    dependency_failed,
    dependency_gone,
    dependency_waits,
    disk_is_full,
)

__all__ = [
    "Fail",
    "Start",
    "Waiting",
    "plan",
]


_MODEL_USERS: Final = ("evaluate", "infer", "embed")
"""Kinds of job that use a checkpoint: the training must stay, but need only be done where their spec says so."""


@dataclass(frozen=True)
class Start:
    """Start a job.

    Args:
        job_id: of the job.
        placement: the nodes and accelerators that it gets; rank 0 is in the first share.
        note: sentence on a training that resumes on fewer processes than it asks for; else empty.
    """

    job_id: str
    placement: tuple[Share, ...]
    note: str = ""


@dataclass(frozen=True)
class Fail:
    """Let a job fail that can never start.

    Args:
        job_id: of the job.
        reason: one sentence.
    """

    job_id: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What happens next.

    Args:
        actions: in the order in which they are carried out.
        waiting: id → why, of every job that stays in the queue.
    """

    actions: tuple[Start | Fail, ...] = ()
    waiting: Mapping[str, Waiting] = field(default_factory=dict)


def plan(
    jobs: Iterable[Job],
    running: Sequence[Job],
    nodes: Sequence[NodeResources],
    now: float,
    *,
    resumable: Collection[str] = (),
    nodes_since: float = 0.0,
    clock: Callable[[float, float], str] = clock_text,
) -> Plan:
    """Return which jobs of the queue start now, which can never start, and why each of the others waits.

    Args:
        jobs: those in the queue, and those that they depend on; others are passed over.
        running: those that hold something of a node.
        nodes: what the machines have, in use or not; the studio's own first, whose disk holds all job folders.
        now: seconds since 1970.
        resumable: ids of the trainings over several nodes that have a checkpoint. They resume on fewer processes if
            there are too few nodes, even idle ones, and no node has come or gone for ``SETTLED_S``.
        nodes_since: when a node came or went last, in seconds since 1970.
        clock: writes a moment and now as a time of day for people.
    """
    known = {job.id: job for job in (*jobs, *running)}
    allocator = Allocator(running, nodes, now, clock)
    is_full = bool(nodes) and nodes[0].disk_free_bytes < nodes[0].disk_reserve_bytes
    actions: list[Start | Fail] = []
    waiting: dict[str, Waiting] = {}
    failed: dict[str, str] = {}
    for job in in_order(job for job in known.values() if job.state == "queued"):
        blocked = _by_dependencies(job, known, failed, now, clock)
        if isinstance(blocked, Fail):
            actions.append(blocked)
            failed[job.id] = blocked.reason
            continue
        if blocked is None and is_full:
            blocked = Waiting(reason=disk_is_full(nodes[0]))
        if blocked is not None:
            waiting[job.id] = blocked
            continue
        fewer = allocator.fewer(job) if job.id in resumable else None
        if fewer is not None:
            placed = _on_fewer(job, fewer, allocator, nodes_since + SETTLED_S, now, clock)
        else:
            placed = _with_choice(job, allocator.place(job))
        if isinstance(placed, Waiting):
            waiting[job.id] = placed
        else:
            note = "" if fewer is None else f"Resumed {fewer.text}: {fewer.cause}."
            actions.append(Start(job.id, placed, note))
    return Plan(actions=tuple(actions), waiting=waiting)


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs in the order of the queue: priority, then position."""
    return sorted(jobs, key=lambda job: (-job.priority, job.position, job.created, job.id))


def _with_choice(job: Job, placed: tuple[Share, ...] | Waiting) -> tuple[Share, ...] | Waiting:
    """Return the answer; a job that waits for a GPU though no device was selected is told that any will do."""
    is_open = job.needs.devices == 1 and job.spec.get("devices") == []
    if isinstance(placed, Waiting) and is_open and placed.for_gpus:
        return replace(placed, reason=f"{placed.reason}; {ANY_GPU_WILL_DO}")
    return placed


def _on_fewer(
    job: Job,
    fewer: Fewer,
    allocator: Allocator,
    settled: float,
    now: float,
    clock: Callable[[float, float], str],
) -> tuple[Share, ...] | Waiting:
    """Return where a training over several nodes resumes on fewer processes, or why it waits.

    Args:
        job: the training.
        fewer: on how many.
        allocator: gives the nodes.
        settled: when it may do so, in seconds since 1970.
        now: likewise.
        clock: writes times of day.
    """
    if now < settled:
        waiting = allocator.place(job)  # it takes and reserves nothing: there are too few nodes
        assert isinstance(waiting, Waiting)
        soon = f"resumes {fewer.text} at about {clock(settled, now)} unless {fewer.awaited}"
        return replace(waiting, reason=f"{waiting.reason}; {soon}", expected_start=settled)
    placed = allocator.place(replace(job, needs=fewer.needs))
    if isinstance(placed, Waiting):
        return replace(placed, reason=f"resumes {fewer.text}, as {fewer.cause}; {placed.reason}")
    return placed


def _by_dependencies(
    job: Job, known: Mapping[str, Job], failed: Mapping[str, str], now: float, clock: Callable[[float, float], str]
) -> Waiting | Fail | None:
    """Return why the jobs that it depends on keep it from starting; None where they do not."""
    others = {each: known.get(each) for each in job.depends_on}
    waits = job.kind not in _MODEL_USERS or bool(job.spec.get("after_training"))
    for job_id, other in others.items():
        if other is None:
            return Fail(job.id, dependency_gone(job_id))
        if not waits:
            continue
        if other.state == "failed" or other.id in failed:
            return Fail(job.id, dependency_failed(other, failed.get(other.id, other.reason)))
    open_ones = [other for other in others.values() if other is not None and other.state != "done"]
    if not open_ones or not waits:
        return None
    first = open_ones[0]
    ends = [now + other.remaining_s for other in open_ones if other.state == "running" and other.remaining_s]
    return Waiting(
        reason=dependency_waits(first, now, clock),
        expected_start=max(ends) if len(ends) == len(open_ones) else None,
    )
