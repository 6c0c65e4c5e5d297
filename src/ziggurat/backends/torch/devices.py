"""Devices of a request, as PyTorch names them."""

from __future__ import annotations

from typing import Final

import torch

from ziggurat.engine.backend import ProgramRequest
from ziggurat.errors import ConfigurationError

__all__ = ["device_of", "devices_of"]

_GPU_NAMES: Final = ("gpu", "cuda")


def device_of(request: ProgramRequest) -> torch.device:
    """Return where a request computes what it computes once: on its first device.

    Raises:
        ConfigurationError: where PyTorch does not see a device of it.
    """
    return devices_of(request)[0]


def devices_of(request: ProgramRequest) -> list[torch.device]:
    """Return the devices of a request; without any, the GPU where PyTorch sees one, else the CPU.

    ``cpu:0`` and ``cpu:1`` are the same processors; a training on both computes in two processes.

    Raises:
        ConfigurationError: where PyTorch does not see one, or they cannot train together.
    """
    if not request.devices:
        return [torch.device("cuda:0" if torch.cuda.is_available() else "cpu")]
    found = [_device(name) for name in request.devices]
    if len({each.type for each in found}) > 1:
        raise ConfigurationError(
            "The devices of a training are all GPUs, or all `cpu`.",
            received=", ".join(request.devices),
            advice="Leave the slower ones out: every step waits for them.",
        )
    if found[0].type == "cuda" and len(set(found)) < len(found):
        raise ConfigurationError(
            "A training uses a GPU once.",
            received=", ".join(request.devices),
            advice="Name each GPU once.",
        )
    return found


def _device(name: str) -> torch.device:
    kind, _, number = name.lower().strip("/").removeprefix("device:").partition(":")
    if kind == "cpu" and (not number or number.isdigit()):
        return torch.device("cpu")
    place = int(number) if number.isdigit() else 0 if not number else -1
    if kind not in _GPU_NAMES or not 0 <= place < torch.cuda.device_count():
        raise ConfigurationError(
            "A device is `cpu`, or a GPU that PyTorch sees, such as `gpu:0`.",
            received=f"{name}; PyTorch {torch.__version__} sees {torch.cuda.device_count()} GPUs",
            advice="Leave the devices out for the best there is, or install a build of PyTorch for the GPU.",
        )
    return torch.device("cuda", place)
