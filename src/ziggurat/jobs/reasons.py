"""Messages that tell users why a job waits or cannot start."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ziggurat.entities import Device, Job, NodeResources
from ziggurat.formatting import as_bytes

__all__ = [
    "ANY_GPU_WILL_DO",
    "clock_text",
    "dependency_failed",
    "dependency_gone",
    "dependency_waits",
    "devices_busy",
    "disk_is_full",
    "fewer_text",
    "gpus_text",
    "job_text",
    "memory_short",
    "nodes_are_gone",
    "nodes_are_there",
    "slots_rule",
    "slots_taken",
]

ANY_GPU_WILL_DO = "any GPU will do, as no device is selected; with CPU only it would need none"

_SHOWN = 3
_DAY_S = 86400

Clock = Callable[[float, float], str]


def clock_text(moment: float, now: float) -> str:
    """Return a moment as the machine's time of day: ``16:40``, or ``Tue 16:40`` where it is more than a day away."""
    return time.strftime("%H:%M" if moment - now < _DAY_S else "%a %H:%M", time.localtime(moment))


def job_text(job: Job) -> str:
    """Return what people call a job."""
    return f"job {job.name or job.id}" if job.kind != "dataset" else f"dataset {job.name or job.id}"


def gpus_text(count: int) -> str:
    """Return a count of accelerators."""
    return "1 GPU" if count == 1 else f"{count} GPUs"


def fewer_text(processes: int, asked: int) -> str:
    """Return on how many of its processes a training over several nodes resumes."""
    return f"on {processes} of {asked} processes"


def nodes_are_gone(names: Sequence[str]) -> str:
    """Return which nodes of the last attempt are not there now, at least one."""
    if len(names) == 1:
        return f"node {names[0]} is gone"
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    *first, last = [*names[:_SHOWN], *more]
    return f"nodes {', '.join(first)} and {last} are gone"


def nodes_are_there(count: int, asked: int, devices: int) -> str:
    """Return how many nodes there are for a training over several, where those of its last attempt do not say it.

    Args:
        count: of nodes that have enough of everything, in use or not.
        asked: how many it asks for.
        devices: accelerators that it asks for on each.
    """
    which = f" with {gpus_text(devices)}" if devices else ""
    return f"{count} of {asked} nodes{which} {'is' if count == 1 else 'are'} there"


def dependency_gone(job_id: str) -> str:
    """Return why a job fails whose dependency was deleted."""
    return f"job {job_id}, which it needs, was deleted"


def dependency_failed(other: Job, reason: str) -> str:
    """Return why a job fails whose dependency failed."""
    return f"the {job_text(other)}, which it needs, failed" + (f": {reason}" if reason else "")


def dependency_waits(other: Job, now: float, clock: Clock) -> str:
    """Return why a job waits whose dependency is not done."""
    if other.state == "stopped":
        return f"needs the {job_text(other)}, which was {'paused' if other.paused else 'stopped'}: resume that first"
    if other.state == "queued":
        return f"needs the {job_text(other)}, which is in the queue"
    return f"needs the {job_text(other)}, which is {other.state}{until_text(_end(other, now), now, clock)}"


def disk_is_full(node: NodeResources) -> str:
    """Return why nothing starts on a full disk."""
    free, reserve = as_bytes(node.disk_free_bytes), as_bytes(node.disk_reserve_bytes)
    return f"the disk has {free} free and needs {reserve}: free some space, or lower the reserve"


def devices_busy(
    devices: Sequence[Device], holders: dict[int, Job], keepers: dict[int, Job], now: float, clock: Clock
) -> str:
    """Return why there are too few accelerators.

    Args:
        devices: that would do but cannot be had now.
        holders: index → the job that is on it.
        keepers: index → the job that it is kept for.
        now: seconds since 1970.
        clock: writes times of day.
    """
    parts = []
    for device in devices[:_SHOWN]:
        holder, keeper = holders.get(device.index), keepers.get(device.index)
        if holder is not None:
            until = until_text(_end(holder, now), now, clock)
            parts.append(f"GPU {device.index} is busy with {job_text(holder)}{until}")
        elif keeper is not None:
            parts.append(f"GPU {device.index} is kept for {job_text(keeper)}, which is before it")
        else:
            parts.append(f"GPU {device.index} has only {as_bytes(device.free_bytes)} free")
    more = [f"and {len(devices) - _SHOWN} more are not free"] if len(devices) > _SHOWN else []
    return ", ".join([*parts, *more])


def slots_rule(kind: str, slots: int) -> str:
    """Return what a job without a place on the processors, or for a dataset, waits for."""
    if slots == 1:
        return "waits for another dataset" if kind == "dataset" else "waits for the CPU"
    return f"waits for one of {slots} {'dataset' if kind == 'dataset' else 'CPU'} slots"


def slots_taken(slots: int, holders: Sequence[Job], keeper: Job | None, now: float, clock: Clock) -> str:
    """Return who is in the slots, with the sign that joins it to the rule."""
    if len(holders) < slots and keeper is not None:
        return f", kept for {job_text(keeper)}"
    parts = [f"{job_text(holder)}{until_text(_end(holder, now), now, clock)}" for holder in holders[:_SHOWN]]
    more = [f"{len(holders) - _SHOWN} more"] if len(holders) > _SHOWN else []
    return f": {' and '.join([*parts, *more])}" if parts else "; none may start now"


def memory_short(free_bytes: int, keeper: Job | None) -> str:
    """Return what memory is free, with the sign that joins it to what a job needs."""
    kept = f", besides what is kept for {job_text(keeper)}" if keeper is not None else ""
    return f"; {as_bytes(max(0, free_bytes))} are free{kept}"


def until_text(end: float | None, now: float, clock: Clock) -> str:
    """Return until when, or nothing if unknown."""
    return "" if end is None else f" until about {clock(end, now)}"


def _end(job: Job, now: float) -> float | None:
    return None if job.remaining_s is None else now + job.remaining_s
