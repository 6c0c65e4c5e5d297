"""Graph of a job: inputs, training towers with averaged gradients, validation and inference towers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ziggurat.backends.tensorflow.batch_sums import BatchSums, Weight
from ziggurat.backends.tensorflow.mixed_labels import MixedLabels, mixed_placeholders, split_labels
from ziggurat.backends.tensorflow.namespace.deterministic import exact_sum
from ziggurat.backends.tensorflow.optimizers import AveragedWeights, average_weights, first_momentum
from ziggurat.backends.tensorflow.rates import LossOptimizers, OptimizerChoice, stage_factors
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import (
    BuiltTower,
    TowerInput,
    build_inference_tower,
    build_tower,
    built_tower,
    check_divides,
    gives_class_scores,
    make_placeholders,
    merged_summaries,
    split_batch,
)
from ziggurat.engine.fine_tuning import BACKBONE_RATE, FineTuningRequest
from ziggurat.errors import NetworkCodeError

__all__ = ["WEIGHTS", "GraphOptions", "HeadSteps", "JobGraph", "build_graph"]

_PRIVATE: Final = "ziggurat"

WEIGHTS: Final = "ziggurat/weights"
"""Collection of the variables that add up the weights of losses over the parts of a batch."""


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """What the graph is built for.

    Args:
        batch_size: samples in a step, over all devices.
        devices: one training tower on each; empty for one tower where TensorFlow likes.
        optimizer: its name.
        optimizer_options: its parameters.
        learning_rate: the first one.
        weight_decay: factor of the squared weights; added to the cost, or decoupled with ``adamw``.
        gradient_clip: largest global norm; None for no limit.
        gradient_accumulation_steps: parts that a batch is trained in, their gradients averaged.
        ema_decay: decay of the averages of the weights; None for no averages.
        mixes_labels: whether the samples of a training batch have two labels each.
        fine_tuning: rates of backbone and head; None for one rate.
    """

    batch_size: int
    devices: tuple[str, ...] = ()
    optimizer: str = "momentum"
    optimizer_options: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    gradient_clip: float | None = None
    gradient_accumulation_steps: int = 1
    ema_decay: float | None = None
    mixes_labels: bool = False
    fine_tuning: FineTuningRequest | None = None


@dataclass(frozen=True, kw_only=True)
class HeadSteps:
    """Steps that train the head of a network alone; the network computes as in validation meanwhile.

    Args:
        train_op: one step of the optimizers of the head, and of the averages.
        accumulate_op: adds the gradients of a part of a batch; None without accumulation.
        values: name → tensor of such a step; others are those of a whole step.
    """

    train_op: Any
    accumulate_op: Any
    values: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class JobGraph:
    """The parts of a built graph that a program runs.

    Args:
        graph: the whole.
        path: the network file, for errors.
        x: placeholder of samples, (N, …) as the input is described.
        y: placeholder of labels, (N, …) as the target is described; None where there is none.
        hyperparameters: name → variable.
        assignments: name → (placeholder, operation) for each hyperparameter.
        train_op: one step of every optimizer, and of the averages.
        accumulate_op: adds the gradients of a part of a batch; None without accumulation.
        train_values: name → tensor of a training step.
        validation_values: name → tensor of an evaluation.
        summary: the user's images, histograms and what else is no curve, serialized; None where there are none.
        training: the towers that train.
        validation: the tower that evaluates.
        predicting: the tower that predicts; the error where it could not be built.
        averages: of the weights; None if not requested.
        mixed: placeholders of second labels and of shares, which training steps take beside; None where there are none.
        head: steps of the head alone; None where nothing is fine-tuned.
    """

    graph: Any
    path: str
    x: Any
    y: Any
    hyperparameters: dict[str, Any]
    assignments: dict[str, tuple[Any, Any]]
    train_op: Any
    accumulate_op: Any
    train_values: dict[str, Any]
    validation_values: dict[str, Any]
    summary: Any
    training: list[BuiltTower]
    validation: BuiltTower
    predicting: BuiltTower | NetworkCodeError
    averages: AveragedWeights | None = None
    mixed: MixedLabels | None = None
    head: HeadSteps | None = None

    @property
    def inference(self) -> BuiltTower:
        """The tower that predicts.

        Raises:
            NetworkCodeError: if it could not be built.
        """
        return built_tower(self.predicting)


def build_graph(shared: TowerInput, options: GraphOptions, *, is_frozen: Any = None) -> JobGraph:
    """Build the whole graph in the current default graph.

    Args:
        shared: network, and the arrays of a batch.
        options: the rest.
        is_frozen: called with each trainable variable's name; True for one that is not to be trained.

    Raises:
        ConfigurationError: where the towers do not divide the batch.
        NetworkCodeError: where the user's code fails.
    """
    towers = 1 if shared.network.disableAutoDataParallelism else max(1, len(options.devices))
    check_divides(options.batch_size, towers * options.gradient_accumulation_steps)
    step = tf.train.get_or_create_global_step()
    x, y = make_placeholders(shared)
    hyperparameters, assignments = _hyperparameters(options)
    mixed = mixed_placeholders(y) if options.mixes_labels else None
    batch = _Batch(x, y, mixed, towers)
    training = batch.towers_of(shared, options, "train")
    choice = OptimizerChoice(
        name=options.optimizer,
        options=options.optimizer_options,
        hyperparameters=hyperparameters,
        factors=stage_factors(options.fine_tuning, _trained(is_frozen)),
    )
    optimizers = [LossOptimizers(choice) for _ in training[0].losses]
    train_op, accumulate_op, norm = _training(training, options, optimizers, step, is_frozen, shared.path)
    validation = build_tower(shared, x, y, stage="val", device=_device(options.devices, 0))
    predicting = build_inference_tower(shared, x, _device(options.devices, 0))
    averages, head = None, None
    if options.fine_tuning is not None:
        head = _head_steps(batch, shared, options, choice, optimizers)
    if options.ema_decay is not None:  # behind everything else, so that the other operations stay what they were
        steps = [train_op] if head is None else [train_op, head.train_op]
        averages = average_weights(options.ema_decay, _trained(is_frozen), step, *steps)
        train_op = averages.update
        head = None if head is None else replace(head, train_op=averages.other_updates[0])
    train_values = _values(training, y, shared)
    train_values |= {"gradient_norm": norm, "learning_rate": hyperparameters["learning_rate"].read_value()}
    return JobGraph(
        graph=tf.get_default_graph(),
        path=shared.path,
        x=x,
        y=y,
        hyperparameters=hyperparameters,
        assignments=assignments,
        train_op=train_op,
        accumulate_op=accumulate_op,
        train_values=train_values,
        validation_values=_values([validation], y, shared),
        summary=merged_summaries(validation.summaries, training[0].scalars),
        training=training,
        validation=validation,
        predicting=predicting,
        averages=averages,
        mixed=mixed,
        head=head,
    )


@dataclass(frozen=True)
class _Batch:
    """Placeholders of a batch, and the number of towers that share it."""

    x: Any
    y: Any
    mixed: MixedLabels | None
    towers: int

    def towers_of(self, shared: TowerInput, options: GraphOptions, stage: str) -> list[BuiltTower]:
        """Return a tower for each part of the batch."""
        labels = split_batch(self.y, self.towers) if self.y is not None else [None] * self.towers
        parts = zip(split_batch(self.x, self.towers), labels, split_labels(self.mixed, self.towers), strict=True)
        towers, sums = [], BatchSums(self.towers)
        for number, (x, y, mixed) in enumerate(parts):
            place = _device(options.devices, number)
            with sums.tower(number):
                towers.append(build_tower(shared, x, y, stage=stage, device=place, number=number, mixed=mixed))
        sums.connect()
        return towers


def _head_steps(
    batch: _Batch,
    shared: TowerInput,
    options: GraphOptions,
    choice: OptimizerChoice,
    optimizers: Sequence[LossOptimizers],
) -> HeadSteps:
    """Build the steps of the head alone, with the optimizers of the whole steps."""
    head = {name for name, factor in choice.factors.items() if factor is None}
    step = tf.train.get_or_create_global_step()
    with _collections_apart():
        towers = batch.towers_of(shared, options, "head")
        train_op, accumulate_op, norm = _training(
            towers, options, optimizers, step, lambda name: name not in head, shared.path
        )
        values = _values(towers, batch.y, shared)
    values |= {"gradient_norm": norm}
    return HeadSteps(train_op=train_op, accumulate_op=accumulate_op, values=values)


@contextmanager
def _collections_apart() -> Iterator[None]:
    """Let what is built inside see none of the losses of other towers, and add nothing to what others collect."""
    names = (tf.GraphKeys.LOSSES, tf.GraphKeys.SUMMARIES, tf.GraphKeys.UPDATE_OPS)
    kept = {name: tf.get_collection(name) for name in names}
    tf.get_collection_ref(tf.GraphKeys.LOSSES).clear()
    try:
        yield
    finally:
        for name, values in kept.items():
            tf.get_collection_ref(name)[:] = values


def _device(devices: Sequence[str], number: int) -> str:
    return f"/{devices[number].lstrip('/')}" if number < len(devices) else ""


def _hyperparameters(options: GraphOptions) -> tuple[dict[str, Any], dict[str, tuple[Any, Any]]]:
    values = {"learning_rate": options.learning_rate}
    momentum = first_momentum(options.optimizer, options.optimizer_options)
    if momentum is not None:
        values["momentum"] = momentum
    if options.fine_tuning is not None:
        values[BACKBONE_RATE] = 1.0
    variables, assignments = {}, {}
    with tf.variable_scope(_PRIVATE), tf.device("/cpu:0"):
        for name, value in values.items():
            variables[name] = tf.get_variable(
                name, initializer=tf.constant(value, tf.float32), trainable=False, use_resource=True
            )
            placeholder = tf.placeholder(tf.float32, (), name=f"set_{name}")
            assignments[name] = (placeholder, variables[name].assign(placeholder, read_value=False))
    return variables, assignments


def _values(towers: Sequence[BuiltTower], y: Any, shared: TowerInput) -> dict[str, Any]:
    """Return name → tensor: means over the towers of scalars, rows of all towers of arrays."""
    values: dict[str, Any] = {}
    costs = [exact_sum([loss.value for loss in tower.losses]) for tower in towers]
    values["cost"] = _mean(costs)
    if towers[0].regularization is not None:
        values["regularization"] = towers[0].regularization
    for name in towers[0].scalars:
        values[name] = _mean([tower.scalars[name] for tower in towers])
    for number in range(len(towers[0].outputs)):
        name = "output" if number == 0 else f"output_{number}"
        parts = [tower.outputs[number] for tower in towers]
        values[name] = parts[0] if len(parts) == 1 else tf.concat(parts, axis=0)
    if shared.learns_class_numbers and shared.classes is not None and gives_class_scores(towers[0]):
        logits = values["output"]
        wrong = tf.cast(tf.not_equal(tf.argmax(logits, 1), y), tf.float32)
        values |= {"incorrect_vector": wrong, "error": tf.reduce_mean(wrong), "probabilities": tf.nn.softmax(logits)}
    if y is not None:
        values["labels"] = tf.identity(y)
    if towers[0].summaries:
        values["summaries"] = tf.summary.merge(towers[0].summaries, collections=[])
    return values


def _mean(tensors: Sequence[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else exact_sum(list(tensors)) / len(tensors)


def _training(
    towers: Sequence[BuiltTower],
    options: GraphOptions,
    optimizers: Sequence[LossOptimizers],
    step: Any,
    is_frozen: Any,
    path: str,
) -> tuple[Any, Any, Any]:
    """Return the training operation, that of accumulation (or None), and the gradients' norm.

    Of steps of the head alone, losses that the head has no part in are left out.
    """
    of_head = not towers[0].tower.is_training
    operations, accumulating, norms = [], [], []
    for number, chosen in enumerate(optimizers):
        pairs = _averaged([_gradients(chosen.first, tower, number, options, is_frozen) for tower in towers])
        weight = towers[0].losses[number].weight if number < len(towers[0].losses) else None
        if not pairs:
            if of_head and (norms or number + 1 < len(optimizers)):
                continue
            raise _no_gradient(number, path)
        if options.gradient_accumulation_steps > 1:
            pairs, add = (
                _accumulated(pairs, options.gradient_accumulation_steps)
                if weight is None
                else _accumulated_by_weight(pairs, weight, number)
            )
            accumulating.append(add)
        norm = tf.global_norm([gradient for gradient, _ in pairs])
        norms.append(norm)
        pairs = _clipped(pairs, options.gradient_clip, norm)
        operations += _applied(chosen, pairs, options, accumulating, number)
    with tf.control_dependencies([*operations, *towers[0].updates]):
        train_op = step.assign_add(1, read_value=False)
    with tf.control_dependencies(list(towers[0].updates)):
        accumulate_op = tf.group(*accumulating) if accumulating else None
    return train_op, accumulate_op, exact_sum(norms)


def _no_gradient(number: int, path: str) -> NetworkCodeError:
    return NetworkCodeError(
        "`loss` depends on at least one variable that is trained.",
        received=f"loss {number + 1} without a gradient",
        advice="Check what is frozen, `vars`, and that the loss is made from `self.inference`.",
        details={"file": path},
    )


def _gradients(optimizer: Any, tower: BuiltTower, number: int, options: GraphOptions, is_frozen: Any) -> list[Any]:
    if number >= len(tower.losses):  # a network may have fewer where it is not `is_training`, as for its head alone
        return []
    loss = tower.losses[number]
    variables = _trained(is_frozen, loss.variables)
    if not variables:
        return []
    value = loss.value
    if options.weight_decay and options.optimizer != "adamw":
        value += options.weight_decay * exact_sum([tf.nn.l2_loss(each) for each in _decayed(variables)] or [0.0])
    pairs = optimizer.compute_gradients(value, variables, aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE)
    known = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
    return [pair for pair in tower.tower.gradientUpdate(known) if pair[0] is not None]


def _trained(is_frozen: Any, variables: Sequence[Any] | None = None) -> list[Any]:
    """Return what is trained of some variables, or of all trainable ones."""
    chosen = tf.trainable_variables() if variables is None else variables
    return [variable for variable in chosen if is_frozen is None or not is_frozen(variable.op.name)]


def _decayed(variables: Sequence[Any]) -> list[Any]:
    """Return the variables that weight decay is for: matrices and kernels, neither biases nor norms."""
    return [variable for variable in variables if (variable.shape.rank or 0) > 1]


def _averaged(towers: Sequence[Sequence[tuple[Any, Any]]]) -> list[tuple[Any, Any]]:
    if len(towers) == 1:
        return list(towers[0])
    found: dict[str, tuple[Any, list[Any]]] = {}
    for pairs in towers:
        for gradient, variable in pairs:
            found.setdefault(variable.name, (variable, []))[1].append(tf.convert_to_tensor(gradient))
    return [(exact_sum(gradients) / len(towers), variable) for variable, gradients in found.values()]


def _accumulated(pairs: Sequence[tuple[Any, Any]], parts: int) -> tuple[list[tuple[Any, Any]], Any]:
    """Return the means over ``parts`` parts of a batch, this one being the last, and the operation for the others."""
    sums, additions = [], []
    with tf.variable_scope(f"{_PRIVATE}/sums", reuse=tf.AUTO_REUSE):
        for gradient, variable in pairs:
            dense = tf.convert_to_tensor(gradient)
            kept = tf.get_variable(
                variable.op.name, variable.shape, variable.dtype.base_dtype, tf.zeros_initializer(), trainable=False
            )
            additions.append(kept.assign_add(dense, read_value=False))
            sums.append(((kept.read_value() + dense) / parts, variable))
    return sums, tf.group(*additions)


def _accumulated_by_weight(
    pairs: Sequence[tuple[Any, Any]], weight: Weight, number: int
) -> tuple[list[tuple[Any, Any]], Any]:
    """Return the gradients of a batch in parts, and the operation for all parts but the last.

    Each part counts as much as its loss was divided by.

    Args:
        pairs: of the last part.
        weight: of its loss.
        number: of the loss.
    """
    total, divisor = (tf.cast(tf.stop_gradient(each), tf.float32) for each in (weight.total, weight.divisor))
    sums, additions = [], []
    with tf.variable_scope(f"{_PRIVATE}/sums", reuse=tf.AUTO_REUSE):
        # Steps begin and end with 0 here, so that a checkpoint has no use for it.
        beside = tf.get_variable(
            f"weights_{number}",
            (2,),
            tf.float32,
            tf.zeros_initializer(),
            trainable=False,
            use_resource=True,
            collections=[WEIGHTS],
        )
        own = tf.stack([total, divisor])
        additions.append(beside.assign_add(own, read_value=False))
        whole = beside.read_value() + own
        if weight.at_least:
            share = tf.maximum(whole[0], weight.at_least)
        else:
            share = tf.where(whole[0] > 0, whole[0], whole[1])
        for gradient, variable in pairs:
            dense = tf.convert_to_tensor(gradient)
            dense *= tf.cast(divisor, dense.dtype)
            kept = tf.get_variable(
                variable.op.name, variable.shape, variable.dtype.base_dtype, tf.zeros_initializer(), trainable=False
            )
            additions.append(kept.assign_add(dense, read_value=False))
            sums.append(((kept.read_value() + dense) / tf.cast(share, dense.dtype), variable))
    return sums, tf.group(*additions)


def _clipped(pairs: Sequence[tuple[Any, Any]], limit: float | None, norm: Any) -> list[tuple[Any, Any]]:
    if limit is None:
        return list(pairs)
    clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], limit, use_norm=norm)
    return [(gradient, variable) for gradient, (_, variable) in zip(clipped, pairs, strict=True)]


def _applied(
    optimizers: LossOptimizers,
    pairs: Sequence[tuple[Any, Any]],
    options: GraphOptions,
    accumulating: Sequence[Any],
    number: int,
) -> list[Any]:
    gradients = [gradient for gradient, _ in pairs]
    applied = []
    for factor, optimizer, chosen in optimizers.groups(pairs):
        decays = []
        if options.optimizer == "adamw" and options.weight_decay:
            # Decoupled decay: Loshchilov and Hutter, ICLR 2019, algorithm 2. Gradients are those of the old weights.
            rate = optimizers.rate(factor)
            with tf.control_dependencies(gradients):
                decays = [
                    variable.assign_sub(rate * options.weight_decay * variable.read_value(), read_value=False)
                    for variable in _decayed([variable for _, variable in chosen])
                ]
        with tf.control_dependencies(decays):
            applied.append(optimizer.apply_gradients(chosen))
    if not accumulating:
        return applied
    # Those of this loss alone: other losses may not have read theirs yet.
    own = {f"{_PRIVATE}/sums/{variable.op.name}" for _, variable in pairs} | {f"{_PRIVATE}/sums/weights_{number}"}
    sums = [each for each in (*tf.global_variables(), *tf.get_collection(WEIGHTS)) if each.op.name in own]
    with tf.control_dependencies(applied):
        return [tf.group(*[each.assign(tf.zeros_like(each), read_value=False) for each in sums])]
