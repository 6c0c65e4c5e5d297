"""Models of a training: inputs, tower function and optimizer in one class, in Tensorpack's two forms."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError, StateError
from ziggurat.tf.tower import get_current_tower_context

__all__ = ["InputDesc", "ModelDesc", "ModelDescBase"]


class InputDesc:
    """Older form of ``tf.TensorSpec``; ``InputDesc(type, shape, name)`` returns one.

    Args:
        type: a TensorFlow dtype.
        shape: sizes, None for what is open.
        name: of the input.
    """

    def __new__(cls, type: Any, shape: Sequence[int | None], name: str) -> Any:  # noqa: A002
        """Return a ``tf.TensorSpec``."""
        return tf.TensorSpec(tuple(shape), tf.as_dtype(type), name)


class ModelDescBase:
    """Base of models: what is fed, and the tower function.

    A subclass defines ``inputs`` and ``build_graph(self, *inputs)``; or, as in Tensorpack before 0.9, ``_get_inputs``
    and ``_build_graph(self, inputs)``.
    """

    _signature: list[Any] | None = None

    def inputs(self) -> Sequence[Any]:
        """Return a ``tf.TensorSpec`` or a placeholder for each input."""
        old = getattr(self, "_get_inputs", None)
        if old is None:
            raise _missing(self, "inputs")
        _say_old(self, "_get_inputs", "inputs")
        return old()

    def build_graph(self, *args: Any) -> Any:
        """Build one tower; return the cost where it is trained.

        Args:
            args: one tensor an input.
        """
        old = getattr(self, "_build_graph", None)
        if old is None:
            raise _missing(self, "build_graph")
        _say_old(self, "_build_graph", "build_graph")
        return old(list(args))

    def get_input_signature(self) -> list[Any]:
        """Return the ``tf.TensorSpec`` of each input."""
        if self._signature is None:
            self._signature = [_spec(each) for each in self.inputs()]
        return self._signature

    def get_inputs_desc(self) -> list[Any]:
        """Older name of ``get_input_signature``."""
        return self.get_input_signature()

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return [spec.name for spec in self.get_input_signature()]

    @property
    def training(self) -> bool:
        """Whether the tower that is being built is trained; a model may set an attribute of its own in its place."""
        if "training" in vars(self):
            return vars(self)["training"]
        context = get_current_tower_context()
        if context is None:
            raise StateError(
                "`training` was used outside of `build_graph`, and it belongs to a tower.",
                advice="Read it while the tower function runs.",
            )
        return context.is_training

    @training.setter
    def training(self, value: bool) -> None:
        vars(self)["training"] = value


class ModelDesc(ModelDescBase):
    """A model with one cost and one optimizer.

    A subclass defines ``inputs``, ``build_graph(self, *inputs)`` that returns the cost, and ``optimizer``; or, as
    before 0.9, ``_get_inputs``, ``_build_graph(self, inputs)`` that sets ``self.cost``, and ``_get_optimizer``.
    """

    cost: Any = None
    """The cost, of the older form."""

    _optimizer: Any = None
    _optimizer_graph: Any = None

    def optimizer(self) -> Any:
        """Return a ``tf.train.Optimizer``."""
        old = getattr(self, "_get_optimizer", None)
        if old is None:
            raise _missing(self, "optimizer")
        _say_old(self, "_get_optimizer", "optimizer")
        return old()

    def get_optimizer(self) -> Any:
        """Return the optimizer of the current graph: the same one with each call."""
        graph = tf.get_default_graph()
        if self._optimizer is None or self._optimizer_graph is not graph:
            found = self.optimizer()
            if not isinstance(found, tf.train.Optimizer):
                raise ConfigurationError(
                    f"`optimizer` returned a {type(found).__module__}.{type(found).__name__}, not a "
                    "`tf.train.Optimizer`.",
                    advice="Use `tf.compat.v1.train`: Keras optimizers do not train graphs.",
                )
            self._optimizer, self._optimizer_graph = found, graph
        return self._optimizer

    def get_cost(self) -> Any:
        """Return ``self.cost`` with the regularization losses of the tower, as the older form has it."""
        cost = self._get_cost()
        losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
        context = get_current_tower_context()
        if context is None or not context.is_training or not losses:
            return cost
        if context.has_own_variables and context.vs_name:
            losses = context.get_collection_in_tower(tf.GraphKeys.REGULARIZATION_LOSSES)
        return tf.add_n([cost, *losses], name="cost_with_regularizer")

    def build_graph_get_cost(self, *args: Any) -> Any:
        """Build one tower and return its cost: the tower function of trainers."""
        self.cost = None
        found = self.build_graph(*args)
        if found is None and self.cost is not None:
            found = self.get_cost()
        if found is None and self.training:
            raise ConfigurationError(
                "`build_graph` returns the cost of a tower that is trained.",
                received="None",
                advice="Return it; the older form sets `self.cost`.",
            )
        return found

    def _get_cost(self) -> Any:
        return self.cost


def _spec(item: Any) -> Any:
    if isinstance(item, tf.TensorSpec):
        return item
    if isinstance(item, tf.Tensor):
        return tf.TensorSpec(item.shape, item.dtype, item.op.name)
    raise ConfigurationError(
        f"An input is described by a {type(item).__name__}, not by a `tf.TensorSpec` or a placeholder.",
        advice="Write `tf.TensorSpec((None, 28, 28), tf.float32, 'image')`.",
    )


def _missing(model: Any, name: str) -> ConfigurationError:
    return ConfigurationError(
        f"{type(model).__name__} has no `{name}`, which a model defines.", advice=f"Define `{name}` in the class."
    )


def _say_old(model: Any, old: str, new: str) -> None:
    warnings.warn(f"{type(model).__name__}.{old} is an older name: call it `{new}`.", DeprecationWarning, stacklevel=4)
