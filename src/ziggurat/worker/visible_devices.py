"""Renumbering of accelerators in a process that sees only some of the machine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["visible_devices"]


def visible_devices(devices: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return devices as the framework of this process numbers them.

    People and the studio's queue number accelerators as the driver does. A worker of the studio sees those that its job
    was given, and a framework numbers what it sees from 0: ``gpu:3`` of the machine is ``gpu:0`` there. Where the
    numbers are not all among those that are visible, somebody has chosen these by hand, and they stay.

    Args:
        devices: of a spec, such as ``gpu:3``.
        environment: variables of the process; ``CUDA_VISIBLE_DEVICES`` lists the driver's numbers.
    """
    visible = [part.strip() for part in environment.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    wanted = [name.rpartition(":")[2] for name in devices if "gpu" in name.lower() and ":" in name]
    if not wanted or any(number not in visible for number in wanted):
        return tuple(devices)
    return tuple(_renumbered(name, visible) for name in devices)


def _renumbered(name: str, visible: Sequence[str]) -> str:
    head, colon, number = name.rpartition(":")
    return f"{head}{colon}{visible.index(number)}" if "gpu" in name.lower() and colon else name
