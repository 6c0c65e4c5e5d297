"""Allocator of nodes to jobs while a plan is made: where a job starts, and why it waits where it starts nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.entities import Job, NodeResources, ResourceRequest, Share
from ziggurat.jobs.node_room import NEVER, NodeRoom, Shortage, device_count, slot_of

__all__ = ["Allocator", "Waiting"]

_SHOWN: Final = 3
"""How many nodes a reason names."""


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


class Allocator:
    """What is free; ``place`` takes from it.

    Args:
        running: jobs that hold something. One without a placement was started by an earlier release or by the shell,
            and is counted on the first node, as is a share on a node that is not there any more.
        nodes: what the machines have.
        now: seconds since 1970.
        clock: writes times of day.
    """

    def __init__(
        self,
        running: Iterable[Job],
        nodes: Sequence[NodeResources],
        now: float,
        clock: Callable[[float, float], str],
    ) -> None:
        self._is_single = len(nodes) == 1
        places = ["this machine" if self._is_single else f"node {node.name}" for node in nodes]
        self._rooms = [NodeRoom(node, now, clock, place) for node, place in zip(nodes, places, strict=True)]
        self._by_name = {room.node.name: room for room in self._rooms}
        for job in sorted(running, key=lambda job: job.id):
            self._hold(job, job.placement or (Share("", job.devices),))
        self._lines: set[str] = set()
        # What a job was told that needs the same: nothing changed since, and the queue may be long.
        self._refused: dict[tuple[ResourceRequest, float | None], Waiting] = {}

    def place(self, job: Job) -> tuple[Share, ...] | Waiting:
        """Give a job what it needs and return its shares; where that cannot be, return why.

        A job of several nodes gets all of them or none. The first job of its line that finds no room reserves what it
        needs on the nodes where it can start first.
        """
        alike = (job.needs, job.remaining_s)
        if alike in self._refused:
            return self._refused[alike]
        lines = len(self._lines)
        placed = self._placed(job)
        # Those behind the first in line are told that something is kept for it, so its own answer is not theirs.
        if isinstance(placed, Waiting) and len(self._lines) == lines:
            self._refused[alike] = placed
        return placed

    def _placed(self, job: Job) -> tuple[Share, ...] | Waiting:
        lacks = [(room, room.impossible(job)) for room in self._rooms]
        possible = [room for room, lack in lacks if lack is None]
        if len(possible) < job.needs.nodes:
            return self._impossible(job, len(possible), [(room, lack) for room, lack in lacks if lack is not None])
        found = [(room, room.find(job)) for room in possible]
        free = [(room, devices) for room, devices in found if isinstance(devices, tuple)]
        if len(free) >= job.needs.nodes:
            free.sort(key=lambda each: _preference(each[0], job))
            return self._start(job, free[: job.needs.nodes])
        starts = {room.node.name: room.expected_start(job) for room in possible}
        # The sort is stable: where nothing is known, the first nodes are chosen, and the same ones by every plan.
        sooner = sorted(possible, key=lambda room: starts[room.node.name])
        order = {room.node.name: number for number, room in enumerate(sooner)}
        short = [(room, lack) for room, lack in found if isinstance(lack, Shortage)]
        shortage = self._joined(sorted(short, key=lambda each: order[each[0].node.name]), job.needs.nodes, len(free))
        line = slot_of(job)
        if line in self._lines:
            return Waiting(reason=shortage.rule, blockers=shortage.blockers)
        chosen = sooner[: job.needs.nodes]
        moment = max(starts[room.node.name] for room in chosen)
        expected = None if moment == NEVER else moment
        for room in chosen:
            room.reserve(job, expected)
        self._lines.add(line)
        self._refused.clear()
        return Waiting(reason=shortage.rule, expected_start=expected, blockers=shortage.blockers)

    def _start(self, job: Job, chosen: Sequence[tuple[NodeRoom, tuple[int, ...]]]) -> tuple[Share, ...]:
        # On one node a single process has all accelerators; over several nodes there is one for each.
        each = max(1, device_count(job)) if len(chosen) > 1 else 1
        ranks = [tuple(range(number * each, (number + 1) * each)) for number in range(len(chosen))]
        shares = tuple(
            Share(room.node.name, devices, mine) for (room, devices), mine in zip(chosen, ranks, strict=True)
        )
        self._hold(job, shares)
        self._refused.clear()
        return shares

    def _hold(self, job: Job, shares: Iterable[Share]) -> None:
        for share in shares:
            room = self._by_name.get(share.node) or (self._rooms[0] if self._rooms else None)
            if room is not None:
                room.hold(job, share.devices)

    # ---- reasons

    def _impossible(self, job: Job, count: int, lacks: Sequence[tuple[NodeRoom, Shortage]]) -> Waiting:
        if not self._rooms:
            return Waiting(reason="there is no machine to run on now")
        if not lacks:
            there = "there is only this machine" if self._is_single else f"there are {len(self._rooms)}"
            return Waiting(reason=f"needs {job.needs.nodes} nodes; {there}")
        return Waiting(reason=self._joined(lacks, job.needs.nodes, count).rule)

    def _joined(self, lacks: Sequence[tuple[NodeRoom, Shortage]], nodes: int, have: int) -> Shortage:
        """Return one shortage for those of several nodes, which names the first of them."""
        blockers = tuple(dict.fromkeys(job_id for _, lack in lacks for job_id in lack.blockers))
        if self._is_single:
            return Shortage(lacks[0][1].rule + lacks[0][1].detail, "", blockers)
        wanted = [f"needs {nodes} nodes, of which {have} can be had now"] if nodes > 1 else []
        # What all of them lack is said once.
        common = lacks[0][1].rule if len({lack.rule for _, lack in lacks}) == 1 and lacks[0][1].detail else ""
        parts = [_on_node(room, lack, common) for room, lack in lacks[:_SHOWN]]
        more = [f"and {len(lacks) - _SHOWN} more nodes"] if len(lacks) > _SHOWN else []
        return Shortage("; ".join([*wanted, *filter(None, [common]), ", ".join([*parts, *more])]), "", blockers)


def _preference(room: NodeRoom, job: Job) -> tuple[bool, int]:
    """Return what sorts the nodes on which a job could start: its datasets are there, then the tightest fit."""
    has_data = room.node.datasets is None or set(job.needs.datasets) <= room.node.datasets
    return not has_data, room.free_devices if device_count(job) else 0


def _on_node(room: NodeRoom, lack: Shortage, common: str) -> str:
    text = lack.detail.lstrip(";:, ") if common else lack.rule + lack.detail
    return text if lack.names_node else f"{room.place}: {text}"
