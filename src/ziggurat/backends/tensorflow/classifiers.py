"""Decision whether the first output of a network holds class scores, by what its loss and metrics make of it."""

from __future__ import annotations

from typing import Any, Final

from ziggurat.backends.tensorflow.ancestry import names_behind
from ziggurat.backends.tensorflow.towers import BuiltTower

__all__ = ["gives_class_scores"]

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
