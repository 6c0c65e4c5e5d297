"""Export formats: how each is written and run again."""

from __future__ import annotations

import importlib
import json
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from typing import Any, Final

import numpy as np
import torch

from ziggurat.backends.torch import standalone_boxes
from ziggurat.backends.torch.export import standalone_network
from ziggurat.backends.torch.export.nms_operator import kept_by_operator, onnx_translations
from ziggurat.backends.torch.export.serving import ServingModule
from ziggurat.backends.torch.network import Network
from ziggurat.errors import MissingDependencyError, UnknownNameError

__all__ = ["FORMATS", "ExportFormat", "Runner", "Written", "format_named"]

Runner = Callable[[np.ndarray], dict[str, np.ndarray]]
"""Takes a batch of inputs, returns name → output."""

_OPSET: Final = 18
_EXAMPLES: Final = 3
"""Samples of the run that is exported; one would become a constant of the model."""


class Written:
    """What a format is written of.

    Args:
        module: the network as others call it.
        network: the same for PyTorch programs.
        text: of its network file.
    """

    def __init__(self, module: ServingModule, network: Network, text: str) -> None:
        self.module = module
        self.network = network
        self.text = text


class ExportFormat(ABC):
    """One format."""

    name: str
    """Name under which it is asked for."""

    title: str
    """Name for people."""

    packages: tuple[str, ...] = ("torch",)
    """What runs a model of this format, by the names under which it is installed."""

    @abstractmethod
    def write(self, model: Written, folder: Path) -> Path:
        """Write the model into a folder; return the file to load."""

    @abstractmethod
    def runner(self, path: Path) -> Runner:
        """Load what was written, by the format's own runtime alone, and return what runs it."""


class ProgramFormat(ExportFormat):
    """PyTorch's exported program: one ``.pt2`` file, without the code of the network."""

    name = "pt2"
    title = "PyTorch exported program"

    def write(self, model: Written, folder: Path) -> Path:
        """Write ``model.pt2``; read it back with ``torch.export.load``."""
        path = folder / "model.pt2"
        torch.export.save(exported_program(model.module), path)
        return path

    def runner(self, path: Path) -> Runner:
        """Load it with PyTorch."""
        module = torch.export.load(path).module()

        def run(batch: np.ndarray) -> dict[str, np.ndarray]:
            with torch.no_grad():
                found = module(torch.from_numpy(batch))
            return {name: value.numpy() for name, value in found.items()}

        return run


class OnnxFormat(ExportFormat):
    """ONNX, opset 18: one ``.onnx`` file for onnxruntime and many others."""

    name = "onnx"
    title = "ONNX"
    packages = ("onnxruntime",)

    def write(self, model: Written, folder: Path) -> Path:
        """Write ``model.onnx``, converted from the exported program."""
        _optional("onnxscript")
        path = folder / "model.onnx"
        example = model.module.samples(_EXAMPLES)
        with torch.no_grad():
            names = list(model.module(example))
        model.module.kept = kept_by_operator
        with _quietly():
            torch.onnx.export(
                exported_program(model.module),
                (example,),
                path,
                input_names=["input"],
                output_names=names,
                opset_version=_OPSET,
                dynamo=True,
                external_data=False,
                custom_translation_table=onnx_translations(),
                verbose=False,
            )
        return path

    def runner(self, path: Path) -> Runner:
        """Load it with onnxruntime on the processor."""
        session = _optional("onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
        (source,) = session.get_inputs()
        names = [output.name for output in session.get_outputs()]
        return lambda batch: dict(zip(names, session.run(names, {source.name: batch}), strict=True))


class WeightsFormat(ExportFormat):
    """The weights under their names in ``state_dict``, and beside them the network file that they are for."""

    name = "safetensors"
    title = "Weights in safetensors"
    packages = ("torch", "safetensors")

    def write(self, model: Written, folder: Path) -> Path:
        """Write ``model.safetensors``, ``network.py``, ``network.json`` and what makes the network of them."""
        from safetensors.torch import save_file

        network = model.network
        path = folder / "model.safetensors"
        # Each name has its own numbers, also where two layers share theirs.
        weights = {name: each.detach().clone().contiguous() for name, each in network.module.state_dict().items()}
        save_file(weights, path, metadata={"format": "pt"})
        (folder / "network.py").write_text(model.text, encoding="utf-8")
        facts = {**network.facts(), "scores": network.gives_class_scores, "pretrained": network.is_tuned}
        (folder / "network.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        for module in (standalone_network, standalone_boxes):
            copyfile(str(module.__file__), folder / Path(str(module.__file__)).name)
        return path

    def runner(self, path: Path) -> Runner:
        """Make the network of the files alone, as ``predict.py`` does."""
        return standalone_network.load_network(path)


FORMATS: Final[dict[str, ExportFormat]] = {each.name: each for each in (ProgramFormat(), OnnxFormat(), WeightsFormat())}
"""name → format."""


def format_named(name: str) -> ExportFormat:
    """Return a format.

    Raises:
        UnknownNameError: where there is none of that name.
    """
    if name not in FORMATS:
        raise UnknownNameError("export format", name, FORMATS)
    return FORMATS[name]


def exported_program(module: ServingModule) -> torch.export.ExportedProgram:
    """Return the program of a module for batches of any size."""
    shapes = {"input": {0: torch.export.Dim.DYNAMIC}}
    with torch.no_grad(), _quietly():
        return torch.export.export(module, (module.samples(_EXAMPLES),), dynamic_shapes=shapes, strict=False)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep exporters from telling of each of their steps, and of what they themselves call that is deprecated."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript")]
    levels = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)


def _optional(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(package, extra="export", purpose="exporting to ONNX") from error
