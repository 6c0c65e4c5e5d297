"""What the page of the machines shows of each node: its places, who is on them, and its versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ziggurat.entities import Job, NodeResources
from ziggurat.formatting import as_bytes

__all__ = ["NodeView", "Place", "differing_versions", "node_views"]


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place for a job on a node.

    Args:
        title: such as ``GPU 0``.
        detail: what it is; empty for a place on the CPU.
        job: that is on it; None if it is free.
    """

    title: str
    detail: str = ""
    job: Job | None = None


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """A node.

    Args:
        name: of it.
        kind: ``this machine``, or the name of the cluster that it is or is part of.
        places: for jobs.
        versions: in one line.
        facts: title → text.
        datasets: which ones are there, in one line.
        has_queue: whether it is a cluster that places jobs itself.
    """

    name: str
    kind: str
    places: tuple[Place, ...]
    versions: str
    facts: tuple[tuple[str, str], ...]
    datasets: str
    has_queue: bool = False


def node_views(nodes: Sequence[NodeResources], running: Sequence[Job]) -> list[NodeView]:
    """Return what is shown of each node.

    Args:
        nodes: the studio's own first.
        running: jobs that a worker is at; one without a placement is on the first node.
    """
    return [
        _node_view(node, [job for job in running if _is_on(job, node, is_first=not number)], is_first=not number)
        for number, node in enumerate(nodes)
    ]


def differing_versions(nodes: Sequence[NodeResources]) -> tuple[str, ...]:
    """Return the names of what is not of one version on all nodes that say their versions."""
    told = [node.versions for node in nodes if node.versions]
    names = sorted({name for versions in told for name in versions})
    return tuple(name for name in names if len({versions.get(name) for versions in told}) > 1)


def _node_view(node: NodeResources, jobs: Sequence[Job], *, is_first: bool) -> NodeView:
    memory = as_bytes(node.memory_bytes) if node.memory_bytes else "no limit"
    facts = [
        ("Places for jobs", "as its queue gives them") if node.has_queue else ("Memory for jobs", memory),
        ("Disk", f"{as_bytes(node.disk_free_bytes)} free"),
    ]
    return NodeView(
        name=node.name,
        kind="cluster with a queue of its own" if node.has_queue else "this machine" if is_first else "Ray",
        places=_places(node, jobs),
        versions=", ".join(f"{name} {version}" for name, version in node.versions.items()),
        facts=tuple(facts),
        datasets="all" if node.datasets is None else str(len(node.datasets)),
        has_queue=node.has_queue,
    )


def _places(node: NodeResources, jobs: Sequence[Job]) -> tuple[Place, ...]:
    if node.has_queue:
        counts = [len(_devices(job, node)) for job in jobs]
        titles = [f"{count} × GPU" if count else "CPU" for count in counts]
        return tuple(Place(title=title, job=job) for title, job in zip(titles, jobs, strict=True))
    holders = {index: job for job in jobs for index in _devices(job, node)}
    devices = [
        Place(
            title=f"GPU {device.index}",
            detail=f"{device.name}, {as_bytes(device.memory_bytes)}",
            job=holders.get(device.index),
        )
        for device in node.devices
        if device.usable
    ]
    others = [job for job in jobs if not _devices(job, node)]
    free = max(0, node.cpu_slots - sum(job.needs.slot != "dataset" for job in others))
    slots = [Place(title="Dataset" if job.needs.slot == "dataset" else "CPU", job=job) for job in others]
    return (*devices, *slots, *[Place(title="CPU")] * free)


def _devices(job: Job, node: NodeResources) -> tuple[int, ...]:
    return next((share.devices for share in job.placement if share.node == node.name), job.devices)


def _is_on(job: Job, node: NodeResources, *, is_first: bool) -> bool:
    if not job.placement:
        return is_first
    return any(share.node == node.name for share in job.placement)
