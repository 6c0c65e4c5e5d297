"""Capabilities of the PyTorch backend besides training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.backends.torch.debug import debug_network
from ziggurat.backends.torch.describe import describe_network, described_with_graph
from ziggurat.backends.torch.export.exporting import export_network
from ziggurat.backends.torch.export.formats import FORMATS
from ziggurat.backends.torch.foreign import open_foreign_model
from ziggurat.backends.torch.trained import TrainedTorch
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.capabilities import DescribedGraph, ExportOrder, ExportResult, ForeignNetwork

__all__ = ["TorchTasks"]


class TorchTasks:
    """What the PyTorch backend does for trained networks, and before a training."""

    def open_trained(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray]) -> TrainedTorch:
        """Return the network of a request with a checkpoint's weights."""
        return TrainedTorch(request, arrays)

    def describe(self, request: ProgramRequest) -> Mapping[str, Any]:
        """Describe the network as it predicts."""
        return describe_network(request)

    def describe_with_graph(self, request: ProgramRequest) -> DescribedGraph:
        """Describe the network as it predicts, and give the graph of that."""
        return described_with_graph(request)

    def debug(self, request: ProgramRequest, batch: Sequence[np.ndarray]) -> Mapping[str, Any]:
        """Run the network once in training mode; an error stops at the user's line."""
        return debug_network(request, batch)

    def open_foreign(self, path: Path) -> ForeignNetwork:
        """Open an exported program of PyTorch, an ONNX model, or TorchScript."""
        return open_foreign_model(path)

    def export_formats(self) -> Sequence[str]:
        """Return the names of the formats."""
        return list(FORMATS)

    def export(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray], order: ExportOrder) -> ExportResult:
        """Write a model, run what was written by its own runtime, and compare."""
        return export_network(request, arrays, order)
