"""List of the standard networks and their source code."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from ziggurat.entities.backend_info import backend_info, backend_infos
from ziggurat.zoo import network_path
from ziggurat.zoo.backends import why_not_usable

__all__ = ["network_text", "standard_networks", "usual_network"]

_SMALL_PX: Final = 32
_MIDDLE_PX: Final = 96
"""Up to the first, LeNet is enough for gray images; beyond the second, the first layer must be a coarse one."""


def standard_networks(backend: str) -> list[dict[str, Any]]:
    """Return the standard networks of a backend, as JSON values.

    Raises:
        UnknownNameError: where no backend of that name is installed.
    """
    return [{**asdict(network), "kinds": list(network.kinds)} for network in backend_info(backend).networks]


def usual_network(size: tuple[int, int] | None, channels: int | None) -> str:
    """Return the standard network to begin with for images with a class each, as ``backend/name``.

    Args:
        size: (height, width) of the images; None where they differ.
        channels: of the images; None where they differ.
    """
    if size is not None and channels == 1 and max(size) <= _SMALL_PX:
        fitting = ("lenet", "convnet")
    else:
        fitting = ("convnet",) if size is None or min(size) <= _MIDDLE_PX else ("resnet18",)
    usable = {name: info for name, info in backend_infos().items() if why_not_usable(name) is None}
    for backend, info in usable.items():
        for name in fitting:
            network = info.network(name)
            if network is not None and (size is None or min(size) >= network.smallest_px):
                return f"{backend}/{name}"
    # What takes images of any size.
    return next(
        f"{backend}/{network.name}"
        for backend, info in usable.items()
        for network in info.networks
        if network.input_shape is None
    )


def network_text(name: str, backend: str) -> str:
    """Return the source of a standard network.

    Raises:
        UnknownNameError: where there is none of that name.
    """
    return network_path(name, backend).read_text(encoding="utf-8")
