"""Fewer processes for a training over several nodes that resumes after some of its nodes are gone.

Its batches are the same ones, split into fewer parts, so state and data go on exactly and only the arithmetic differs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from ziggurat.entities import Job, ResourceRequest
from ziggurat.jobs.reasons import fewer_text, nodes_are_gone, nodes_are_there

__all__ = ["SETTLED_S", "Fewer", "ReducedRequest", "fewer_processes"]

SETTLED_S: Final = 20.0
"""So long the nodes must have been the same ones: longer than the lease of a worker, so that a node that is silent for
a moment is not taken for gone, and the nodes of a cluster that is started have time to come."""


@dataclass(frozen=True)
class ReducedRequest(ResourceRequest):
    """What a training over several nodes needs that resumes on fewer processes, perhaps on one node alone."""


@dataclass(frozen=True, kw_only=True)
class Fewer:
    """How a training resumes on fewer processes than its spec asks for.

    Args:
        needs: of the nodes.
        text: on how many, such as ``on 2 of 4 processes``.
        cause: why, such as ``node c is gone``.
        awaited: what would change that, such as ``node c comes back``.
    """

    needs: ReducedRequest
    text: str
    cause: str
    awaited: str


def fewer_processes(job: Job, names: Collection[str], count: Callable[[ResourceRequest], int]) -> Fewer | None:
    """Return the largest number of processes on which a job can resume; None if that is the number that it asks for.

    Each node has as many processes as each other one. None also if no smaller number can split its batch into whole
    samples, or no node of the cluster can have one.

    Args:
        job: training over several nodes.
        names: of the nodes that are there.
        count: returns how many nodes could give what a request asks of each, if nothing ran there.
    """
    asked, size = job.needs, job.spec.get("batch_size")
    if asked.nodes < 2 or not isinstance(size, int) or count(asked) >= asked.nodes:
        return None
    best: tuple[int, int, int] | None = None
    for devices in range(asked.devices, 0, -1) if asked.devices else (0,):
        each = max(1, devices)
        available = min(asked.nodes, count(_reduced(asked, 1, devices)))
        nodes = next((nodes for nodes in range(available, 0, -1) if size % (nodes * each) == 0), 0)
        if nodes and (best is None or nodes * each > best[0]):
            best = (nodes * each, nodes, devices)
    if best is None:
        return None
    processes, nodes, devices = best
    gone = [share.node for share in job.placement if share.node not in names]
    return Fewer(
        needs=_reduced(asked, nodes, devices),
        text=fewer_text(processes, asked.nodes * max(1, asked.devices)),
        cause=nodes_are_gone(gone) if gone else nodes_are_there(count(asked), asked.nodes, asked.devices),
        awaited=f"node {gone[0]} comes back" if len(gone) == 1 else "more nodes come",
    )


def _reduced(asked: ResourceRequest, nodes: int, devices: int) -> ReducedRequest:
    return ReducedRequest(
        devices=devices,
        device_memory_bytes=asked.device_memory_bytes,
        memory_bytes=asked.memory_bytes,
        slot=asked.slot,
        nodes=nodes,
        datasets=asked.datasets,
    )
