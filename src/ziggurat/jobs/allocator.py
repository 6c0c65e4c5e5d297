"""Allocator of nodes to jobs while a plan is made: where a job starts, and why it waits where it starts nowhere."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ziggurat.entities import Job, NodeResources, ResourceRequest, Share
from ziggurat.jobs.fewer_processes import Fewer, ReducedRequest, fewer_processes
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
        for_gpus: whether it waits for accelerators.
    """

    reason: str
    expected_start: float | None = None
    for_gpus: bool = False


@dataclass
class _Answers:
    """What the nodes say to one request. A queue may be long, and few of its jobs ask for something of their own.

    Args:
        possible: numbers of the nodes that have enough of everything, in use or not.
        free: number of such a node → the accelerators that it gives now.
        short: number → why it gives nothing now.
        starts: number → when it will, in seconds since 1970.
        seen: how many of the changes of nodes these answers have followed.
        refusal: what the last job was told that asked for this; None where that is not known for the next one.
    """

    possible: frozenset[int]
    free: dict[int, tuple[int, ...]] = field(default_factory=dict)
    short: dict[int, Shortage] = field(default_factory=dict)
    starts: dict[int, float] = field(default_factory=dict)
    seen: int = 0
    refusal: Waiting | None = None


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
        self._now = now
        self._is_single = len(nodes) == 1
        places = ["this machine" if self._is_single else f"node {node.name}" for node in nodes]
        self._rooms = [NodeRoom(node, now, clock, place) for node, place in zip(nodes, places, strict=True)]
        self._numbers = {room.node.name: number for number, room in enumerate(self._rooms)}
        # Numbers of the nodes in the order in which they gave or reserved something.
        self._changes: list[int] = []
        self._answers: dict[tuple[ResourceRequest, frozenset[str]], _Answers] = {}
        self._possible: dict[ResourceRequest, frozenset[int]] = {}
        self._impossible: dict[ResourceRequest, Waiting] = {}
        # Line → until when what its first job needs is kept for it; None while unknown.
        self._lines: dict[str, float | None] = {}
        self._device_sizes = sorted({size for room in self._rooms for size in room.device_sizes()})
        self._memory_bytes = min((room.unkept_memory_bytes for room in self._rooms), default=NEVER)
        for job in sorted(running, key=lambda job: job.id):
            self._hold(job, job.placement or (Share("", job.devices),))

    def place(self, job: Job) -> tuple[Share, ...] | Waiting:
        """Give a job what it needs and return its shares; where that cannot be, return why.

        A job of several nodes gets all of them or none. The first job of its line that finds no room reserves what it
        needs on the nodes where it can start first.
        """
        answers = self._asked(job)
        if answers.refusal is None:
            if len(answers.possible) < job.needs.nodes:
                return self._send(job) or self._never(job.needs)
            if len(answers.free) >= job.needs.nodes:
                return self._start(job, answers.free)
            return self._wait(job, answers)
        return answers.refusal

    def _send(self, job: Job) -> tuple[Share, ...]:
        """Give a training over several nodes to a cluster that places jobs itself; return nothing if there is none."""
        for room in self._rooms if job.kind == "train" and job.needs.nodes > 1 else ():
            if room.node.has_queue and room.node.disk_free_bytes >= room.node.disk_reserve_bytes:
                count = device_count(job.needs)
                ranks = tuple(range(job.needs.nodes * max(1, count)))
                shares = (Share(room.node.name, tuple(range(count)), ranks),)
                self._hold(job, shares)
                return shares
        return ()

    def fewer(self, job: Job) -> Fewer | None:
        """Return on how many processes a job of several nodes can resume; None if those that it asks for can be had."""
        if any(room.node.has_queue for room in self._rooms):
            return None
        return fewer_processes(job, self._numbers, lambda needs: len(self._possible_for(self._rounded(needs))))

    def _asked(self, job: Job) -> _Answers:
        """Return what the nodes say to a job now; only those that have changed since are asked again."""
        end = NEVER if job.remaining_s is None else self._now + job.remaining_s
        lines = frozenset(line for line, until in self._lines.items() if until is None or end > until)
        needs = self._rounded(job.needs)
        answers = self._answers.get((needs, lines))
        if answers is None:
            answers = self._answers[needs, lines] = _Answers(self._possible_for(needs))
            numbers = answers.possible
        elif answers.seen == len(self._changes):
            return answers
        else:
            numbers = answers.possible.intersection(self._changes[answers.seen :])
        answers.seen, answers.refusal = len(self._changes), None
        for number in numbers:
            found = self._rooms[number].find(needs, lines)
            answers.starts.pop(number, None)
            if isinstance(found, Shortage):
                answers.free.pop(number, None)
                answers.short[number] = found
            else:
                answers.short.pop(number, None)
                answers.free[number] = found
        return answers

    def _rounded(self, needs: ResourceRequest) -> ResourceRequest:
        """Return a request to which all nodes say the same: many jobs differ only by bytes that are there anyway."""
        sizes, size = self._device_sizes, needs.device_memory_bytes
        number = bisect_left(sizes, size)
        return replace(
            needs,
            device_memory_bytes=sizes[number] if size and number < len(sizes) else size,
            memory_bytes=0 if needs.memory_bytes <= self._memory_bytes else needs.memory_bytes,
            datasets=(),
        )

    def _possible_for(self, needs: ResourceRequest) -> frozenset[int]:
        if needs not in self._possible:
            numbers = (number for number, room in enumerate(self._rooms) if room.impossible(needs) is None)
            self._possible[needs] = frozenset(numbers)
        return self._possible[needs]

    def _start(self, job: Job, free: Mapping[int, tuple[int, ...]]) -> tuple[Share, ...]:
        chosen = sorted(free, key=lambda number: (*_preference(self._rooms[number], job), number))[: job.needs.nodes]
        # On one node a single process has all accelerators; over several nodes there is one for each.
        has_processes = len(chosen) > 1 or isinstance(job.needs, ReducedRequest)
        each = max(1, device_count(job.needs)) if has_processes else 1
        ranks = [tuple(range(first * each, (first + 1) * each)) for first in range(len(chosen))]
        shares = tuple(
            Share(self._rooms[number].node.name, free[number], mine) for number, mine in zip(chosen, ranks, strict=True)
        )
        self._hold(job, shares)
        return shares

    def _wait(self, job: Job, answers: _Answers) -> Waiting:
        needs = job.needs
        for number in answers.possible.difference(answers.starts):
            answers.starts[number] = self._rooms[number].expected_start(needs)
        # Where nothing is known, the first nodes are chosen, and the same ones by every plan.
        sooner = sorted(answers.possible, key=lambda number: (answers.starts[number], number))
        lacks = [(self._rooms[number], answers.short[number]) for number in sooner if number in answers.short]
        waiting = self._waiting(lacks, needs.nodes, len(answers.free))
        line = slot_of(needs)
        if line in self._lines:
            answers.refusal = waiting
            return waiting
        # Those behind it are told that something is kept for it, so its own answer is not theirs.
        moment = answers.starts[sooner[needs.nodes - 1]]
        self._lines[line] = None if moment == NEVER else moment
        for number in sooner[: needs.nodes]:
            self._rooms[number].reserve(job)
            self._changed(number)
        return replace(waiting, expected_start=self._lines[line])

    def _hold(self, job: Job, shares: Iterable[Share]) -> None:
        for share in shares:
            if self._rooms:
                number = self._numbers.get(share.node, 0)
                self._rooms[number].hold(job, share.devices)
                self._changed(number)

    def _changed(self, number: int) -> None:
        self._changes.append(number)
        self._memory_bytes = min(self._memory_bytes, self._rooms[number].unkept_memory_bytes)

    # ---- reasons

    def _never(self, needs: ResourceRequest) -> Waiting:
        """Return why too few nodes could ever start a job, whatever ends."""
        if not self._rooms:
            return Waiting(reason="there is no machine to run on now")
        if needs not in self._impossible:
            lacks = [(room, lack) for room in self._rooms if (lack := room.impossible(needs)) is not None]
            if lacks and needs.nodes <= len(self._rooms):
                self._impossible[needs] = self._waiting(lacks, needs.nodes, len(self._rooms) - len(lacks))
            else:
                there = "there is only this machine" if self._is_single else f"there are {len(self._rooms)}"
                self._impossible[needs] = Waiting(reason=f"needs {needs.nodes} nodes; {there}")
        return self._impossible[needs]

    def _waiting(self, lacks: Sequence[tuple[NodeRoom, Shortage]], nodes: int, have: int) -> Waiting:
        """Return what nodes lack, the first of them in words."""
        return Waiting(reason=self._joined(lacks, nodes, have), for_gpus=any(lack.is_of_gpus for _, lack in lacks))

    def _joined(self, lacks: Sequence[tuple[NodeRoom, Shortage]], nodes: int, have: int) -> str:
        """Return one reason for those of several nodes, which names the first of them."""
        first = lacks[0][1]
        if self._is_single:
            return first.rule + (first.tell() if first.tell else "")
        wanted = [f"needs {nodes} nodes, of which {have} can be had now"] if nodes > 1 else []
        # What all of them lack is said once.
        common = first.rule if first.tell and all(lack.rule == first.rule for _, lack in lacks) else ""
        parts = [_on_node(room, lack, common) for room, lack in lacks[:_SHOWN]]
        more = [f"and {len(lacks) - _SHOWN} more nodes"] if len(lacks) > _SHOWN else []
        return "; ".join([*wanted, *filter(None, [common]), ", ".join([*parts, *more])])


def _preference(room: NodeRoom, job: Job) -> tuple[bool, int]:
    """Return what sorts the nodes on which a job could start: its datasets are there, then the tightest fit."""
    has_data = room.node.datasets is None or room.node.datasets.issuperset(job.needs.datasets)
    return not has_data, room.free_devices if device_count(job.needs) else 0


def _on_node(room: NodeRoom, lack: Shortage, common: str) -> str:
    detail = lack.tell() if lack.tell else ""
    text = detail.lstrip(";:, ") if common else lack.rule + detail
    return text if lack.names_node else f"{room.place}: {text}"
