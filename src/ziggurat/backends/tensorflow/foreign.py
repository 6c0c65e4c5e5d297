"""Imported models for predictions: a frozen graph, a checkpoint with its metagraph, or a SavedModel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.capabilities import TensorDescription
from ziggurat.errors import DataError, UnknownNameError

__all__ = ["ForeignModel", "open_foreign_model"]

_INPUTS: Final = ("Placeholder", "PlaceholderWithDefault")
_NOT_OUTPUTS: Final = frozenset({*_INPUTS, "Assert", "Assign", "AssignVariableOp", "Const", "NoOp", "SaveV2"})
_OF_TRAINING: Final = re.compile(r"(gradients|save)(_\d+)?/")

Signature = tuple[Mapping[str, str], Mapping[str, str]]


class ForeignModel:
    """A model in a session of its own, run by the names of its operations.

    A name stands for the first output of its operation; ``name:1`` is the second one.

    Args:
        session: holds graph and weights.
        kind: ``pb``, ``checkpoint`` or ``savedmodel``.
        signatures: name → (inputs, outputs) of a SavedModel, each key → operation name.
    """

    def __init__(self, session: Any, kind: str, signatures: Mapping[str, Signature] | None = None) -> None:
        self.session = session
        self.kind = kind
        self.signatures: Mapping[str, Signature] = dict(signatures or {})

    def inputs(self) -> list[TensorDescription]:
        """Return the placeholders, in the order of the graph."""
        operations = self.session.graph.get_operations()
        return [_described(each) for each in operations if each.type in _INPUTS and not _OF_TRAINING.match(each.name)]

    def outputs(self) -> list[TensorDescription]:
        """Return what can be asked for: what a signature names, what nothing else reads, then all other numbers."""
        graph = self.session.graph
        named = [name for _, outputs in self.signatures.values() for name in outputs.values()]
        found = {name: _described(graph.get_operation_by_name(name)) for name in named if ":" not in name}
        others = [_described(each) for each in graph.get_operations() if _may_be_output(each)]
        for each in sorted(others, key=lambda each: each.readers > 0):  # stable: the order of the graph stays
            found.setdefault(each.name, each)
        return list(found.values())

    def predict(self, feeds: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, np.ndarray]:
        """Run the model.

        Args:
            feeds: operation name of an input → array.
            outputs: operation names.

        Raises:
            UnknownNameError: where a name is not in the graph.
            DataError: where an input that the outputs need is not fed, or has another shape.
        """
        tensors = {name: self._tensor(name, "output", self.outputs) for name in outputs}
        fed = {self._tensor(name, "input", self.inputs): value for name, value in feeds.items()}
        try:
            return self.session.run(tensors, fed)
        except (tf.errors.OpError, ValueError, TypeError) as error:
            raise DataError(
                "A model is fed every input that its outputs need, in their shapes.",
                received=_reason(error),
                advice=f"Its inputs are: {', '.join(f'{each.name} {each.shape}' for each in self.inputs())}.",
            ) from error

    def close(self) -> None:
        """Free the session."""
        self.session.close()

    def _tensor(self, name: str, word: str, known: Callable[[], list[TensorDescription]]) -> Any:
        counts = {each.name: len(each.outputs) for each in self.session.graph.get_operations() if each.outputs}
        bare, _, number = name.partition(":")
        if bare not in counts or not (number or "0").isdigit() or int(number or 0) >= counts[bare]:
            raise UnknownNameError(f"{word} of this model", name, [each.name for each in known()])
        return self.session.graph.get_tensor_by_name(f"{bare}:{number or 0}")


def open_foreign_model(path: Path) -> ForeignModel:
    """Open a ``.pb`` file, a checkpoint (its ``.meta`` file, prefix or folder), or the folder of a SavedModel.

    Raises:
        DataError: where it is none of them or damaged.
    """
    try:
        if path.name == "saved_model.pb" or (path / "saved_model.pb").is_file():
            return _open_saved_model(path if path.is_dir() else path.parent)
        if path.is_dir():
            return _open_checkpoint(_newest_checkpoint(path))
        if path.suffix == ".pb":
            return _open_frozen_graph(path)
        return _open_checkpoint(str(path).removesuffix(".meta").removesuffix(".index"))
    except DataError:
        raise
    except Exception as error:  # TensorFlow raises many kinds for a damaged file
        raise DataError(
            f"The model {path} must be a frozen graph (.pb), a checkpoint (.meta and data), or a SavedModel.",
            received=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
            advice="Check the path, and that the file is whole.",
        ) from error


def _open_frozen_graph(path: Path) -> ForeignModel:
    definition = tf.GraphDef()
    definition.ParseFromString(path.read_bytes())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return ForeignModel(_session(graph), "pb")


def _newest_checkpoint(folder: Path) -> str:
    """Return the prefix of the newest checkpoint; the file ``checkpoint`` may name paths of another machine."""
    latest = tf.train.latest_checkpoint(str(folder))
    if latest is not None:
        return latest
    metagraphs = sorted(folder.glob("*.meta"), key=lambda each: each.stat().st_mtime)
    if not metagraphs:
        raise DataError(
            "A model's folder must hold a saved_model.pb, or a checkpoint with its .meta file.",
            received=str(folder),
            advice="Name the file itself.",
        )
    return str(metagraphs[-1]).removesuffix(".meta")


def _open_checkpoint(prefix: str) -> ForeignModel:
    graph = tf.Graph()
    with graph.as_default():
        saver = tf.train.import_meta_graph(f"{prefix}.meta", clear_devices=True)
    session = _session(graph)
    if saver is not None:  # None: the graph has no variables
        saver.restore(session, prefix)
    return ForeignModel(session, "checkpoint")


def _open_saved_model(path: Path) -> ForeignModel:
    graph = tf.Graph()
    session = _session(graph)
    with graph.as_default():
        meta = tf.saved_model.load(session, [tf.saved_model.tag_constants.SERVING], str(path))
    signatures = {name: (_names(each.inputs), _names(each.outputs)) for name, each in meta.signature_def.items()}
    return ForeignModel(session, "savedmodel", signatures)


def _session(graph: Any) -> Any:
    """Return a session that takes a GPU's memory as it needs it: a training may be at work there."""
    config = tf.ConfigProto()
    config.gpu_options.allow_growth = True
    return tf.Session(graph=graph, config=config)


def _reason(error: Exception) -> str:
    """Return what is wrong: TensorFlow may tell first where the operation was made."""
    text = re.split(r"\nNode: '[^']*'\n", str(getattr(error, "message", error)))[-1].strip()
    return text.splitlines()[0] if text else type(error).__name__


def _names(part: Mapping[str, Any]) -> dict[str, str]:
    return {key: info.name.removesuffix(":0") for key, info in part.items()}


def _may_be_output(operation: Any) -> bool:
    if len(operation.outputs) != 1 or operation.type in _NOT_OUTPUTS or not operation.inputs:
        return False
    if _OF_TRAINING.match(operation.name) or "Apply" in operation.type:
        return False
    tensor = operation.outputs[0]
    # Whole numbers in the middle of a graph are shapes and indices; at its end they are classes.
    return tensor.dtype.is_floating or (tensor.dtype.is_integer and not tensor.consumers())


def _described(operation: Any) -> TensorDescription:
    tensor = operation.outputs[0]
    shape = None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
    readers = len(tensor.consumers())
    return TensorDescription(operation.name, operation.type, tensor.dtype.base_dtype.name, shape, readers)
