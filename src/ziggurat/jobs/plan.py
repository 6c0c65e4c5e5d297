"""Scheduling policy for queued jobs: a pure function of jobs and machine, with a reason for each waiting job.

The order is priority, then position. Jobs wait in three lines (accelerators, CPU, dataset creation), and the first
waiting job of each line reserves the resources that it needs. A job behind it starts only with resources outside that
reservation, or if it ends before the first one could start (Lifka, "The ANL/IBM SP scheduling system", 1995, calls
this EASY backfilling). So a stream of small jobs never starves a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ziggurat.entities import Device, Job, ResourceRequest, Resources
from ziggurat.formatting import as_bytes
from ziggurat.jobs.reasons import (
    clock_text,
    dependency_failed,
    dependency_gone,
    dependency_waits,
    devices_busy,
    disk_is_full,
    gpus_text,
    memory_short,
    slots_taken,
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
        devices: indices of the accelerators that it gets.
    """

    job_id: str
    devices: tuple[int, ...] = ()


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
class Waiting:
    """Why a job waits.

    Args:
        reason: a sentence for people.
        expected_start: seconds since 1970; None while unknown.
        blockers: ids of the jobs that it waits for.
    """

    reason: str
    expected_start: float | None = None
    blockers: tuple[str, ...] = ()


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
    resources: Resources,
    now: float,
    *,
    clock: Callable[[float, float], str] = clock_text,
) -> Plan:
    """Return which jobs of the queue start now, which can never start, and why each of the others waits.

    Args:
        jobs: those in the queue, and those that they depend on; others are passed over.
        running: those that hold something of the machine.
        resources: of the machine, in use or not.
        now: seconds since 1970.
        clock: writes a moment and now as a time of day for people.
    """
    known = {job.id: job for job in (*jobs, *running)}
    allocator = Allocator(running, resources, now, clock)
    actions: list[Start | Fail] = []
    waiting: dict[str, Waiting] = {}
    failed: dict[str, str] = {}
    for job in in_order(job for job in known.values() if job.state == "queued"):
        blocked = _by_dependencies(job, known, failed, now, clock)
        if isinstance(blocked, Fail):
            actions.append(blocked)
            failed[job.id] = blocked.reason
            continue
        if blocked is None and resources.disk_free_bytes < resources.disk_reserve_bytes:
            blocked = Waiting(reason=disk_is_full(resources))
        placed = blocked or allocator.place(job)
        if isinstance(placed, Waiting):
            waiting[job.id] = placed
        else:
            actions.append(Start(job.id, placed))
    return Plan(actions=tuple(actions), waiting=waiting)


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs in the order of the queue: priority, then position."""
    return sorted(jobs, key=lambda job: (-job.priority, job.position, job.created, job.id))


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
        blockers=tuple(other.id for other in open_ones),
    )


@dataclass(frozen=True)
class _Reservation:
    """What the first job of a line keeps from those behind it, until it can start."""

    job: Job
    until: float | None
    devices: frozenset[int] = frozenset()
    slot: str = ""
    memory_bytes: int = 0


def device_count(job: Job) -> int:
    """Return how many accelerators a job needs."""
    return len(job.needs.device_indices) or job.needs.devices


def slot_of(job: Job) -> str:
    """Return what limits how many such jobs run at a time: ``dataset``, ``cpu``, or ``device``."""
    if job.needs.slot == "dataset":
        return "dataset"
    return "device" if device_count(job) else "cpu"


class Allocator:
    """What is free; ``place`` takes from it.

    Args:
        running: jobs that hold something.
        resources: what the machine has.
        now: seconds since 1970.
        clock: writes times of day.
    """

    def __init__(
        self, running: Iterable[Job], resources: Resources, now: float, clock: Callable[[float, float], str]
    ) -> None:
        self._resources = resources
        self._now = now
        self._clock = clock
        self._running = sorted(running, key=lambda job: job.id)
        self._holders = {index: job for job in self._running for index in job.devices}
        self._reservations: dict[str, _Reservation] = {}
        # What a job was told that needs the same: nothing changed since, and the queue may be long.
        self._refused: dict[tuple[ResourceRequest, float | None], Waiting] = {}

    def place(self, job: Job) -> tuple[int, ...] | Waiting:
        """Give a job what it needs and return the accelerators; where that cannot be, return why.

        The first job of its line that finds no room reserves what it needs.
        """
        alike = (job.needs, job.remaining_s)
        if alike in self._refused:
            return self._refused[alike]
        reserved = len(self._reservations)
        placed = self._impossible(job) or self._placed(job)
        # Those behind the first in line are told that something is kept for it, so its own answer is not theirs.
        if isinstance(placed, Waiting) and len(self._reservations) == reserved:
            self._refused[alike] = placed
        return placed

    def _placed(self, job: Job) -> tuple[int, ...] | Waiting:
        kept = [each for each in self._reservations.values() if not self._ends_before(job, each.until)]
        devices = self._find_devices(job, kept)
        shortage = devices if isinstance(devices, Waiting) else None
        shortage = shortage or self._lack_of_slot(job, kept) or self._lack_of_memory(job, kept)
        if shortage is None and isinstance(devices, tuple):
            self._take(job, devices)
            return devices
        assert shortage is not None
        expected = self._expected_start(job)
        line = slot_of(job)
        if line in self._reservations:
            return Waiting(reason=shortage.reason, blockers=shortage.blockers)
        self._reservations[line] = self._reservation(job, expected)
        self._refused.clear()
        return Waiting(reason=shortage.reason, expected_start=expected, blockers=shortage.blockers)

    # ---- what the machine can never give

    def _impossible(self, job: Job) -> Waiting | None:
        needs, count = job.needs, device_count(job)
        usable = [device for device in self._resources.devices if device.usable]
        missing = sorted(set(needs.device_indices) - {device.index for device in usable})
        if missing:
            return _never(f"needs GPU {missing[0]}, which this machine does not have for jobs")
        if count > len(usable):
            return _never(f"needs {gpus_text(count)}; this machine has {gpus_text(len(usable))} for jobs")
        if count > len(self._suitable(job)):
            size = as_bytes(needs.device_memory_bytes)
            return _never(f"needs {gpus_text(count)} with {size} each; this machine has too few so large")
        memory_bytes = self._resources.memory_bytes
        if 0 < memory_bytes < needs.memory_bytes:
            has = as_bytes(memory_bytes)
            return _never(f"needs {as_bytes(needs.memory_bytes)} of memory; this machine has {has} for jobs")
        if slot_of(job) != "device" and self._slots(slot_of(job)) < 1:
            what = "making datasets" if slot_of(job) == "dataset" else "jobs on the processors"
            return _never(f"this machine has no place for {what}")
        return None

    # ---- what is free

    def _find_devices(self, job: Job, kept: Sequence[_Reservation]) -> tuple[int, ...] | Waiting:
        count = device_count(job)
        keepers = {index: each.job for each in kept for index in each.devices}
        suitable = self._suitable(job)
        free = [each for each in suitable if self._is_free(each, job) and each.index not in keepers]
        if len(free) >= count:
            # The smallest that do, so that the large ones stay for those that need them.
            chosen = sorted(free, key=lambda each: (each.memory_bytes, each.index))[:count]
            return tuple(sorted(each.index for each in chosen))
        lacking = [each for each in suitable if each not in free]
        blockers = [self._holders.get(each.index) or keepers.get(each.index) for each in lacking]
        reason = devices_busy(count, lacking, self._holders, keepers, self._now, self._clock)
        return Waiting(reason=reason, blockers=_ids(blockers))

    def _lack_of_slot(self, job: Job, kept: Sequence[_Reservation]) -> Waiting | None:
        kind = slot_of(job)
        if kind == "device":
            return None
        holders, slots = self._in_slot(kind), self._slots(kind)
        keepers = [each.job for each in kept if each.slot == kind]
        if len(holders) + len(keepers) < slots:
            return None
        keeper = keepers[0] if keepers else None
        reason = slots_taken(kind, slots, holders, keeper, self._now, self._clock)
        return Waiting(reason=reason, blockers=_ids([*holders, keeper]))

    def _lack_of_memory(self, job: Job, kept: Sequence[_Reservation]) -> Waiting | None:
        needed = job.needs.memory_bytes
        if not self._resources.memory_bytes or not needed:
            return None
        keepers = [each for each in kept if each.memory_bytes]
        free = self._free_memory_bytes() - sum(each.memory_bytes for each in keepers)
        if needed <= free:
            return None
        holders = [each for each in self._running if each.needs.memory_bytes]
        keeper = keepers[0].job if keepers else None
        reason = memory_short(needed, free, keeper)
        return Waiting(reason=reason, blockers=_ids([*holders, keeper]))

    def _take(self, job: Job, devices: tuple[int, ...]) -> None:
        self._running.append(job)
        self._holders.update(dict.fromkeys(devices, job))
        self._refused.clear()

    # ---- the first in line

    def _reservation(self, job: Job, expected: float | None) -> _Reservation:
        others = frozenset(index for each in self._reservations.values() for index in each.devices)
        suitable = [each for each in self._suitable(job) if each.index not in others]
        sooner = sorted(suitable, key=lambda each: (self._free_at(each, job), each.index))
        kind = slot_of(job)
        needed = job.needs.memory_bytes if self._resources.memory_bytes else 0
        free = self._free_memory_bytes()
        return _Reservation(
            job,
            until=expected,
            devices=frozenset(each.index for each in sooner[: device_count(job)]),
            slot="" if kind == "device" else kind,
            # Only where memory is what it lacks: else it would lie idle for as long as the accelerators are busy.
            memory_bytes=min(max(0, free), needed) if needed > free else 0,
        )

    def _expected_start(self, job: Job) -> float | None:
        moment = max(self._now, self._devices_at(job), self._slot_at(job), self._memory_at(job))
        return None if moment == _NEVER else moment

    def _devices_at(self, job: Job) -> float:
        count = device_count(job)
        return sorted([self._now, *(self._free_at(each, job) for each in self._suitable(job))])[count] if count else 0.0

    def _slot_at(self, job: Job) -> float:
        kind = slot_of(job)
        if kind == "device" or len(self._in_slot(kind)) < self._slots(kind):
            return 0.0
        ends = sorted(self._end(each) for each in self._in_slot(kind))
        return ends[len(ends) - self._slots(kind)]

    def _memory_at(self, job: Job) -> float:
        lacking = job.needs.memory_bytes - self._free_memory_bytes() if self._resources.memory_bytes else 0
        for holder in sorted(self._running, key=self._end):
            if lacking <= 0:
                return 0.0
            lacking -= holder.needs.memory_bytes
            if lacking <= 0:
                return self._end(holder)
        return 0.0 if lacking <= 0 else _NEVER

    # ---- single things

    def _suitable(self, job: Job) -> list[Device]:
        """Return the accelerators that would fit on an idle machine."""
        wanted, needed = job.needs.device_indices, job.needs.device_memory_bytes
        return sorted(
            (
                each
                for each in self._resources.devices
                if each.usable and each.memory_bytes >= needed and (not wanted or each.index in wanted)
            ),
            key=lambda each: each.index,
        )

    def _is_free(self, device: Device, job: Job) -> bool:
        return device.index not in self._holders and device.free_bytes >= job.needs.device_memory_bytes

    def _free_at(self, device: Device, job: Job) -> float:
        holder = self._holders.get(device.index)
        if holder is not None:
            return self._end(holder)
        return self._now if self._is_free(device, job) else _NEVER  # a stranger's program is on it

    def _end(self, job: Job) -> float:
        return _NEVER if job.remaining_s is None else self._now + job.remaining_s

    def _ends_before(self, job: Job, moment: float | None) -> bool:
        return moment is not None and self._end(job) <= moment

    def _in_slot(self, kind: str) -> list[Job]:
        return [each for each in self._running if slot_of(each) == kind]

    def _slots(self, kind: str) -> int:
        return self._resources.dataset_slots if kind == "dataset" else self._resources.cpu_slots

    def _free_memory_bytes(self) -> int:
        return self._resources.memory_bytes - sum(each.needs.memory_bytes for each in self._running)


_NEVER = float("inf")


def _never(reason: str) -> Waiting:
    return Waiting(reason=reason)


def _ids(jobs: Iterable[Job | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(job.id for job in jobs if job is not None))
