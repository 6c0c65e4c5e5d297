"""Small files of weights for the tests, written by hand or by safetensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from ziggurat.entities.pretrained_weights import PretrainedWeights
from ziggurat.layout import WeightsFiles
from ziggurat.zoo.weights_folder import WeightsFolder


def small_weights(classes: int = 3) -> dict[str, np.ndarray]:
    """Return weights with torchvision's names of a ResNet, and few numbers."""
    generator = np.random.default_rng(1)
    return {
        "conv1.weight": generator.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "bn1.running_mean": np.zeros(4, np.float32),
        "bn1.num_batches_tracked": np.array(7, np.int64),
        "fc.weight": generator.normal(size=(classes, 4)).astype(np.float32),
        "fc.bias": np.arange(classes, dtype=np.float32),
    }


def weights_file(folder: Path, name: str = "small.safetensors", classes: int = 3) -> Path:
    """Write these weights; return the file."""
    path = folder / name
    save_file(small_weights(classes), path)
    return path


def raw_file(path: Path, header: Mapping[str, Any] | bytes, data: bytes = b"", *, length: int | None = None) -> Path:
    """Write a file of the format byte by byte; ``length`` is what its first bytes say of the header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def add_entry(workspace: Path, name: str = "small", classes: int = 3, **known: Any) -> WeightsFolder:
    """Put weights into the folder of a workspace, as the use cases do."""
    folder = WeightsFolder(workspace / "weights")
    with folder.adding() as partial:
        save_file(small_weights(classes), WeightsFiles(partial).arrays)
        folder.place(partial, PretrainedWeights(name=name, title="Small", class_count=classes, **known))
    return folder
