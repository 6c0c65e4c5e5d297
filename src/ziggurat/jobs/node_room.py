"""Free resources of one node while a plan is made: accelerators, slots and memory, and what is reserved of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.entities import Device, Job, NodeResources
from ziggurat.formatting import as_bytes
from ziggurat.jobs.reasons import devices_busy, disk_is_full, gpus_text, memory_short, slots_taken

__all__ = ["NEVER", "NodeRoom", "Reservation", "Shortage", "device_count", "slot_of"]

NEVER: Final = float("inf")


@dataclass(frozen=True)
class Shortage:
    """Why a job does not start on a node now.

    Args:
        rule: what the job needs or waits for; it may be the same on other nodes.
        detail: what is in the way on this node, with the sign that joins it to the rule; empty where the rule says it.
        blockers: ids of the jobs that it waits for.
        names_node: whether its words name the node.
    """

    rule: str
    detail: str = ""
    blockers: tuple[str, ...] = ()
    names_node: bool = False


@dataclass(frozen=True)
class Reservation:
    """What the first job of a line keeps on a node from those behind it, until it can start."""

    job: Job
    until: float | None
    devices: frozenset[int] = frozenset()
    slot: str = ""
    memory_bytes: int = 0


def device_count(job: Job) -> int:
    """Return how many accelerators a job needs on each of its nodes."""
    return len(job.needs.device_indices) or job.needs.devices


def slot_of(job: Job) -> str:
    """Return what limits how many such jobs run at a time: ``dataset``, ``cpu``, or ``device``."""
    if job.needs.slot == "dataset":
        return "dataset"
    return "device" if device_count(job) else "cpu"


class NodeRoom:
    """Free resources of a node.

    Args:
        node: what it has.
        now: seconds since 1970.
        clock: writes times of day.
        place: what a reason calls it, such as ``this machine``.
    """

    def __init__(self, node: NodeResources, now: float, clock: Callable[[float, float], str], place: str) -> None:
        self.node = node
        self.place = place
        self.reservations: dict[str, Reservation] = {}
        self._now = now
        self._clock = clock
        self._running: list[Job] = []
        self._in_slots: dict[str, list[Job]] = {"dataset": [], "cpu": [], "device": []}
        self._holders: dict[int, Job] = {}
        self._memory_bytes = 0
        self._usable = sorted((each for each in node.devices if each.usable), key=lambda each: each.index)

    def hold(self, job: Job, devices: Sequence[int]) -> None:
        """Give a job its accelerators, its slot and its memory."""
        self._running.append(job)
        self._in_slots[slot_of(job)].append(job)
        self._holders.update(dict.fromkeys(devices, job))
        self._memory_bytes += job.needs.memory_bytes

    @property
    def free_devices(self) -> int:
        """How many accelerators no job is on."""
        return len(self._usable) - len(self._holders)

    # ---- what the node can never give

    def impossible(self, job: Job) -> Shortage | None:
        """Return why a job could not start on this node even if nothing ran there; None if it could."""
        lack = None if self.node.has_queue else self._impossible(job)
        return None if lack is None else Shortage(*lack, names_node=True)

    def _impossible(self, job: Job) -> tuple[str, str] | None:
        needs, count = job.needs, device_count(job)
        missing = sorted(set(needs.device_indices) - {device.index for device in self._usable})
        if missing:
            return f"needs GPU {missing[0]}, which {self.place} does not have for jobs", ""
        if count > len(self._usable):
            return f"needs {gpus_text(count)}", f"; {self.place} has {gpus_text(len(self._usable))} for jobs"
        if count > len(self._suitable(job)):
            size = as_bytes(needs.device_memory_bytes)
            return f"needs {gpus_text(count)} with {size} each", f"; {self.place} has too few so large"
        memory_bytes = self.node.memory_bytes
        if 0 < memory_bytes < needs.memory_bytes:
            has = as_bytes(memory_bytes)
            return f"needs {as_bytes(needs.memory_bytes)} of memory", f"; {self.place} has {has} for jobs"
        if slot_of(job) != "device" and self._slots(slot_of(job)) < 1:
            what = "making datasets" if slot_of(job) == "dataset" else "jobs on the processors"
            return f"{self.place} has no place for {what}", ""
        return None

    # ---- what is free

    def find(self, job: Job) -> tuple[int, ...] | Shortage:
        """Return the accelerators for a job that could start now, else why it cannot."""
        if self.node.disk_free_bytes < self.node.disk_reserve_bytes:
            return Shortage(disk_is_full(self.node))
        if self.node.has_queue:
            return tuple(range(device_count(job)))
        kept = [each for each in self.reservations.values() if not self._ends_before(job, each.until)]
        devices = self._find_devices(job, kept)
        shortage = devices if isinstance(devices, Shortage) else None
        return shortage or self._lack_of_slot(job, kept) or self._lack_of_memory(job, kept) or devices

    def _find_devices(self, job: Job, kept: Sequence[Reservation]) -> tuple[int, ...] | Shortage:
        count = device_count(job)
        if not count:
            return ()
        keepers = {index: each.job for each in kept for index in each.devices}
        suitable = self._suitable(job)
        free = [each for each in suitable if self._is_free(each, job) and each.index not in keepers]
        if len(free) >= count:
            # The smallest that do, so that the large ones stay for those that need them.
            chosen = sorted(free, key=lambda each: (each.memory_bytes, each.index))[:count]
            return tuple(sorted(each.index for each in chosen))
        lacking = [each for each in suitable if each not in free]
        blockers = [self._holders.get(each.index) or keepers.get(each.index) for each in lacking]
        detail = devices_busy(lacking, self._holders, keepers, self._now, self._clock)
        return Shortage(f"needs {gpus_text(count)}", f"; {detail}", _ids(blockers))

    def _lack_of_slot(self, job: Job, kept: Sequence[Reservation]) -> Shortage | None:
        kind = slot_of(job)
        if kind == "device":
            return None
        holders, slots = self._in_slots[kind], self._slots(kind)
        keepers = [each.job for each in kept if each.slot == kind]
        if len(holders) + len(keepers) < slots:
            return None
        keeper = keepers[0] if keepers else None
        rule, detail = slots_taken(kind, slots, holders, keeper, self._now, self._clock)
        return Shortage(rule, detail, _ids([*holders, keeper]))

    def _lack_of_memory(self, job: Job, kept: Sequence[Reservation]) -> Shortage | None:
        needed = job.needs.memory_bytes
        if not self.node.memory_bytes or not needed:
            return None
        keepers = [each for each in kept if each.memory_bytes]
        free = self._free_memory_bytes() - sum(each.memory_bytes for each in keepers)
        if needed <= free:
            return None
        holders = [each for each in self._running if each.needs.memory_bytes]
        keeper = keepers[0].job if keepers else None
        rule, detail = memory_short(needed, free, keeper)
        return Shortage(rule, detail, _ids([*holders, keeper]))

    # ---- the first in line

    def reserve(self, job: Job, until: float | None) -> None:
        """Keep what a job needs from those behind it in its line, until it can start."""
        others = frozenset(index for each in self.reservations.values() for index in each.devices)
        suitable = [each for each in self._suitable(job) if each.index not in others]
        sooner = sorted(suitable, key=lambda each: (self._free_at(each, job), each.index))
        kind = slot_of(job)
        needed = job.needs.memory_bytes if self.node.memory_bytes else 0
        free = self._free_memory_bytes()
        self.reservations[kind] = Reservation(
            job,
            until=until,
            devices=frozenset(each.index for each in sooner[: device_count(job)]),
            slot="" if kind == "device" else kind,
            # Only where memory is what it lacks: else it would lie idle for as long as the accelerators are busy.
            memory_bytes=min(max(0, free), needed) if needed > free else 0,
        )

    def expected_start(self, job: Job) -> float:
        """Return when a job could start here, in seconds since 1970; ``NEVER`` while unknown."""
        if self.node.has_queue:
            return NEVER
        return max(self._now, self._devices_at(job), self._slot_at(job), self._memory_at(job))

    def _devices_at(self, job: Job) -> float:
        count = device_count(job)
        return sorted([self._now, *(self._free_at(each, job) for each in self._suitable(job))])[count] if count else 0.0

    def _slot_at(self, job: Job) -> float:
        kind = slot_of(job)
        if kind == "device" or len(self._in_slots[kind]) < self._slots(kind):
            return 0.0
        ends = sorted(self._end(each) for each in self._in_slots[kind])
        return ends[len(ends) - self._slots(kind)]

    def _memory_at(self, job: Job) -> float:
        lacking = job.needs.memory_bytes - self._free_memory_bytes() if self.node.memory_bytes else 0
        for holder in sorted(self._running, key=self._end):
            if lacking <= 0:
                return 0.0
            lacking -= holder.needs.memory_bytes
            if lacking <= 0:
                return self._end(holder)
        return 0.0 if lacking <= 0 else NEVER

    # ---- single things

    def _suitable(self, job: Job) -> list[Device]:
        """Return the accelerators that would fit if nothing ran here."""
        wanted, needed = job.needs.device_indices, job.needs.device_memory_bytes
        return [each for each in self._usable if each.memory_bytes >= needed and (not wanted or each.index in wanted)]

    def _is_free(self, device: Device, job: Job) -> bool:
        return device.index not in self._holders and device.free_bytes >= job.needs.device_memory_bytes

    def _free_at(self, device: Device, job: Job) -> float:
        holder = self._holders.get(device.index)
        if holder is not None:
            return self._end(holder)
        return self._now if self._is_free(device, job) else NEVER  # a stranger's program is on it

    def _end(self, job: Job) -> float:
        return NEVER if job.remaining_s is None else self._now + job.remaining_s

    def _ends_before(self, job: Job, moment: float | None) -> bool:
        return moment is not None and self._end(job) <= moment

    def _slots(self, kind: str) -> int:
        return self.node.dataset_slots if kind == "dataset" else self.node.cpu_slots

    def _free_memory_bytes(self) -> int:
        return self.node.memory_bytes - self._memory_bytes


def _ids(jobs: Iterable[Job | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(job.id for job in jobs if job is not None))
