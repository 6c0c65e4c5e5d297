"""Models that were trained elsewhere: exported programs of PyTorch, ONNX models and TorchScript."""

from __future__ import annotations

import importlib
import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from ziggurat.backends.torch.recording import tensors_in
from ziggurat.backends.torch.trained import plain
from ziggurat.engine.capabilities import TensorDescription
from ziggurat.errors import DataError, MissingDependencyError, UnknownNameError, ZigguratError

__all__ = ["ForeignModel", "open_foreign_model"]

_logger = logging.getLogger(__name__)

_ONNX_TYPES: Final = {"float": "float32", "double": "float64", "float16": "float16"}
_INPUT, _OUTPUT = "input", "output"


class ForeignModel(ABC):
    """A model that runs by the names of its inputs and outputs.

    Args:
        kind: ``pt2``, ``onnx`` or ``torchscript``.
        inputs: what it takes, in its order.
        outputs: what it gives, likewise.
    """

    signatures: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {}

    def __init__(self, kind: str, inputs: Sequence[TensorDescription], outputs: Sequence[TensorDescription]) -> None:
        self.kind = kind
        self._inputs = list(inputs)
        self._outputs = list(outputs)

    def inputs(self) -> list[TensorDescription]:
        """Return what it takes."""
        return list(self._inputs)

    def outputs(self) -> list[TensorDescription]:
        """Return what it gives."""
        return list(self._outputs)

    def predict(self, feeds: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, np.ndarray]:
        """Run the model.

        Args:
            feeds: name of an input → array.
            outputs: names.

        Raises:
            UnknownNameError: where it has no such input or output.
            DataError: where an input is missing, or has another shape.
        """
        inputs, known = ([each.name for each in part] for part in (self._inputs, self._outputs))
        for word, asked, names in (("input", feeds, inputs), ("output", outputs, known)):
            for name in asked:
                if name not in names:
                    raise UnknownNameError(f"{word} of this model", name, names)
        missing = [name for name in inputs if name not in feeds]
        try:
            if missing:
                raise ValueError(f"nothing for {', '.join(missing)}")
            arrays = [np.ascontiguousarray(feeds[each.name], each.dtype) for each in self._inputs]
            found = self._run(arrays)
        except Exception as error:  # each runtime has errors of its own
            raise DataError(
                "A model is fed every input that its outputs need, in their shapes.",
                received=_reason(error),
                advice=f"Its inputs are: {', '.join(f'{each.name} {each.shape}' for each in self._inputs)}.",
            ) from error
        return {name: np.asarray(found[known.index(name)]) for name in outputs}

    def close(self) -> None:
        """Do nothing: memory goes with the object."""

    @abstractmethod
    def _run(self, arrays: list[np.ndarray]) -> Sequence[Any]:
        """Return the outputs for arrays, both in their order."""


class _Program(ForeignModel):
    """An exported program of PyTorch."""

    def __init__(self, path: Path) -> None:
        program = torch.export.load(path)
        values = {node.name: node.meta.get("val") for node in program.graph.nodes}
        taken = [str(name) for name in program.graph_signature.user_inputs]
        given = [str(name) for name in program.graph_signature.user_outputs]
        names = _names_of_outputs(program, len(given))
        super().__init__(
            "pt2",
            [_described(name, _INPUT, values.get(name)) for name in taken],
            [_described(name, _OUTPUT, values.get(node)) for name, node in zip(names, given, strict=True)],
        )
        self._module = program.module()

    def _run(self, arrays: list[np.ndarray]) -> Sequence[Any]:
        with torch.no_grad():
            return [plain(each) for each in tensors_in(self._module(*map(torch.from_numpy, arrays)))]


class _OnnxModel(ForeignModel):
    """An ONNX model, run by ONNX Runtime on the processor."""

    def __init__(self, path: Path) -> None:
        try:
            runtime = importlib.import_module("onnxruntime")
        except ModuleNotFoundError as error:
            raise MissingDependencyError("onnxruntime", extra="export", purpose="running ONNX models") from error
        self._session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        super().__init__(
            "onnx",
            [_described_onnx(each, _INPUT) for each in self._session.get_inputs()],
            [_described_onnx(each, _OUTPUT) for each in self._session.get_outputs()],
        )

    def _run(self, arrays: list[np.ndarray]) -> Sequence[Any]:
        feeds = {each.name: array for each, array in zip(self._inputs, arrays, strict=True)}
        return self._session.run([each.name for each in self._outputs], feeds)


class _Script(ForeignModel):
    """TorchScript, which PyTorch gives up; it tells no shapes."""

    def __init__(self, path: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self._module = torch.jit.load(path, map_location="cpu").eval()
            schema = self._module.forward.schema
        _logger.warning("TorchScript is deprecated by PyTorch: export the model with `torch.export.save` (.pt2).")
        taken = [each.name for each in schema.arguments if each.name != "self"]
        kind = schema.returns[0].type
        count = len(kind.elements()) if kind.kind() == "TupleType" else 1
        names = ["output", *(f"output_{number}" for number in range(1, count))]
        super().__init__(
            "torchscript",
            [TensorDescription(name, _INPUT, "float32", None, 1) for name in taken],
            [TensorDescription(name, _OUTPUT, "float32", None) for name in names],
        )

    def _run(self, arrays: list[np.ndarray]) -> Sequence[Any]:
        with torch.no_grad():
            return [plain(each) for each in tensors_in(self._module(*map(torch.from_numpy, arrays)))]


_KINDS: Final[Mapping[str, type[Any]]] = {".pt2": _Program, ".onnx": _OnnxModel, ".pt": _Script}


def open_foreign_model(path: Path) -> ForeignModel:
    """Open a ``.pt2``, ``.onnx`` or ``.pt`` file by its own runtime.

    Raises:
        DataError: where it is none of them or damaged.
        MissingDependencyError: where its runtime is not installed.
    """
    kind = _KINDS.get(path.suffix.lower())
    try:
        if kind is None:
            raise ValueError(f"{path.name}, which ends otherwise")
        if not path.is_file():
            raise FileNotFoundError("no such file")
        return kind(path)
    except ZigguratError:
        raise
    except Exception as error:  # each of them has errors of its own
        raise DataError(
            f"The model {path} must be an exported program of PyTorch (.pt2), an ONNX model (.onnx), or TorchScript "
            "(.pt).",
            received=_reason(error),
            advice="Check the path, and that the file is whole. A file of weights alone is no model: start a job from "
            "it, as from a pretrained model.",
        ) from error


def _names_of_outputs(program: Any, count: int) -> list[str]:
    """Return the keys of a dictionary that a program gives, else ``output``, ``output_1``, …."""
    spec = program.call_spec.out_spec
    keys = spec.context if spec is not None and spec.type is dict else []
    if len(keys) == count:
        return [str(key) for key in keys]
    return ["output", *(f"output_{number}" for number in range(1, count))]


def _described(name: str, kind: str, value: Any) -> TensorDescription:
    readers = 1 if kind == _INPUT else 0
    if not isinstance(value, torch.Tensor):
        return TensorDescription(name, kind, "float32", None, readers)
    shape = tuple(side if isinstance(side, int) else None for side in value.shape)
    return TensorDescription(name, kind, str(value.dtype).removeprefix("torch."), shape, readers)


def _described_onnx(value: Any, kind: str) -> TensorDescription:
    name = value.type.removeprefix("tensor(").removesuffix(")")
    shape = tuple(side if isinstance(side, int) else None for side in value.shape)
    return TensorDescription(value.name, kind, str(_ONNX_TYPES.get(name, name)), shape, 1 if kind == _INPUT else 0)


def _reason(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
