"""Task ``convert_weights``: a file of PyTorch weights becomes safetensors, in a process that has PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.errors import MissingDependencyError
from ziggurat.zoo.heads import own_name

__all__ = ["convert_weights"]

_TORCH_FILES: Final = "ziggurat.backends.torch.pth_files"
"""Loaded only here: PyTorch is large, and may be missing."""


def convert_weights(request: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a file of PyTorch weights.

    Args:
        request: ``file``, the path, ``out``, the path of the new file, and ``network``, the name of the standard
            network whose names the arrays get; empty for those of the file.

    Returns:
        ``arrays``, their number, and ``written``.

    Raises:
        MissingDependencyError: if PyTorch is not installed.
        CheckpointError: if the file has no weights.
    """
    try:
        torch_files = importlib.import_module(_TORCH_FILES)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        purpose = "files of PyTorch weights (.pth, .pt)"
        raise MissingDependencyError("torch", extra="torch", purpose=purpose) from None
    network = request.get("network", "")
    count = torch_files.convert_pth(
        Path(request["file"]), Path(request["out"]), rename=lambda name: own_name(network, name)
    )
    return {"written": request["out"], "arrays": count}
