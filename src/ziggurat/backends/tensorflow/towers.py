"""Towers of a graph: the user's network built for each device and stage, with its losses and summaries."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.batch_sums import Weight, noting_weights
from ziggurat.backends.tensorflow.digits import GraphKeys
from ziggurat.backends.tensorflow.mixed_labels import MixedLabels, mixed_loss, names_behind
from ziggurat.backends.tensorflow.namespace.deterministic import exact_sum
from ziggurat.backends.tensorflow.network_file import users_errors
from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.backends.tensorflow.tower import Tower
from ziggurat.errors import ConfigurationError, NetworkCodeError, UnknownNameError
from ziggurat.tasks.arrays import ArraySpec

__all__ = [
    "BuiltTower",
    "TowerInput",
    "build_inference_tower",
    "build_tower",
    "built_tower",
    "check_divides",
    "gives_class_scores",
    "inference_feeds",
    "layer_of",
    "make_placeholders",
    "make_tower",
    "merged_summaries",
    "names_behind",
    "split_batch",
    "with_short_tags",
]

_logger = logging.getLogger(__name__)
_SCOPE: Final = re.compile(r"((train/tower_0|val)/(model/)?)+")
_SHOWN_SCOPES: Final = re.compile(r"(?!inf/|train/tower_[1-9])")
# Stateful to TensorFlow, and yet reading them changes nothing.
_READERS: Final = frozenset({"VarHandleOp", "ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableV2"})


def single_summaries(summaries: Iterable[Any]) -> list[Any]:
    """Return the summaries that were made one by one: merged ones taken apart, each once.

    What stands in a branch or loop of the graph is left out: it cannot be fetched from outside.

    Args:
        summaries: serialized summaries, as the user's ``self.summaries`` and the graph's collection hold them.
    """
    found: dict[str, Any] = {}
    waiting = [each for each in summaries if isinstance(each, tf.Tensor)][::-1]
    while waiting:
        tensor = waiting.pop()
        if tensor.op.type == "MergeSummary":
            waiting.extend(list(tensor.op.inputs)[::-1])
        elif tensor.graph is tf.get_default_graph() and tensor.op._get_control_flow_context() is None:
            found.setdefault(tensor.name, tensor)
    return list(found.values())


def scalars_of(summaries: Sequence[Any]) -> dict[str, Any]:
    """Return the numbers behind scalar summaries, by the last part of their tags; by the whole tag where that is taken.

    Args:
        summaries: what ``single_summaries`` gave.
    """
    scalars: dict[str, Any] = {}
    for summary in summaries:
        if summary.op.type == "ScalarSummary":
            tag = tag_of(summary)
            last = tag.rsplit("/", 1)[-1]
            scalars[tag if last in scalars else last] = summary.op.inputs[1]
    return scalars


def merged_summaries(validation: Sequence[Any], curves: Mapping[str, Any]) -> Any:
    """Return one tensor with all of the user's summaries that are not curves already; None where there are none.

    Those of the validation tower come first: computing them changes nothing. Others (of gradients, or made only where
    ``is_training``) join them unless computing them would change the training: draw random numbers, move an average.

    Args:
        validation: single summaries of the validation tower.
        curves: name → the first training tower's number that is logged under it.
    """
    everything = single_summaries(tf.get_collection(tf.GraphKeys.SUMMARIES))
    chosen = {tag_of(each): each for each in validation if each.op.type != "ScalarSummary"}
    known = {tensor.name for tensor in curves.values()}
    own = {each.name for each in validation}
    for each in everything:
        is_shown = _SHOWN_SCOPES.match(each.op.name) and each.name not in own
        if not is_shown or tag_of(each) in chosen or each.op.inputs[-1].name in known:
            continue
        if _changes_state(each):
            _logger.warning(
                "The summary %r is left out: computing it beside a training step would change the training.",
                tag_of(each),
            )
        else:
            chosen[tag_of(each)] = each
    return tf.summary.merge(list(chosen.values()), collections=[]) if chosen else None


def tag_of(summary: Any) -> str:
    """Return the tag of a single summary, without the scopes that the towers add."""
    tags = [source for source in summary.op.inputs if source.dtype == tf.string]
    tag = tf2.get_static_value(tags[0]) if tags else None
    return _short(tag.decode() if isinstance(tag, bytes) else summary.op.name)


def with_short_tags(summary: bytes) -> bytes:
    """Return a serialized ``Summary`` whose tags are without the scopes that the towers add."""
    message = tf.Summary.FromString(summary)
    for value in message.value:
        value.tag = _short(value.tag)
    return message.SerializeToString()


def _short(tag: str) -> str:
    return _SCOPE.sub("", tag, count=1) or tag


def _changes_state(tensor: Any) -> bool:
    """Return whether anything that a tensor is computed from has a state that computing changes."""
    waiting, seen = [tensor.op], set[str]()
    while waiting:
        operation = waiting.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        if operation.op_def.is_stateful and operation.type not in _READERS:
            return True
        waiting.extend([source.op for source in operation.inputs] + list(operation.control_inputs))
    return False


_STAGES: Final = ("train", "val", "inf", "head")


@dataclass(frozen=True)
class TowerInput:
    """What every tower of a graph shares.

    Args:
        network: the user's class.
        path: its file, for errors.
        input: what the network gets of one sample.
        target: what it learns to give for one; None where it learns from its input alone.
        pretrained: whether the job starts from a pretrained model, so that ``fineTuneHook`` is called.
    """

    network: type[Tower]
    path: str
    input: ArraySpec
    target: ArraySpec | None = None
    pretrained: bool = False

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.input.shape

    @property
    def classes(self) -> int | None:
        """Number of classes of the target; None where it has none."""
        return None if self.target is None else self.target.classes

    @property
    def learns_class_numbers(self) -> bool:
        """Whether the target is one class number for a sample."""
        return self.target is not None and self.target.is_class_number


@dataclass(frozen=True)
class Loss:
    """One thing that is minimized.

    Args:
        value: scalar tensor, regularisation included.
        variables: what it is minimized over; None for all trainable variables.
        weight: what the loss was divided by; None for the number of samples.
    """

    value: Any
    variables: Sequence[Any] | None = None
    weight: Weight | None = None


@dataclass(frozen=True)
class BuiltTower:
    """A tower with what it gives.

    Args:
        tower: the user's object.
        x: what it was built on; the network may have put another tensor into ``tower.x``.
        outputs: output tensors, one or more.
        losses: what is minimized; empty for inference.
        scalars: name → scalar tensor, from the user's scalar summaries.
        summaries: the user's summary tensors (serialized), one by one: of ``self.summaries``, and all others that were
            made while the tower was built.
        updates: operations to run with a training step, such as moving averages.
        regularization: scalar tensor, or None.
    """

    tower: Tower
    x: Any
    outputs: list[Any]
    losses: list[Loss] = field(default_factory=list)
    scalars: dict[str, Any] = field(default_factory=dict)
    summaries: list[Any] = field(default_factory=list)
    updates: list[Any] = field(default_factory=list)
    regularization: Any = None


def split_batch(tensor: Any, towers: int) -> list[Any]:
    """Return equal parts of a batch along its first axis, one a tower."""
    return [tensor] if towers == 1 or tensor is None else tf.split(tensor, towers, axis=0)


def make_placeholders(shared: TowerInput) -> tuple[Any, Any]:
    """Return the placeholders of samples and of labels, each (N, …) of the described type; no labels are None.

    Class numbers are int64 whatever integers a batch holds: losses and accuracies of user files expect that.
    """
    x = tf.placeholder(tf.as_dtype(shared.input.dtype), (None, *shared.input.shape), name="x")
    target = shared.target
    if target is None:
        return x, None
    dtype = tf.int64 if target.is_class_number else tf.as_dtype(target.dtype)
    return x, tf.placeholder(dtype, (None, *target.shape), name="y")


def make_tower(shared: TowerInput, x: Any, y: Any, *, is_training: bool, is_inference: bool) -> Any:
    """Return an object of the user's class, with what it may ask of the arrays.

    Args:
        shared: what all towers share.
        x: its part of the batch.
        y: its part of the labels, or None.
        is_training: whether it is built for training.
        is_inference: whether it is built for inference.
    """
    tower = shared.network(
        x, y, list(shared.input_shape), shared.classes, is_training=is_training, is_inference=is_inference
    )
    tower.target_shape = [] if shared.target is None else list(shared.target.shape)
    if shared.target is not None and shared.target.mean:
        tower.target_mean = np.array(shared.target.mean, np.float32)
        tower.target_std = np.array(shared.target.std, np.float32)
    tower.categories = shared.input.categories
    tower.vocabulary_size = shared.input.classes
    return tower


def inference_feeds(tower: BuiltTower, x: Any, given: Mapping[str, Any]) -> dict[Any, Any]:
    """Return placeholder → array for a tower of inference: the samples, and what is given beside them.

    Args:
        tower: for inference.
        x: (N, …) samples.
        given: name in ``inference_inputs`` → (N, …) array.

    Raises:
        UnknownNameError: where the network has no such input.
        ConfigurationError: where one is of another shape, or one without a default is missing.
    """
    feeds = {tower.x: x}
    known = tower.tower.inference_inputs
    for name, tensor in known.items():
        if name not in given and tensor.op.type != "PlaceholderWithDefault":
            raise ConfigurationError(
                f"The input `{name}` of this network is missing: it predicts from that, and not from samples alone.",
                advice=f"Say how many predictions to make from noise (`--count`), or give `{name}` with rows of shape "
                f"{tuple(tensor.shape.as_list()[1:])}.",
            )
    for name, array in given.items():
        if name not in known:
            raise UnknownNameError("input of this network beside the samples", name, known)
        wanted, values = known[name].shape.as_list()[1:], np.asarray(array)
        if list(values.shape[1:]) != wanted:
            raise ConfigurationError(
                f"The input `{name}` of this network has rows of shape {tuple(wanted)}.",
                received=f"an array of shape {values.shape}",
                advice="Give it one row for each sample.",
            )
        feeds[known[name]] = values
    return feeds


def build_tower(
    shared: TowerInput,
    x: Any,
    y: Any,
    *,
    stage: str = "train",
    device: str = "",
    number: int = 0,
    mixed: MixedLabels | None = None,
) -> BuiltTower:
    """Build the user's network once, under the shared variable scope ``model``.

    Args:
        shared: what all towers share.
        x: its part of the batch.
        y: its part of the labels; None for inference.
        stage: ``train``, ``val``, ``inf``, or ``head`` for steps that train the head of the network alone, which
            computes as in validation then.
        device: where its operations go; empty for TensorFlow's choice.
        number: of the tower in its stage, from 0.
        mixed: its part of second labels and shares; None where a sample has one label.

    Raises:
        NetworkCodeError: where the user's code fails; names file and line.
    """
    before = {key: len(tf.get_collection(key)) for key in (tf.GraphKeys.UPDATE_OPS, tf.GraphKeys.SUMMARIES)}
    scope = stage if stage in ("val", "inf") else f"{stage}/tower_{number}"
    with tf.device(device or None), tf.name_scope(f"{scope}/"):
        scopes = tf.variable_scope(GraphKeys.MODEL, reuse=tf.AUTO_REUSE)
        with users_errors(shared.path), scopes, noting_weights() as weights:
            tower = make_tower(shared, x, y, is_training=stage == "train", is_inference=stage == "inf")
            output: Any = tower.inference
            if shared.pretrained:
                output = tower.fineTuneHook(output)
                tower.__dict__.setdefault("_model_properties", {})["inference"] = output
            loss: Any = None
            if stage == "inf":
                _name_own_input(tower, x)
            else:
                loss = tower.loss if mixed is None else mixed_loss(tower, mixed, shared.path)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)[before[tf.GraphKeys.UPDATE_OPS] :]
        summaries = tf.get_collection(tf.GraphKeys.SUMMARIES)[before[tf.GraphKeys.SUMMARIES] :]
        summaries = single_summaries([*tower.summaries, *summaries])
        regularizers = _regularizers()
        return BuiltTower(
            tower,
            x,
            outputs=_outputs(output, shared.path),
            losses=_losses(loss, regularizers, weights, shared.path) if stage != "inf" else [],
            scalars=scalars_of(summaries),
            summaries=summaries,
            updates=updates,
            regularization=exact_sum([term for term, _ in regularizers]) if regularizers else None,
        )


def build_inference_tower(shared: TowerInput, x: Any, device: str = "") -> BuiltTower | NetworkCodeError:
    """Return the tower for inference; or the error, which matters to those alone who predict.

    A network may have an inference of its own that was never tried, and train and validate all the same.
    """
    try:
        return build_tower(shared, x, None, stage="inf", device=device)
    except NetworkCodeError as error:
        _logger.warning("The network cannot predict; training and evaluation go on without. %s", error)
        return error


def built_tower(found: BuiltTower | NetworkCodeError) -> BuiltTower:
    """Return a tower for inference.

    Raises:
        NetworkCodeError: if it could not be built.
    """
    if isinstance(found, NetworkCodeError):
        raise found
    return found


def _name_own_input(tower: Any, x: Any) -> None:
    """Name ``x`` among the inputs if a network puts one of another size in its place, as a generator does its noise."""
    own = tower.x
    if own is x or not isinstance(own, tf.Tensor) or not own.shape.rank or not own.shape[1:].is_fully_defined():
        return
    if own.shape[1:].num_elements() != x.shape[1:].num_elements():
        tower.inference_inputs.setdefault("x", own)


def _outputs(output: Any, path: str) -> list[Any]:
    outputs = list(output) if isinstance(output, list | tuple) else [output]
    if not outputs or not all(isinstance(each, tf.Tensor) for each in outputs):
        raise NetworkCodeError(
            f"`inference` returned a {type(output).__name__}, not a tensor or a list of tensors.",
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


def _losses(loss: Any, regularizers: list[tuple[Any, Any]], weights: Sequence[Weight], path: str) -> list[Loss]:
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
        weight = _weight_behind(value, weights) if weights else None
        losses.append(Loss(exact_sum([value, *terms]) if terms else value, variables, weight))
    return losses


def _weight_behind(loss: Any, weights: Sequence[Weight]) -> Weight | None:
    """Return the weight of a loss: the mean of those of its terms, which are equal if these have the same labels.

    What a loss adds besides, as a regularization, is the same in each part of a batch, and so in their weighted mean.
    """
    names = names_behind([loss])
    chosen = [each for each in weights if each.divisor.op.name in names]
    if not chosen:
        return None
    if len(chosen) == 1:
        return chosen[0]
    totals = [tf.cast(each.total, tf.float32) for each in chosen]
    divisors = [tf.cast(each.divisor, tf.float32) for each in chosen]
    at_least = max(each.at_least for each in chosen)
    return Weight(exact_sum(totals) / len(chosen), exact_sum(divisors) / len(chosen), at_least)


def _wrong_loss(received: Any, path: str) -> NetworkCodeError:
    shape = f" of shape {received.shape}" if isinstance(received, tf.Tensor) else ""
    return NetworkCodeError(
        "`loss` is a scalar tensor, or a list of {'loss': scalar tensor, 'vars': [variables]}.",
        received=f"{type(received).__name__}{shape}",
        advice="Reduce it with `tf.reduce_mean`, and return it.",
        details={"file": path},
    )


def layer_of(name: str) -> str:
    """Return the layer that an operation is part of: its outermost scope, with the number of a part of a sequence.

    ``conv1/Conv2D`` is of ``conv1``, ``features/3/conv/Relu`` of ``features/3``; one without a scope is its own layer.

    Args:
        name: of the operation, below the network's own scope.
    """
    first, *inner = name.split("/")
    return f"{first}/{inner[0]}" if len(inner) > 1 and inner[0].isdigit() else first


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


_SCORING: Final = frozenset(
    {
        "ArgMax",
        "InTopK",
        "InTopKV2",
        "LogSoftmax",
        "Softmax",
        "SoftmaxCrossEntropyWithLogits",
        "SparseSoftmaxCrossEntropyWithLogits",
        "TopK",
        "TopKV2",
    }
)
"""Operations that take one score a class."""

_SHARES: Final = frozenset({"LogSoftmax", "Softmax"})
_SAME: Final = frozenset({"CheckNumerics", "Identity", "Print", "PrintV2", "Reshape", "Squeeze", "StopGradient"})
_ELEMENTWISE: Final = frozenset(
    {"Add", "AddV2", "BiasAdd", "Cast", "ClipByValue", "Div", "ExpandDims", "Log", "Maximum", "Minimum", "Mul"}
    | {"RealDiv", "Sigmoid", "Sub"}
)
"""Operations that scale, shift or limit scores, and leave them scores."""


def gives_class_scores(tower: BuiltTower) -> bool:
    """Return whether loss or summaries take the first output for one score a class.

    An embedding, an image or measured values have a width too, and it may well be the number of classes; their largest
    number is no class. Scores end in a softmax; or a softmax, a cross-entropy, the largest of them or the difference to
    one-hot labels is computed from them.

    Args:
        tower: of training or validation; a tower for inference has no loss.
    """
    output = tower.outputs[0]
    if output.shape.rank != 2:
        return False
    starts = [output.op]
    while starts[-1].type in _SAME and starts[-1].inputs:
        starts.append(starts[-1].inputs[0].op)
    if starts[-1].type in _SHARES:
        return True
    judged = names_behind([*(loss.value for loss in tower.losses), *tower.scalars.values()])
    waiting, seen = list(starts), set[str]()
    while waiting:
        operation = waiting.pop()
        if operation.name in seen:
            continue
        seen.add(operation.name)
        for reader in [each for tensor in operation.outputs for each in tensor.consumers() if each.name in judged]:
            if reader.type in _SCORING or _is_beside_one_hot_labels(reader):
                return True
            if reader.type in _SAME or reader.type in _ELEMENTWISE:
                waiting.append(reader)
    return False


def _is_beside_one_hot_labels(operation: Any) -> bool:
    """Return whether an operation combines two tensors, one of them labels that are one-hot."""
    return len(operation.inputs) == 2 and any(_is_one_hot(each.op) for each in operation.inputs)


def _is_one_hot(operation: Any) -> bool:
    while operation.type in _SAME or operation.type == "Cast":
        operation = operation.inputs[0].op
    return operation.type == "OneHot"
