"""Capabilities of the TensorFlow backend besides training: inference, exports, descriptions, imported models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.backend import build_job_graph
from ziggurat.backends.tensorflow.describe import describe_graph, graph_for_tensorboard
from ziggurat.backends.tensorflow.export.formats import FORMATS, Runner, format_named
from ziggurat.backends.tensorflow.export.parity import parity_report
from ziggurat.backends.tensorflow.export.serving import ServingModel, serving_model
from ziggurat.backends.tensorflow.export.trained import TrainedTower, tower_input
from ziggurat.backends.tensorflow.foreign import ForeignModel, open_foreign_model
from ziggurat.backends.tensorflow.runtime import tf2
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.capabilities import DescribedGraph, ExportOrder, ExportResult

__all__ = ["TensorFlowTasks"]


class TensorFlowTasks:
    """The tasks in graph mode; debugging is eager and so needs a process of its own."""

    def open_trained(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray]) -> TrainedTower:
        """Return the validation and inference towers with a checkpoint's weights."""
        return TrainedTower(request, arrays)

    def describe(self, request: ProgramRequest) -> Mapping[str, Any]:
        """Describe the network's validation tower."""
        return asdict(describe_graph(build_job_graph(request)))

    def describe_with_graph(self, request: ProgramRequest) -> DescribedGraph:
        """Describe the network's validation tower, and give the graph of the whole training."""
        built = build_job_graph(request)
        graph, problem = graph_for_tensorboard(built.graph)
        return DescribedGraph(description=asdict(describe_graph(built)), graph=graph, problem=problem)

    def open_foreign(self, path: Path) -> ForeignModel:
        """Open a frozen graph, a checkpoint with its metagraph, or a SavedModel."""
        return open_foreign_model(path)

    def export_formats(self) -> Sequence[str]:
        """Return the names of the formats."""
        return list(FORMATS)

    def export(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray], order: ExportOrder) -> ExportResult:
        """Write a model, run what was written by its own runtime, and compare."""
        chosen = format_named(order.format)
        # Exports compute in float32, whatever the training did.
        network = TrainedTower(replace(request, precision="float32"), arrays)
        with serving_model(
            tower_input(request),
            arrays,
            order.preprocessing,
            scores=network.gives_class_scores,
            inside=order.inside,
        ) as model:
            path = chosen.write(model, order.folder)
            outputs = {name: _shape(tensor) for name, tensor in model.outputs.items()}
            parameters = _parameters(model)
        report = parity_report(
            chosen.name,
            path,
            lambda pictures: network.predict(order.preprocess(pictures)),
            _whole(chosen.runner(path), order),
            pictures=order.pictures,
            labels=order.labels if "probabilities" in outputs else None,
        )
        network.close()
        return ExportResult(
            title=chosen.title,
            file=path.name,
            parity=asdict(report),
            outputs=outputs,
            parameters=parameters,
            script=Path(__file__).with_name("standalone.py"),
            packages=chosen.packages,
            framework=f"TensorFlow {tf2.__version__}",
        )


def _whole(runner: Runner, order: ExportOrder) -> Runner:
    """Return a runner that takes fitted images, whatever the model itself takes."""
    if order.inside:
        return lambda pictures: runner(pictures.astype(np.float32))
    return lambda pictures: runner(order.preprocess(pictures))


def _shape(tensor: Any) -> list[int | None] | None:
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def _parameters(model: ServingModel) -> int:
    shapes = [variable.shape.as_list() for name, variable in model.variables.items() if name.startswith("model/")]
    return sum(int(np.prod(shape)) for shape in shapes)
