"""Optimizers around optimizers: with gradient processors, with work behind the update, over several batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.gradients import GradientProcessor, filter_none

__all__ = [
    "AccumGradOptimizer",
    "PostProcessOptimizer",
    "ProxyOptimizer",
    "VariableAssignmentOptimizer",
    "apply_grad_processors",
]


class ProxyOptimizer(tf.train.Optimizer):
    """An optimizer that passes every call on to another one; base of those that add something.

    Args:
        opt: a ``tf.train.Optimizer``.
        name: of this one.

    Raises:
        ConfigurationError: where it is none.
    """

    def __init__(self, opt: Any, name: str = "ProxyOptimizer") -> None:
        if not isinstance(opt, tf.train.Optimizer):
            raise ConfigurationError(
                f"The optimizer is a {type(opt).__name__}, not a `tf.train.Optimizer`.",
                advice="Use one of `tf.train`, such as `tf.train.AdamOptimizer`; those of Keras need eager execution.",
            )
        super().__init__(False, name)
        self._opt = opt

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Return the (gradient, variable) pairs of the optimizer inside."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Return the update of the optimizer inside."""
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Return a slot of the optimizer inside."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """Return the names of the slots of the optimizer inside."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """Return the variables of the optimizer inside."""
        return self._opt.variables()


class _WithProcessors(ProxyOptimizer):
    def __init__(self, opt: Any, processors: Sequence[GradientProcessor]) -> None:
        super().__init__(opt, "ApplyGradientProcessors")
        self._processors = list(processors)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        pairs = list(grads_and_vars)
        for processor in self._processors:
            pairs = processor.process(pairs)
        return self._opt.apply_gradients(filter_none(pairs), global_step, name)


def apply_grad_processors(opt: Any, gradprocs: Sequence[GradientProcessor]) -> Any:
    """Return an optimizer that lets processors change the gradients before each update.

    Args:
        opt: a ``tf.train.Optimizer``.
        gradprocs: the processors, in their order.
    """
    for each in gradprocs:
        if not isinstance(each, GradientProcessor):
            raise ConfigurationError(
                f"`gradprocs` holds a {type(each).__name__}, which is no gradient processor.",
                advice="Wrap a function in `MapGradient`.",
            )
    return _WithProcessors(opt, gradprocs)


class PostProcessOptimizer(ProxyOptimizer):
    """Runs an operation for each variable behind its update.

    Args:
        opt: a ``tf.train.Optimizer``.
        func: takes a variable; returns an operation, or None for nothing to do. Variables that it makes get a function
            or an initializer as their first value: a tensor would wait for the update.
        colocate: put the operations on the devices of their variables.
    """

    def __init__(self, opt: Any, func: Callable[[Any], Any], colocate: bool = True) -> None:
        super().__init__(opt, "PostProcessOptimizer")
        self._function = func
        self._colocate = colocate

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Return the update and what comes behind it as one operation."""
        pairs = list(grads_and_vars)
        update = self._opt.apply_gradients(pairs, global_step)
        with tf.control_dependencies([update]):
            operations = [self._behind(variable) for gradient, variable in pairs if gradient is not None]
        return tf.group(update, *(each for each in operations if each is not None), name=name)

    def _behind(self, variable: Any) -> Any:
        if not self._colocate:
            return self._function(variable)
        with tf.device(variable.device):
            return self._function(variable)


class VariableAssignmentOptimizer(PostProcessOptimizer):
    """Gives each variable another value behind its update, such as one that keeps to a range.

    >>> VariableAssignmentOptimizer(tf.train.AdamOptimizer(1e-4), lambda v: tf.clip_by_value(v, -0.01, 0.01))

    Args:
        opt: a ``tf.train.Optimizer``.
        func: takes a variable; returns its new value, or None to leave it.
    """

    def __init__(self, opt: Any, func: Callable[[Any], Any]) -> None:
        def assigned(variable: Any) -> Any:
            value = func(variable)
            return None if value is None else variable.assign(value, read_value=False)

        super().__init__(opt, assigned)


class AccumGradOptimizer(ProxyOptimizer):
    """Accumulates gradients over several steps, then updates the variables once.

    Args:
        opt: a ``tf.train.Optimizer``.
        niter: steps in an update, at least 1. The steps of the training count each of them.
        reduce: ``mean`` of the gradients, as of one batch of that many; or ``sum``, as in Tensorpack.

    Raises:
        ConfigurationError: for another reduction, or less than 1 step.
    """

    def __init__(self, opt: Any, niter: int, reduce: Literal["mean", "sum"] = "mean") -> None:
        if niter < 1 or reduce not in ("mean", "sum"):
            raise ConfigurationError(
                f"niter={niter}, reduce={reduce!r} do not fit: `niter` is at least 1, and `reduce` is `mean` or `sum`.",
                advice="Use `mean`, with the learning rate of the larger batch.",
            )
        super().__init__(opt, "AccumGradOptimizer")
        self._niter = int(niter)
        self._factor = 1.0 / niter if reduce == "mean" else 1.0

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Return one operation that adds the gradients up and, every so many steps, updates."""
        pairs = filter_none(list(grads_and_vars))
        if self._niter == 1:
            return self._opt.apply_gradients(pairs, global_step, name)
        variables = [variable for _, variable in pairs]
        sums = [
            _beside(f"{variable.op.name}/AccumGrad", tf.zeros(variable.shape, variable.dtype)) for variable in variables
        ]
        count = _beside("AccumGrad/counter", tf.constant(0))
        added = [_add(total, gradient) for total, (gradient, _) in zip(sums, pairs, strict=True)]
        with tf.control_dependencies(added):
            seen = count.assign_add(1)

        def update() -> Any:
            gradients = [total.read_value() * tf.cast(self._factor, total.dtype) for total in sums]
            with tf.get_default_graph().name_scope(None):  # its variables have the names that they have without this
                done = self._opt.apply_gradients(list(zip(gradients, variables, strict=True)), global_step)
            with tf.control_dependencies([done]):
                cleared = [total.assign(tf.zeros_like(total), read_value=False) for total in sums]
                cleared.append(count.assign(0, read_value=False))
            with tf.control_dependencies(cleared):
                return tf.constant(True)

        done = tf.cond(tf.equal(seen, self._niter), update, lambda: tf.constant(False))
        return tf.group(done, name=name)


def _add(total: Any, gradient: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return total.scatter_add(gradient)
    return total.assign_add(gradient, read_value=False)


def _beside(name: str, first_value: Any) -> Any:
    """Return a variable that is not trained, whatever scopes are open; it is part of every checkpoint."""
    with tf.get_default_graph().name_scope(None), tf.init_scope():
        return tf.Variable(first_value, trainable=False, name=name)
