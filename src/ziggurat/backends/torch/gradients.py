"""Class scores of a classifier, and its layers with maps, as Grad-CAM needs them."""

from __future__ import annotations

from typing import Final

import torch

from ziggurat.backends.torch.recording import Operation, Recorder

__all__ = ["class_scores", "map_layers"]

_SAME: Final = frozenset({"contiguous", "clone", "flatten", "float", "reshape", "squeeze", "to", "type", "view"})
"""Operations that leave the numbers of a classifier as they are."""

_SHARES: Final = frozenset({"softmax", "sigmoid"})
_LOG_SHARES: Final = "log_softmax"
_MIXING: Final = frozenset({"add", "sub", "mul", "div", "mean", "sum", "cat", "concat", "stack", "chunk", "unbind"})
_LEAST: Final = 1e-30
"""No probability is less where its logarithm is taken."""

_CONVOLUTIONS: Final = frozenset({"conv2d", "conv_transpose2d"})
_RANK: Final = 4


def class_scores(recorder: Recorder, output: torch.Tensor) -> torch.Tensor:
    """Return (N, classes) float32: logits, or else the logarithms of probabilities.

    Args:
        recorder: of the run that gave the output; it kept its tensors.
        output: (N, classes). Ziggurat takes it for logits; a network that ends with a softmax or sigmoid gives what
            that is made of, and one that averages those of several heads gives probabilities.
    """
    place = recorder.maker(output)
    last = None if place is None else _before_same(recorder, place)
    if last is None:
        return output.float()
    operation = recorder.operations[last]
    if operation.kind in (*_SHARES, _LOG_SHARES) and operation.source is not None:
        return operation.source.reshape(output.shape).float()
    if _is_mixture_of_shares(recorder, last):
        return output.float().clamp(min=_LEAST).log()
    return output.float()


def map_layers(recorder: Recorder, output: torch.Tensor) -> tuple[list[str], str]:
    """Return the layers with maps, in the order of the network, and the usual one.

    The usual one is the last with maps as large as those of the last convolution: behind its activation, before it is
    pooled. It is empty where there is none.

    Args:
        recorder: of a run.
        output: what the layers must lead to.
    """
    end = recorder.maker(output)
    behind = set[int]() if end is None else recorder.behind(end)
    made = {place: _convolutions(recorder, place) for place in behind}
    found = {
        each.name: each.place
        for each in recorder.layers
        if each.place in behind and made[each.place] and _size(recorder.operations[each.place]) not in (None, (1, 1))
    }
    if not found:
        return [], ""
    last = list(found)[-1]
    convolutions = [each for each in made[found[last]] if _size(recorder.operations[each]) != (1, 1)]
    if not convolutions:
        return list(found), last
    size = _size(recorder.operations[convolutions[-1]])
    alike = [
        name
        for name, place in found.items()
        if _size(recorder.operations[place]) == size and convolutions[-1] in made[place]
    ]
    return list(found), alike[-1] if alike else last


def _before_same(recorder: Recorder, place: int) -> int:
    while recorder.operations[place].kind in _SAME and recorder.operations[place].inputs:
        place = recorder.operations[place].inputs[0]
    return place


def _is_mixture_of_shares(recorder: Recorder, place: int) -> bool:
    """Return whether an operation is made of softmaxes and numbers alone by sums, means and products."""
    waiting, shares, seen = [place], 0, set[int]()
    while waiting:
        each = _before_same(recorder, waiting.pop())
        if each in seen:
            continue
        seen.add(each)
        operation = recorder.operations[each]
        if operation.kind in _SHARES:
            shares += 1
        elif operation.kind in _MIXING and operation.inputs and not operation.weights:
            waiting.extend(operation.inputs)
        else:
            return False
    return shares > 0


def _convolutions(recorder: Recorder, place: int) -> list[int]:
    """Return the places of the convolutions that an operation is made of, in the order of the network."""
    return [each for each in sorted(recorder.behind(place)) if recorder.operations[each].kind in _CONVOLUTIONS]


def _size(operation: Operation) -> tuple[int, int] | None:
    """Return height and width of the maps that an operation gives; None where it gives none."""
    shape = operation.shape
    return (shape[2], shape[3]) if len(shape) == _RANK else None
