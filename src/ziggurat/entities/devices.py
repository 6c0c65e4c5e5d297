"""Resources of a machine, and the resources that a job needs."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Device", "ResourceRequest", "Resources", "disk_reserve_bytes"]

_GIBIBYTE = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Device:
    """An accelerator.

    Args:
        index: by which it is asked for, from 0.
        name: as its driver says.
        memory_bytes: that it has.
        free_bytes: that nobody uses now.
        load: share of the last second in which it worked, in [0, 1]; None where that is not known.
        usable: whether jobs may be put on it.
    """

    index: int
    name: str
    memory_bytes: int
    free_bytes: int
    load: float | None = None
    usable: bool = True


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a machine has for jobs.

    Args:
        devices: its accelerators.
        cpu_slots: jobs that may run on its processors at a time, besides those on accelerators.
        memory_bytes: that jobs may use together.
        dataset_slots: datasets that may be made at a time.
        disk_free_bytes: free space where the workspace is.
        disk_reserve_bytes: no job is started with less free space than this.
    """

    devices: tuple[Device, ...] = ()
    cpu_slots: int = 1
    memory_bytes: int = 0
    dataset_slots: int = 1
    disk_free_bytes: int = 1 << 62
    disk_reserve_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class ResourceRequest:
    """What a job needs.

    Args:
        devices: accelerators, at the same time; 0 for a job on the processors.
        device_indices: just these, where a person chose them; empty for any.
        device_memory_bytes: free memory on each of them; 0 if unknown.
        memory_bytes: of the machine; 0 if unknown.
        slot: ``cpu``, ``device`` or ``dataset``: what limits how many run at a time.
    """

    devices: int = 0
    device_indices: tuple[int, ...] = field(default=())
    device_memory_bytes: int = 0
    memory_bytes: int = 0
    slot: str = "cpu"


def disk_reserve_bytes(total_bytes: int) -> int:
    """Return the free space below which no job is started: 2 % of the disk, and at least 1 GiB."""
    return max(_GIBIBYTE, total_bytes // 50)
