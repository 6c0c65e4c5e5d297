"""Benchmark of a plan of the queue: 1,000 jobs over 10 and over 100 nodes."""

from __future__ import annotations

import time

from bench.parts.report import Options, Report, Row
from ziggurat.entities import Device, Job, NodeResources, ResourceRequest, Share
from ziggurat.jobs.plan import plan

__all__ = ["run"]

_JOBS = 1_000
_NODES = (10, 100)
_DEVICES = 4


def run(options: Options) -> Report:
    """Measure."""
    report = Report(
        "A plan of a queue of 1,000 jobs; from 10 to 100 nodes at most ten times the CPU time",
        "plan",
        _side(_NODES[0]),
        [
            f"{options.rounds} rounds; nodes with {_DEVICES} accelerators, of which two are busy",
            "no two jobs take equally long; alike: no job says how long; sizes: no two ask for equally many bytes",
        ],
    )
    queues = {"": _queue(), ", alike": _queue(is_alike=True), ", sizes": _queue(has_sizes=True)}
    situations = {
        f"{_side(count)}{kind}": (_machines(count), _running(count), queue)
        for kind, queue in queues.items()
        for count in _NODES
    }
    rows = {side: Row(side, [], []) for side in situations}
    for _ in range(options.rounds):
        for side, (machines, running, queue) in situations.items():
            wall, cpu = time.perf_counter(), time.process_time()
            plan(queue, running, machines, 1e6)
            rows[side].cpu_us.append((time.process_time() - cpu) * 1e6)
            rows[side].wall_us.append((time.perf_counter() - wall) * 1e6)
    few, many = (min(rows[_side(count)].cpu_us) for count in _NODES)
    report.notes.append(f"smallest of the rounds: 100 nodes against 10: {many / few:.1f} x")
    report.rows = list(rows.values())
    return report


def _side(nodes: int) -> str:
    return f"{nodes} nodes"


def _machines(count: int) -> list[NodeResources]:
    size = 16_000_000_000
    devices = tuple(Device(index=index, name="GPU", memory_bytes=size, free_bytes=size) for index in range(_DEVICES))
    return [
        NodeResources(name=f"n{number:03d}", devices=devices, memory_bytes=4 * size, datasets=frozenset())
        for number in range(count)
    ]


def _running(count: int) -> list[Job]:
    return [
        _job(f"r{number:03d}", "running", 2, remaining_s=60.0 + number, placement=(Share(f"n{number:03d}", (0, 1)),))
        for number in range(count)
    ]


def _queue(*, is_alike: bool = False, has_sizes: bool = False) -> list[Job]:
    return [
        _job(
            f"j{number:04d}",
            "queued",
            1 + number % 4,
            remaining_s=None if is_alike else float(number + 1),
            gib=number * 1e-2 if has_sizes else 0.0,
        )
        for number in range(_JOBS)
    ]


def _job(
    name: str,
    state: str,
    devices: int,
    *,
    remaining_s: float | None,
    placement: tuple[Share, ...] = (),
    gib: float = 0.0,
) -> Job:
    size = int(gib * 2**30)
    needs = ResourceRequest(devices=devices, slot="device", device_memory_bytes=size, memory_bytes=4 * size)
    return Job(
        id=name,
        kind="train",
        name=name,
        state=state,
        folder="",
        spec={},
        needs=needs,
        devices=tuple(range(devices)) if placement else (),
        placement=placement,
        remaining_s=remaining_s,
    )
