"""Gradient processors: functions from (gradient, variable) pairs to such pairs, between the cost and the update."""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf import logger
from ziggurat.tf.summary import add_moving_summary
from ziggurat.tf.tower import get_current_tower_context

__all__ = [
    "CheckGradient",
    "FilterNoneGrad",
    "GlobalNormClip",
    "GradientProcessor",
    "MapGradient",
    "PrintGradient",
    "ScaleGradient",
    "SummaryGradient",
    "filter_none",
]

Pairs = Sequence[tuple[Any, Any]]


def filter_none(pairs: Pairs) -> list[tuple[Any, Any]]:
    """Return the pairs that have a gradient.

    Raises:
        ConfigurationError: where none has.
    """
    kept = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
    if not kept:
        raise ConfigurationError(
            "The cost depends on no trainable "
            f"variable{', such as ' + ', '.join(variable.op.name for _, variable in pairs[:5]) if pairs else ''}.",
            advice="Make the variables by `tf.get_variable` in the tower function, and use them for the cost.",
        )
    return kept


class GradientProcessor(ABC):
    """Base of processors. Give them to ``apply_grad_processors``, which calls ``process`` in their order.

    A subclass defines ``_process(grads)``. A pair whose gradient is None updates nothing.
    """

    def process(self, grads: Pairs) -> list[tuple[Any, Any]]:
        """Return the pairs to go on with.

        Args:
            grads: (gradient, variable) pairs.
        """
        with tf.name_scope(type(self).__name__):
            return list(self._process(grads))

    @abstractmethod
    def _process(self, grads: Pairs) -> Pairs:
        """Return the pairs to go on with."""


class FilterNoneGrad(GradientProcessor):
    """Leaves out variables that the cost does not depend on.

    Args:
        verbose: name them in a warning.
    """

    def __init__(self, verbose: bool = True) -> None:
        self._verbose = verbose

    def _process(self, grads: Pairs) -> Pairs:
        without = [variable.op.name for gradient, variable in grads if gradient is None]
        if without and self._verbose:
            logger.warning("The cost does not depend on %s.", ", ".join(without))
        return filter_none(grads)


class GlobalNormClip(GradientProcessor):
    """Scales all gradients so that the root of the sum of all squares is at most a number.

    Source: Pascanu, Mikolov and Bengio, "On the difficulty of training recurrent neural networks" (ICML 2013).

    Args:
        global_norm: the number, above 0.
    """

    def __init__(self, global_norm: float) -> None:
        if not global_norm > 0:
            raise ConfigurationError(f"`global_norm` is {global_norm}, not above 0.", advice="5 is a usual value.")
        self._norm = float(global_norm)

    def _process(self, grads: Pairs) -> Pairs:
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in grads], self._norm, name="clip_by_global_norm")
        return list(zip(clipped, [variable for _, variable in grads], strict=True))


class MapGradient(GradientProcessor):
    """Applies a function to gradients.

    >>> MapGradient(lambda gradient: tf.clip_by_value(gradient, -1, 1), "fc.*/W")

    Args:
        func: takes a gradient, or a gradient and its variable; where it returns None, the variable is not updated.
        regex: of names of variables, as a whole; others stay as they are.
    """

    def __init__(self, func: Callable[..., Any], regex: str = ".*") -> None:
        self._function = func
        self._takes_variable = _parameter_count(func) > 1
        self._names = re.compile(regex)

    def _process(self, grads: Pairs) -> Pairs:
        return [pair for pair in map(self._mapped, grads) if pair[0] is not None]

    def _mapped(self, pair: tuple[Any, Any]) -> tuple[Any, Any]:
        gradient, variable = pair
        if gradient is None or not self._names.fullmatch(variable.op.name):
            return pair
        return self._function(gradient, variable) if self._takes_variable else self._function(gradient), variable


class SummaryGradient(MapGradient):
    """Logs a histogram of each gradient, and the moving average of its root mean square.

    Inside of an ``AccumGradOptimizer`` there are gradients in some steps only, so it logs nothing there, and says so:
    put it around.

    Args:
        regex: of names of variables, as a whole.
        collections: of the histograms; ``SUMMARIES`` where it is None.
    """

    def __init__(self, regex: str = ".*", collections: Sequence[str] | None = None) -> None:
        super().__init__(self._summarized, regex)
        self._collections = collections

    def _process(self, grads: Pairs) -> Pairs:
        if tf.get_default_graph()._get_control_flow_context() is not None:
            # A summary of what is not computed would fail in the other steps.
            logger.warning("SummaryGradient logs nothing inside of a condition: put it around AccumGradOptimizer.")
            return grads
        return super()._process(grads)

    def _summarized(self, gradient: Any, variable: Any) -> Any:
        context = get_current_tower_context()
        if context is None or context.is_main_training_tower:
            name, values = variable.op.name, tf.convert_to_tensor(gradient)
            tf.summary.histogram(f"{name}-grad", values, collections=self._collections)
            add_moving_summary(tf.sqrt(tf.reduce_mean(tf.square(values)), name=f"{name}/rms"))
        return gradient


class PrintGradient(MapGradient):
    """Writes shape, mean, root mean square and largest magnitude of each gradient to standard error, every step.

    Args:
        regex: of names of variables, as a whole.
    """

    def __init__(self, regex: str = ".*") -> None:
        super().__init__(_printed, regex)


class CheckGradient(MapGradient):
    """Ends the training with ``tf.errors.InvalidArgumentError`` where a gradient has NaN or infinity, and names it."""

    def __init__(self) -> None:
        super().__init__(_checked)


class ScaleGradient(MapGradient):
    """Multiplies gradients; a factor of 0 freezes the variable.

    >>> ScaleGradient([("conv0/.*", 0), (".*/b", 2)])

    Args:
        multipliers: a (regular expression, factor) pair, or several; the first whose expression fits a name counts.
        verbose: log which variables are scaled.
    """

    def __init__(self, multipliers: tuple[str, float] | Sequence[tuple[str, float]], verbose: bool = True) -> None:
        pairs: Any = [multipliers] if isinstance(multipliers[0], str) else multipliers
        self._factors = [(re.compile(regex), float(factor)) for regex, factor in pairs]
        self._verbose = verbose
        super().__init__(self._scaled)

    def _scaled(self, gradient: Any, variable: Any) -> Any:
        name = variable.op.name
        factor = next((factor for regex, factor in self._factors if regex.fullmatch(name)), 1.0)
        if factor == 1.0:
            return gradient
        if self._verbose:
            logger.info("The gradient of %s is multiplied by %g.", name, factor)
        if factor == 0.0:
            return None
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(gradient.values * factor, gradient.indices, gradient.dense_shape)
        return gradient * factor


def _printed(gradient: Any, variable: Any) -> Any:
    values = tf.convert_to_tensor(gradient)
    numbers = [tf.shape(values), tf.reduce_mean(values), tf.sqrt(tf.reduce_mean(tf.square(values)))]
    shown = tf.print(f"{variable.op.name}: shape, mean, rms, largest =", *numbers, tf.reduce_max(tf.abs(values)))
    with tf.control_dependencies([shown]):
        if isinstance(gradient, tf.IndexedSlices):  # an optimizer treats it in another way than a dense one
            return tf.IndexedSlices(tf.identity(gradient.values), gradient.indices, gradient.dense_shape)
        return tf.identity(values)


def _checked(gradient: Any, variable: Any) -> Any:
    message = f"The gradient of {variable.op.name}"
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.debugging.check_numerics(gradient.values, message)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return tf.debugging.check_numerics(gradient, message)


def _parameter_count(function: Callable[..., Any]) -> int:
    """Return how many arguments a function must get by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return 1
    needed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in needed and each.default is inspect.Parameter.empty for each in parameters)
