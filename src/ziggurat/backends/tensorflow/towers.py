"""Towers of a graph: the user's network built for each device and stage, over one set of variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.backends.tensorflow.digits import GraphKeys
from ziggurat.backends.tensorflow.namespace.sums import exact_sum
from ziggurat.backends.tensorflow.network_file import users_errors
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.summaries import scalars_of, single_summaries
from ziggurat.backends.tensorflow.tower import Tower
from ziggurat.errors import ConfigurationError, NetworkCodeError

__all__ = ["BuiltTower", "Loss", "TowerInput", "build_tower", "check_divides", "split_batch"]

_STAGES: Final = ("train", "val", "inf")


@dataclass(frozen=True)
class TowerInput:
    """What every tower of a graph shares.

    Args:
        network: the user's class.
        path: its file, for errors.
        input_shape: (H, W, C).
        classes: number of classes, or None.
        pretrained: whether the job starts from a pretrained model, so that ``fineTuneHook`` is called.
    """

    network: type[Tower]
    path: str
    input_shape: tuple[int, ...]
    classes: int | None
    pretrained: bool = False


@dataclass(frozen=True)
class Loss:
    """One thing that is minimized.

    Args:
        value: scalar tensor, regularisation included.
        variables: what it is minimized over; None for all trainable variables.
    """

    value: Any
    variables: Sequence[Any] | None = None


@dataclass(frozen=True)
class BuiltTower:
    """A tower with what it gives.

    Args:
        tower: the user's object.
        outputs: output tensors, one or more.
        losses: what is minimized; empty for inference.
        scalars: name → scalar tensor, from the user's scalar summaries.
        summaries: the user's summary tensors (serialized), one by one: of ``self.summaries``, and all others that were
            made while the tower was built.
        updates: operations to run with a training step, such as moving averages.
        regularization: scalar tensor, or None.
    """

    tower: Tower
    outputs: list[Any]
    losses: list[Loss] = field(default_factory=list)
    scalars: dict[str, Any] = field(default_factory=dict)
    summaries: list[Any] = field(default_factory=list)
    updates: list[Any] = field(default_factory=list)
    regularization: Any = None


def split_batch(tensor: Any, towers: int) -> list[Any]:
    """Return equal parts of a batch along its first axis, one a tower."""
    return [tensor] if towers == 1 or tensor is None else tf.split(tensor, towers, axis=0)


def build_tower(shared: TowerInput, x: Any, y: Any, *, stage: str, device: str = "", number: int = 0) -> BuiltTower:
    """Build the user's network once, under the shared variable scope ``model``.

    Args:
        shared: what all towers share.
        x: its part of the batch.
        y: its part of the labels; None for inference.
        stage: ``train``, ``val`` or ``inf``.
        device: where its operations go; empty for TensorFlow's choice.
        number: of the tower in its stage, from 0.

    Raises:
        NetworkCodeError: where the user's code fails; names file and line.
    """
    before = {key: len(tf.get_collection(key)) for key in (tf.GraphKeys.UPDATE_OPS, tf.GraphKeys.SUMMARIES)}
    scope = stage if stage != "train" else f"train/tower_{number}"
    with tf.device(device or None), tf.name_scope(f"{scope}/"):
        with users_errors(shared.path), tf.variable_scope(GraphKeys.MODEL, reuse=tf.AUTO_REUSE):
            tower: Any = shared.network(
                x,
                y,
                list(shared.input_shape),
                shared.classes,
                is_training=stage == "train",
                is_inference=stage == "inf",
            )
            output: Any = tower.inference
            if shared.pretrained:
                output = tower.fineTuneHook(output)
                tower.__dict__.setdefault("_model_properties", {})["inference"] = output
            loss: Any = None if stage == "inf" else tower.loss
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)[before[tf.GraphKeys.UPDATE_OPS] :]
        summaries = tf.get_collection(tf.GraphKeys.SUMMARIES)[before[tf.GraphKeys.SUMMARIES] :]
        summaries = single_summaries([*tower.summaries, *summaries])
        regularizers = _regularizers()
        return BuiltTower(
            tower,
            outputs=_outputs(output, shared.path),
            losses=_losses(loss, regularizers, shared.path) if stage != "inf" else [],
            scalars=scalars_of(summaries),
            summaries=summaries,
            updates=updates,
            regularization=exact_sum([term for term, _ in regularizers]) if regularizers else None,
        )


def _outputs(output: Any, path: str) -> list[Any]:
    outputs = list(output) if isinstance(output, list | tuple) else [output]
    if not outputs or not all(isinstance(each, tf.Tensor) for each in outputs):
        raise NetworkCodeError(
            "`inference` returns a tensor, or a list of tensors.",
            received=type(output).__name__,
            advice="Return the output of the last layer.",
            details={"file": path},
        )
    return outputs


def _regularizers() -> list[tuple[Any, Any]]:
    """Return (term, variable) of every regularised variable, once however many towers share it."""
    terms: dict[str, tuple[Any, Any]] = {}
    for term in tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES):
        variable = _variable_under(term)
        terms.setdefault(variable.name if variable is not None else term.name, (term, variable))
    return list(terms.values())


def _variable_under(term: Any) -> Any:
    """Return the trainable variable that a regularisation term was made of, or None."""
    handles = {
        variable.handle.op.name: variable for variable in tf.trainable_variables() if hasattr(variable, "handle")
    }
    waiting, seen = [term.op], set()
    while waiting:
        operation = waiting.pop()
        if operation.name in handles:
            return handles[operation.name]
        if operation.name not in seen:
            seen.add(operation.name)
            waiting.extend(source.op for source in operation.inputs)
    return None


def _losses(loss: Any, regularizers: list[tuple[Any, Any]], path: str) -> list[Loss]:
    parts = loss if isinstance(loss, list | tuple) else [{"loss": loss, "vars": None}]
    losses = []
    for part in parts:
        if not isinstance(part, dict) or "loss" not in part:
            raise _wrong_loss(part, path)
        value, variables = part["loss"], part.get("vars")
        if not isinstance(value, tf.Tensor) or value.shape.rank not in (0, None):
            raise _wrong_loss(value, path)
        names = None if variables is None else {variable.name for variable in variables}
        terms = [
            term
            for term, variable in regularizers
            if names is None or (variable is not None and variable.name in names)
        ]
        losses.append(Loss(exact_sum([value, *terms]) if terms else value, variables))
    return losses


def _wrong_loss(received: Any, path: str) -> NetworkCodeError:
    shape = f" of shape {received.shape}" if isinstance(received, tf.Tensor) else ""
    return NetworkCodeError(
        "`loss` is a scalar tensor, or a list of {'loss': scalar tensor, 'vars': [variables]}.",
        received=f"{type(received).__name__}{shape}",
        advice="Reduce it with `tf.reduce_mean`, and return it.",
        details={"file": path},
    )


def check_divides(batch_size: int, towers: int) -> None:
    """Refuse a batch that the towers do not divide.

    Raises:
        ConfigurationError: with the nearest sizes that they do.
    """
    if batch_size % towers:
        below = batch_size // towers * towers
        sizes = " or ".join(str(size) for size in (below, below + towers) if size)
        raise ConfigurationError(
            f"`batch_size` must be divisible by the {towers} towers.", received=batch_size, advice=f"Use {sizes}."
        )
