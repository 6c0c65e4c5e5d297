"""Head of a network as one fully connected layer: its input, and the variables of its weights and bias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import BuiltTower, names_behind
from ziggurat.engine.fine_tuning import FineTuningRequest, head_of, no_linear_head

__all__ = ["head_input", "head_variables"]

_READS: Final = frozenset({"Cast", "Identity", "ReadVariableOp"})
_VARIABLES: Final = frozenset({"VarHandleOp", "VariableV2"})
_SUMS: Final = frozenset({"Add", "AddV2", "BiasAdd"})


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
