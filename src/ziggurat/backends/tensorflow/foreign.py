"""Owns models of somebody else's: a frozen graph, a checkpoint with its metagraph, or a SavedModel that predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import DataError, UnknownNameError

__all__ = ["ForeignModel", "TensorDescription", "open_foreign_model"]

_NOT_OUTPUTS: Final = frozenset(
    {"Assert", "Assign", "AssignVariableOp", "Const", "NoOp", "Placeholder", "PlaceholderWithDefault", "SaveV2"}
)


@dataclass(frozen=True)
class TensorDescription:
    """A tensor that can be chosen as input or output.

    Args:
        name: of its operation.
        kind: type of the operation.
        dtype: type of its numbers.
        shape: its shape with None for what is open; None where even the rank is.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int | None, ...] | None


class ForeignModel:
    """A model in a session of its own, run by the names of its operations.

    Args:
        session: holds graph and weights.
        kind: ``pb``, ``checkpoint`` or ``savedmodel``.
        signatures: name → (inputs, outputs) of a SavedModel, each key → operation name.
    """

    def __init__(self, session: Any, kind: str, signatures: Mapping[str, tuple[dict, dict]] | None = None) -> None:
        self.session = session
        self.kind = kind
        self.signatures = dict(signatures or {})

    def inputs(self) -> list[TensorDescription]:
        """Return the placeholders, in the order of the graph."""
        kinds = ("Placeholder", "PlaceholderWithDefault")
        return [_described(each) for each in self.session.graph.get_operations() if each.type in kinds]

    def outputs(self) -> list[TensorDescription]:
        """Return the likely outputs first (what nothing else reads), then every other floating-point tensor."""
        operations = [each for each in self.session.graph.get_operations() if self._may_be_output(each)]
        last = [each for each in operations if not each.outputs[0].consumers()]
        names = {each.name for each in last}
        return [_described(each) for each in (*last, *(each for each in operations if each.name not in names))]

    def predict(self, feeds: Mapping[str, Any], outputs: Sequence[str]) -> dict[str, np.ndarray]:
        """Run the model.

        Args:
            feeds: operation name of an input → array.
            outputs: operation names.

        Raises:
            UnknownNameError: where a name is not in the graph.
            DataError: where an input that the outputs need is not fed, or has another shape.
        """
        tensors = {name: self._tensor(name) for name in outputs}
        fed = {self._tensor(name): value for name, value in feeds.items()}
        try:
            return self.session.run(tensors, fed)
        except (tf.errors.OpError, ValueError) as error:
            text = str(getattr(error, "message", error)).splitlines()[0]
            raise DataError(
                "A model is fed every input that its outputs need, in their shapes.",
                received=text,
                advice=f"Its inputs are: {', '.join(f'{each.name} {each.shape}' for each in self.inputs())}.",
            ) from error

    def close(self) -> None:
        """Free the session."""
        self.session.close()

    def _tensor(self, name: str) -> Any:
        known = {operation.name for operation in self.session.graph.get_operations() if operation.outputs}
        bare = name.removesuffix(":0")
        if bare not in known:
            raise UnknownNameError("operation of this model", name, known)
        return self.session.graph.get_tensor_by_name(f"{bare}:0")

    def _may_be_output(self, operation: Any) -> bool:
        return (
            len(operation.outputs) == 1
            and operation.type not in _NOT_OUTPUTS
            and operation.outputs[0].dtype.is_floating
            and bool(operation.inputs)
        )


def open_foreign_model(path: Path) -> ForeignModel:
    """Open a ``.pb`` file, a checkpoint (its ``.meta`` file, prefix or folder), or the folder of a SavedModel.

    Raises:
        DataError: where it is none of them or damaged.
    """
    try:
        if path.is_dir() and (path / "saved_model.pb").is_file():
            return _open_saved_model(path)
        if path.is_dir():
            prefix = tf.train.latest_checkpoint(str(path)) or next((str(each) for each in path.glob("*.meta")), None)
            if prefix is None:
                raise DataError("A model's folder holds a saved_model.pb or a checkpoint.", received=str(path))
            return _open_checkpoint(prefix.removesuffix(".meta"))
        if path.suffix == ".pb":
            return _open_frozen_graph(path)
        return _open_checkpoint(str(path).removesuffix(".meta").removesuffix(".index"))
    except DataError:
        raise
    except Exception as error:  # TensorFlow raises many kinds for a damaged file
        raise DataError(
            f"The model {path} must be a frozen graph (.pb), a checkpoint (.meta and data), or a SavedModel.",
            received=f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
            advice="Check that the file is whole.",
        ) from error


def _open_frozen_graph(path: Path) -> ForeignModel:
    definition = tf.GraphDef()
    definition.ParseFromString(path.read_bytes())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return ForeignModel(tf.Session(graph=graph), "pb")


def _open_checkpoint(prefix: str) -> ForeignModel:
    graph = tf.Graph()
    with graph.as_default():
        saver = tf.train.import_meta_graph(f"{prefix}.meta", clear_devices=True)
    session = tf.Session(graph=graph)
    saver.restore(session, prefix)
    return ForeignModel(session, "checkpoint")


def _open_saved_model(path: Path) -> ForeignModel:
    graph = tf.Graph()
    session = tf.Session(graph=graph)
    with graph.as_default():
        meta = tf.saved_model.load(session, [tf.saved_model.tag_constants.SERVING], str(path))
    signatures = {
        name: tuple(
            {key: info.name.split(":")[0] for key, info in part.items()} for part in (each.inputs, each.outputs)
        )
        for name, each in meta.signature_def.items()
    }
    return ForeignModel(session, "savedmodel", signatures)  # pyright: ignore[reportArgumentType]


def _described(operation: Any) -> TensorDescription:
    tensor = operation.outputs[0]
    shape = None if tensor.shape.rank is None else tuple(tensor.shape.as_list())
    return TensorDescription(operation.name, operation.type, tensor.dtype.base_dtype.name, shape)
