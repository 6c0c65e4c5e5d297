"""Non-maximum suppression of a network in ONNX: the operator ``NonMaxSuppression`` in place of many small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import library

from ziggurat.backends.torch.standalone_boxes import first_kept

__all__ = ["kept_by_operator", "onnx_translations"]


@library.custom_op("ziggurat::first_kept", mutates_args=())
def kept_by_operator(
    boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor, count: int, iou: float, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what ``first_kept`` returns: one operation of an exported program, for ONNX to translate."""
    return first_kept(boxes, scores, classes, count, iou, most)


@kept_by_operator.register_fake
def _(
    boxes: torch.Tensor, scores: torch.Tensor, classes: torch.Tensor, count: int, iou: float, most: int
) -> tuple[torch.Tensor, torch.Tensor]:
    shape = (boxes.shape[0], most)
    return boxes.new_empty(shape, dtype=torch.int64), boxes.new_empty(shape, dtype=torch.bool)


def onnx_translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Return operation of PyTorch → function that writes it in ONNX, opset 18.

    Raises:
        ImportError: where onnxscript is not installed.
    """
    from onnxscript import opset18

    op: Any = opset18

    def sort(x: Any, stable: bool = True, dim: int = -1, descending: bool = False) -> Any:
        # Of equal values, TopK takes the first one first: it is stable.
        return op.TopK(x, op.Shape(x, start=dim, end=dim + 1 or None), axis=dim, largest=int(descending), sorted=1)

    def kept(boxes: Any, scores: Any, classes: Any, count: int, iou: float, most: int) -> Any:
        one = op.Constant(value_ints=[1])
        numbers = op.Unsqueeze(op.Constant(value_floats=[float(number) for number in range(count)]), one)
        is_own = op.Equal(op.Unsqueeze(classes, one), numbers)  # (N, classes, K)
        own = op.Where(is_own, op.Unsqueeze(scores, one), op.Constant(value_float=0.0))
        limits = op.Constant(value_ints=[most]), op.Constant(value_floats=[iou]), op.Constant(value_floats=[0.0])
        chosen = op.NonMaxSuppression(boxes, own, *limits)  # rows of image, class, place
        places = op.Gather(chosen, op.Constant(value_ints=[0, 2]), axis=1)
        ones = op.Expand(op.Constant(value_float=1.0), op.Shape(places, end=1))
        is_kept = op.ScatterND(op.Mul(scores, op.Constant(value_float=0.0)), places, ones)
        values, best = op.TopK(op.Mul(scores, is_kept), op.Constant(value_ints=[most]), axis=1)
        return best, op.Greater(values, op.Constant(value_float=0.0))

    return {torch.ops.aten.sort.stable: sort, torch.ops.ziggurat.first_kept.default: kept}
