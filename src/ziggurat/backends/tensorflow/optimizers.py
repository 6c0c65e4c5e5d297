"""Optimizers, and averages of the weights that they train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.checkpoints import AVERAGES
from ziggurat.errors import ConfigurationError, UnknownNameError

__all__ = [
    "AveragedWeights",
    "average_weights",
    "first_momentum",
    "make_optimizer",
]


def _momentum(rate: Any, momentum: Any, nesterov: bool = False) -> Any:
    return tf.train.MomentumOptimizer(rate, momentum, use_nesterov=nesterov)


def _adam(rate: Any, beta_1: float = 0.9, beta_2: float = 0.999, epsilon: float = 1e-8) -> Any:
    return tf.train.AdamOptimizer(rate, beta1=beta_1, beta2=beta_2, epsilon=epsilon)


def _rmsprop(rate: Any, momentum: Any, decay: float = 0.9, epsilon: float = 1e-10) -> Any:
    return tf.train.RMSPropOptimizer(rate, decay=decay, momentum=momentum, epsilon=epsilon)


def _adagrad(rate: Any, initial_accumulator: float = 0.1) -> Any:
    return tf.train.AdagradOptimizer(rate, initial_accumulator_value=initial_accumulator)


def _adagrad_da(rate: Any, initial_accumulator: float = 0.1, l1: float = 0.0, l2: float = 0.0) -> Any:
    return tf.train.AdagradDAOptimizer(
        rate,
        global_step=tf.train.get_or_create_global_step(),
        initial_gradient_squared_accumulator_value=initial_accumulator,
        l1_regularization_strength=l1,
        l2_regularization_strength=l2,
    )


def _adadelta(rate: Any, rho: float = 0.95, epsilon: float = 1e-8) -> Any:
    return tf.train.AdadeltaOptimizer(rate, rho=rho, epsilon=epsilon)


def _ftrl(
    rate: Any, learning_rate_power: float = -0.5, initial_accumulator: float = 0.1, l1: float = 0.0, l2: float = 0.0
) -> Any:
    return tf.train.FtrlOptimizer(
        rate,
        learning_rate_power=learning_rate_power,
        initial_accumulator_value=initial_accumulator,
        l1_regularization_strength=l1,
        l2_regularization_strength=l2,
    )


OPTIMIZERS: Final[dict[str, tuple[Callable[..., Any], frozenset[str]]]] = {
    "sgd": (tf.train.GradientDescentOptimizer, frozenset()),
    "momentum": (_momentum, frozenset({"momentum", "nesterov"})),
    "nesterov": (_momentum, frozenset({"momentum"})),
    "adadelta": (_adadelta, frozenset({"rho", "epsilon"})),
    "adagrad": (_adagrad, frozenset({"initial_accumulator"})),
    "adagrad_da": (_adagrad_da, frozenset({"initial_accumulator", "l1", "l2"})),
    "adam": (_adam, frozenset({"beta_1", "beta_2", "epsilon"})),
    "adamw": (_adam, frozenset({"beta_1", "beta_2", "epsilon"})),
    "ftrl": (_ftrl, frozenset({"learning_rate_power", "initial_accumulator", "l1", "l2"})),
    "rmsprop": (_rmsprop, frozenset({"momentum", "decay", "epsilon"})),
}
"""name → (maker, names of its parameters). ``adamw`` is Adam; its decay is applied beside it (decoupled)."""

_WITH_MOMENTUM: Final = {"momentum": 0.9, "nesterov": 0.9, "rmsprop": 0.9}


def make_optimizer(name: str, options: Mapping[str, Any], rate: Any, momentum: Any) -> Any:
    """Return an optimizer of ``tf.train``.

    Args:
        name: one of ``OPTIMIZERS``.
        options: its parameters; what is left out has TensorFlow's default.
        rate: scalar tensor or variable.
        momentum: scalar tensor or variable, used by those that have momentum.

    Raises:
        UnknownNameError: where the name or a parameter is not known.
        ConfigurationError: where TensorFlow refuses a parameter's value.
    """
    if name not in OPTIMIZERS:
        raise UnknownNameError("optimizer", name, OPTIMIZERS)
    maker, known = OPTIMIZERS[name]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"parameter of the optimizer {name}", option, known)
    chosen = {key: value for key, value in options.items() if key != "momentum"}
    if name in _WITH_MOMENTUM:
        chosen["momentum"] = momentum
    if name == "nesterov":
        chosen["nesterov"] = True
    try:
        return maker(rate, **chosen)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"The optimizer {name} refuses a parameter: {str(error).rstrip('.')}.", advice="Look at its reference page."
        ) from error


def first_momentum(name: str, options: Mapping[str, Any]) -> float | None:
    """Return the momentum that the optimizer starts with; None where it has none."""
    return float(options.get("momentum", _WITH_MOMENTUM[name])) if name in _WITH_MOMENTUM else None


@dataclass(frozen=True, kw_only=True)
class AveragedWeights:
    """The operations on the averages of a graph.

    Args:
        start: gives each average the value of its variable.
        update: trains a step, then moves the averages.
        other_updates: the same for steps of other kinds.
        exchange: gives each variable the value of its average, and the average that of the variable; running it again
            puts both back, bit for bit.
    """

    start: Any
    update: Any
    exchange: Any
    other_updates: tuple[Any, ...] = ()


def average_weights(
    decay: float, variables: Sequence[Any], step: Any, train_op: Any, *other_ops: Any
) -> AveragedWeights:
    """Add an average of each variable to the graph.

    After step t it is ``average -= (1 - d) * (average - variable)`` with ``d = min(decay, (1 + t) / (10 + t))``: the
    rule of ``tf.train.ExponentialMovingAverage`` with ``num_updates``, whose smaller first decays let the averages
    leave the first weights soon. A variable that does not change has exactly itself as its average.

    Moving means and variances of batch normalization are not among the variables: they are averages already.

    Args:
        decay: d in the long run, in (0, 1).
        variables: those that are trained.
        step: the global step: t, once ``train_op`` has run.
        train_op: one step of every optimizer, on a whole batch.
        other_ops: steps of other kinds, such as those of a part of the variables.
    """
    pairs = [(variable, _shadow(variable)) for variable in variables if not variable.dtype.base_dtype.is_integer]
    start = tf.group(*[shadow.assign(variable.read_value(), read_value=False) for variable, shadow in pairs])
    update, *others = [_moves(decay, pairs, step, each) for each in (train_op, *other_ops)]
    return AveragedWeights(start=start, update=update, exchange=_exchange(pairs), other_updates=tuple(others))


def _moves(decay: float, pairs: Sequence[tuple[Any, Any]], step: Any, train_op: Any) -> Any:
    """Return the operation that trains a step, then moves the averages."""
    with tf.control_dependencies([train_op]):
        count = tf.cast(step.read_value(), tf.float32)
        share = 1.0 - tf.minimum(decay, (1.0 + count) / (10.0 + count))
        moves = [
            shadow.assign_sub(
                tf.cast(share, shadow.dtype.base_dtype) * (shadow.read_value() - variable.read_value()),
                read_value=False,
            )
            for variable, shadow in pairs
        ]
        return tf.group(*moves)


def _shadow(variable: Any) -> Any:
    with tf.variable_scope(AVERAGES.rstrip("/")), tf.device(variable.device):
        return tf.get_variable(
            variable.op.name, variable.shape, variable.dtype.base_dtype, tf.zeros_initializer(), trainable=False
        )


def _exchange(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """Return the operation that exchanges both values of each pair, once all of them are read."""
    values = [(_own_value(variable), shadow.read_value()) for variable, shadow in pairs]
    with tf.control_dependencies([value for both in values for value in both]):
        return tf.group(
            *[
                operation
                for (variable, shadow), (weight, average) in zip(pairs, values, strict=True)
                for operation in (
                    variable.assign(average, read_value=False),
                    shadow.assign(weight, read_value=False),
                )
            ]
        )


def _own_value(variable: Any) -> Any:
    """Return the value of a variable in memory that writing to the variable leaves alone."""
    value = variable.read_value()
    return value if hasattr(variable, "handle") else tf.raw_ops.DeepCopy(x=value)
