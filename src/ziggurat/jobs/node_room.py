"""Free resources of one node while a plan is made: accelerators, slots and memory, and what is reserved of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ziggurat.entities import Device, Job, NodeResources, ResourceRequest
from ziggurat.formatting import as_bytes
from ziggurat.jobs.fewer_processes import ReducedRequest
from ziggurat.jobs.reasons import devices_busy, disk_is_full, gpus_text, memory_short, slots_rule, slots_taken

__all__ = ["NEVER", "NodeRoom", "Reservation", "Shortage", "device_count", "slot_of"]

NEVER: Final = float("inf")


@dataclass(frozen=True)
class Shortage:
    """Why a job does not start on a node now.

    Args:
        rule: what the job needs or waits for; it may be the same on other nodes.
        tell: returns what is in the way on this node, with the sign that joins it to the rule; None where the rule
            says it. It is called for the few nodes that a reason names, while nothing has changed on them.
        names_node: whether its words name the node.
        is_of_gpus: whether it is accelerators that are missing.
    """

    rule: str
    tell: Callable[[], str] | None = None
    names_node: bool = False
    is_of_gpus: bool = False


@dataclass(frozen=True)
class Reservation:
    """What the first job of a line keeps on a node from those behind it, until it can start."""

    job: Job
    devices: frozenset[int] = frozenset()
    slot: str = ""
    memory_bytes: int = 0


def device_count(needs: ResourceRequest) -> int:
    """Return how many accelerators a job needs on each of its nodes."""
    return len(needs.device_indices) or needs.devices


def slot_of(needs: ResourceRequest) -> str:
    """Return what limits how many such jobs run at a time: ``dataset``, ``cpu``, or ``device``."""
    if needs.slot == "dataset":
        return "dataset"
    return "device" if device_count(needs) else "cpu"


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
        self._in_slots[slot_of(job.needs)].append(job)
        self._holders.update(dict.fromkeys(devices, job))
        self._memory_bytes += job.needs.memory_bytes

    @property
    def free_devices(self) -> int:
        """How many accelerators no job is on."""
        return len(self._usable) - len(self._holders)

    @property
    def unkept_memory_bytes(self) -> float:
        """How much memory neither runs nor is reserved; infinite where the node has no limit."""
        if not self.node.memory_bytes:
            return NEVER
        return self._free_memory_bytes() - sum(each.memory_bytes for each in self.reservations.values())

    def device_sizes(self) -> set[int]:
        """Return all amounts of memory that one of its accelerators has, or has free."""
        return {size for each in self._usable for size in (each.memory_bytes, each.free_bytes)}

    # ---- what the node can never give

    def impossible(self, needs: ResourceRequest) -> Shortage | None:
        """Return why a job could not start on this node even if nothing ran there; None if it could."""
        is_of_cluster = needs.nodes > 1 or isinstance(needs, ReducedRequest)
        if is_of_cluster and (self.node.has_queue or self.node.executor == "local"):
            return self._never(f"{self.place} is no node of a Ray cluster")
        if self.node.has_queue:
            return None
        count = device_count(needs)
        missing = sorted(set(needs.device_indices) - {device.index for device in self._usable})
        if missing:
            return self._never(f"needs GPU {missing[0]}, which {self.place} does not have for jobs")
        if count > len(self._usable):
            has = gpus_text(len(self._usable))
            return self._never(f"needs {gpus_text(count)}", f"; {self.place} has {has} for jobs", is_of_gpus=True)
        if count > len(self._suitable(needs)):
            size = as_bytes(needs.device_memory_bytes)
            detail = f"; {self.place} has too few so large"
            return self._never(f"needs {gpus_text(count)} with {size} each", detail, is_of_gpus=True)
        memory_bytes = self.node.memory_bytes
        if 0 < memory_bytes < needs.memory_bytes:
            has = as_bytes(memory_bytes)
            return self._never(f"needs {as_bytes(needs.memory_bytes)} of memory", f"; {self.place} has {has} for jobs")
        kind = slot_of(needs)
        if kind != "device" and self._slots(kind) < 1:
            what = "making datasets" if kind == "dataset" else "jobs on the processors"
            return self._never(f"{self.place} has no place for {what}")
        return None

    def _never(self, rule: str, detail: str = "", *, is_of_gpus: bool = False) -> Shortage:
        return Shortage(rule, (lambda: detail) if detail else None, names_node=True, is_of_gpus=is_of_gpus)

    # ---- what is free

    def find(self, needs: ResourceRequest, lines: Collection[str]) -> tuple[int, ...] | Shortage:
        """Return the accelerators for a job that could start now, else why it cannot.

        Args:
            needs: what it needs.
            lines: those whose reservations hold for it.
        """
        if self.node.disk_free_bytes < self.node.disk_reserve_bytes:
            return Shortage(disk_is_full(self.node))
        if self.node.has_queue:
            return tuple(range(device_count(needs)))
        kept = [each for line, each in self.reservations.items() if line in lines]
        devices = self._find_devices(needs, kept)
        shortage = devices if isinstance(devices, Shortage) else None
        return shortage or self._lack_of_slot(needs, kept) or self._lack_of_memory(needs, kept) or devices

    def _find_devices(self, needs: ResourceRequest, kept: Sequence[Reservation]) -> tuple[int, ...] | Shortage:
        count = device_count(needs)
        if not count:
            return ()
        keepers = {index: each.job for each in kept for index in each.devices}
        free = [each for each in self._suitable(needs) if each.index not in keepers and self._is_free(each, needs)]
        if len(free) < count:
            tell = partial(self._tell_devices, needs, free, keepers)
            return Shortage(f"needs {gpus_text(count)}", tell, is_of_gpus=True)
        # The smallest that do, so that the large ones stay for those that need them.
        chosen = sorted(free, key=lambda each: (each.memory_bytes, each.index))[:count]
        return tuple(sorted(each.index for each in chosen))

    def _tell_devices(self, needs: ResourceRequest, free: Sequence[Device], keepers: dict[int, Job]) -> str:
        lacking = [each for each in self._suitable(needs) if each not in free]
        return f"; {devices_busy(lacking, self._holders, keepers, self._now, self._clock)}"

    def _lack_of_slot(self, needs: ResourceRequest, kept: Sequence[Reservation]) -> Shortage | None:
        kind = slot_of(needs)
        if kind == "device":
            return None
        holders, slots = self._in_slots[kind], self._slots(kind)
        keepers = [each.job for each in kept if each.slot == kind]
        if len(holders) + len(keepers) < slots:
            return None
        keeper = keepers[0] if keepers else None
        return Shortage(slots_rule(kind, slots), partial(slots_taken, slots, holders, keeper, self._now, self._clock))

    def _lack_of_memory(self, needs: ResourceRequest, kept: Sequence[Reservation]) -> Shortage | None:
        needed = needs.memory_bytes
        if not self.node.memory_bytes or not needed:
            return None
        keepers = [each for each in kept if each.memory_bytes]
        free = self._free_memory_bytes() - sum(each.memory_bytes for each in keepers)
        if needed <= free:
            return None
        keeper = keepers[0].job if keepers else None
        return Shortage(f"needs {as_bytes(needed)} of memory", partial(memory_short, free, keeper))

    # ---- the first in line

    def reserve(self, job: Job) -> None:
        """Keep what a job needs from those behind it in its line, until it can start."""
        needs = job.needs
        others = frozenset(index for each in self.reservations.values() for index in each.devices)
        suitable = [each for each in self._suitable(needs) if each.index not in others]
        sooner = sorted(suitable, key=lambda each: (self._free_at(each, needs), each.index))
        kind = slot_of(needs)
        needed = needs.memory_bytes if self.node.memory_bytes else 0
        free = self._free_memory_bytes()
        self.reservations[kind] = Reservation(
            job,
            devices=frozenset(each.index for each in sooner[: device_count(needs)]),
            slot="" if kind == "device" else kind,
            # Only where memory is what it lacks: else it would lie idle for as long as the accelerators are busy.
            memory_bytes=min(max(0, free), needed) if needed > free else 0,
        )

    def expected_start(self, needs: ResourceRequest) -> float:
        """Return when a job could start here, in seconds since 1970; ``NEVER`` while unknown."""
        if self.node.has_queue:
            return NEVER
        return max(self._now, self._devices_at(needs), self._slot_at(needs), self._memory_at(needs))

    def _devices_at(self, needs: ResourceRequest) -> float:
        count = device_count(needs)
        return sorted(self._free_at(each, needs) for each in self._suitable(needs))[count - 1] if count else 0.0

    def _slot_at(self, needs: ResourceRequest) -> float:
        kind = slot_of(needs)
        if kind == "device" or len(self._in_slots[kind]) < self._slots(kind):
            return 0.0
        ends = sorted(self._end(each) for each in self._in_slots[kind])
        return ends[len(ends) - self._slots(kind)]

    def _memory_at(self, needs: ResourceRequest) -> float:
        lacking = needs.memory_bytes - self._free_memory_bytes() if self.node.memory_bytes else 0
        if lacking <= 0:
            return 0.0
        for holder in sorted(self._running, key=self._end):
            lacking -= holder.needs.memory_bytes
            if lacking <= 0:
                return self._end(holder)
        return NEVER

    # ---- single things

    def _suitable(self, needs: ResourceRequest) -> list[Device]:
        """Return the accelerators that would fit if nothing ran here."""
        wanted, needed = needs.device_indices, needs.device_memory_bytes
        return [each for each in self._usable if each.memory_bytes >= needed and (not wanted or each.index in wanted)]

    def _is_free(self, device: Device, needs: ResourceRequest) -> bool:
        return device.index not in self._holders and device.free_bytes >= needs.device_memory_bytes

    def _free_at(self, device: Device, needs: ResourceRequest) -> float:
        holder = self._holders.get(device.index)
        if holder is not None:
            return self._end(holder)
        return self._now if device.free_bytes >= needs.device_memory_bytes else NEVER  # a stranger's program is on it

    def _end(self, job: Job) -> float:
        return NEVER if job.remaining_s is None else self._now + job.remaining_s

    def _slots(self, kind: str) -> int:
        return self.node.dataset_slots if kind == "dataset" else self.node.cpu_slots

    def _free_memory_bytes(self) -> int:
        return self.node.memory_bytes - self._memory_bytes
