"""Head of a network as one fully connected layer: its input, and the variables of its weights and bias."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.calls import explained
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import BuiltTower, inference_feeds, names_behind
from ziggurat.engine.fine_tuning import FineTuningRequest, head_of, no_linear_head

__all__ = ["LinearHeadProgram", "head_input", "head_variables"]

_READS: Final = frozenset({"Cast", "Identity", "ReadVariableOp"})
_VARIABLES: Final = frozenset({"VarHandleOp", "VariableV2"})
_SUMS: Final = frozenset({"Add", "AddV2", "BiasAdd"})


class LinearHeadProgram(ABC):
    """Base of programs whose head can be fitted.

    Args:
        path: of the network file, for errors.
        fine_tuning: names the head; None for the last layer with weights.
    """

    def __init__(self, path: str, fine_tuning: FineTuningRequest | None) -> None:
        self._path = path
        self._fine_tuning = fine_tuning

    @property
    @abstractmethod
    def _inference(self) -> BuiltTower:
        """Tower for inference."""

    @property
    @abstractmethod
    def session(self) -> Any:
        """The session."""

    @abstractmethod
    def assign(self, values: Mapping[str, np.ndarray]) -> None:
        """Give some variables other values."""

    @abstractmethod
    def start_averages(self) -> None:
        """Begin to average at the weights as they are now."""

    @abstractmethod
    def _use_averages(self, wanted: bool) -> None:
        """Let the network compute with the averaged weights, or with those that are trained."""

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return the inputs of the head of samples ``x: (N, …)``, (N, D) float32, computed as in inference.

        Raises:
            ConfigurationError: if the head is not one product of a vector for each sample.
        """
        fetched = head_input(self._inference, self._fine_tuning)
        self._use_averages(True)
        try:
            return np.asarray(self.session.run(fetched, inference_feeds(self._inference, x, {})), np.float32)
        except tf.errors.OpError as error:
            raise explained(error, self._path, self._inference.outputs[0].graph) from error

    def head_names(self) -> tuple[str, str]:
        """Return the names of weights and bias of the head in ``state()``.

        Raises:
            ConfigurationError: if the output of the network is not that of one fully connected layer with a bias.
        """
        return head_variables(self._inference, self._fine_tuning)

    def set_head(self, weights: np.ndarray, bias: np.ndarray) -> None:
        """Replace the weights of the head by those of a linear classifier, (D, K) and (K,).

        Raises:
            ConfigurationError: if the output of the network is not that of one fully connected layer with a bias.
        """
        self.assign(dict(zip(self.head_names(), (weights, bias), strict=True)))
        self.start_averages()


def head_input(tower: BuiltTower, request: FineTuningRequest | None) -> Any:
    """Return the tensor that goes into the product of the head of a tower, (N, D).

    Args:
        tower: for inference.
        request: of its fine-tuning, which names the head; None for the last layer with weights.

    Raises:
        ConfigurationError: if the head is not one product of a vector for each sample.
    """
    return _product(tower, request).inputs[0]


def head_variables(tower: BuiltTower, request: FineTuningRequest | None) -> tuple[str, str]:
    """Return the names of the variables of weights and bias of the head.

    Args:
        tower: for inference.
        request: of its fine-tuning, which names the head; None for the last layer with weights.

    Raises:
        ConfigurationError: if the output of the network is not that of one fully connected layer with a bias.
    """
    product = _product(tower, request)
    output = tower.outputs[0]
    while output.op.type == "Identity":
        output = output.op.inputs[0]
    terms: Sequence[Any] = output.op.inputs if output.op.type in _SUMS and len(tower.outputs) == 1 else ()
    biases = [each for each in terms if each.op.name != product.name]
    bias = _variable(biases[0]) if len(biases) == 1 and len(terms) == 2 else ""
    if not bias:
        raise no_linear_head(f"outputs by {output.op.type}, not by a product and a bias alone")
    return _variable(product.inputs[1]), bias


def _product(tower: BuiltTower, request: FineTuningRequest | None) -> Any:
    """Return the operation that multiplies features by the weights of the head."""
    output = tower.outputs[0]
    shapes = {each.op.name: tuple(each.shape.as_list()) for each in _trained(output.graph)}
    names = head_of(shapes, "" if request is None else request.head)
    behind = names_behind(tower.outputs)
    products = [
        each
        for each in output.graph.get_operations()
        if each.type == "MatMul" and each.name in behind and _variable(each.inputs[1]) in names
    ]
    if len(products) != 1 or any(products[0].get_attr(f"transpose_{side}") for side in "ab"):
        raise no_linear_head(f"{len(products)} products by {', '.join(names) or 'no weights'}")
    shape = products[0].inputs[0].shape.as_list()
    if shape[0] is not None:
        raise no_linear_head(f"an input of shape {shape}")
    return products[0]


def _trained(graph: Any) -> Sequence[Any]:
    return graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)


def _variable(tensor: Any) -> str:
    """Return the name of the variable that a tensor is the value of; empty for any other."""
    while tensor.op.type in _READS:
        tensor = tensor.op.inputs[0]
    return tensor.op.name if tensor.op.type in _VARIABLES else ""
