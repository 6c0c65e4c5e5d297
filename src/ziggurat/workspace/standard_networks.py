"""List of the standard networks and their source code."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from ziggurat.zoo import STANDARD_NETWORKS, network_path
from ziggurat.zoo.backends import known_networks, why_not_installed

__all__ = ["network_text", "standard_networks", "usual_network"]

_SMALL_PX: Final = 32
_MIDDLE_PX: Final = 96
"""Up to the first, LeNet is enough for gray images; beyond the second, the first layer must be a coarse one."""


def standard_networks(framework: str) -> list[dict[str, Any]]:
    """Return the standard networks that a framework has a file for, as JSON values."""
    found = [STANDARD_NETWORKS[name] for name in known_networks(framework) or () if name in STANDARD_NETWORKS]
    return [{**asdict(network), "kinds": list(network.kinds)} for network in found]


def usual_network(size: tuple[int, int] | None, channels: int | None) -> str:
    """Return the standard network to begin with for images with a class each, as ``backend/name``.

    Args:
        size: (height, width) of the images; None where they differ.
        channels: of the images; None where they differ.
    """
    if why_not_installed("tensorflow") is not None:
        return "null/mlp"
    if size is not None and channels == 1 and max(size) <= _SMALL_PX:
        fitting = ("lenet", "convnet")
    else:
        fitting = ("convnet",) if size is None or min(size) <= _MIDDLE_PX else ("resnet18",)
    for name in fitting:
        if size is None or min(size) >= STANDARD_NETWORKS[name].smallest_px:
            return f"tensorflow/{name}"
    return "null/mlp"


def network_text(name: str, framework: str) -> str:
    """Return the source of a standard network.

    Raises:
        UnknownNameError: where there is none of that name.
    """
    return network_path(name, framework).read_text(encoding="utf-8")
