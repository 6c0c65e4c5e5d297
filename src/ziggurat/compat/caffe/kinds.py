"""Kind of layer of another tool that Caffe has not: all that an import does with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ziggurat.compat.caffe.geometry import Shape
    from ziggurat.compat.caffe.graph import Graph, Node
    from ziggurat.compat.caffe.layers import Layer

__all__ = ["LayerKind", "no_arrays", "no_module"]


def no_arrays(_layer: Layer, _inputs: Sequence[Shape]) -> list[Shape]:
    """Return the arrays of a layer without weights."""
    return []


def no_module(_graph: Graph, _node: Node) -> str:
    """Return the module of a layer that needs none."""
    return ""


@dataclass(frozen=True, kw_only=True)
class LayerKind:
    """What is known of a kind of layer.

    Args:
        shapes: takes layer and shapes of its inputs, without the batch; returns those of its outputs.
        forward: takes layer, inputs and arrays; returns the outputs, in NumPy.
        line: takes graph, node, module and names of the inputs; returns the expression of ``forward`` in PyTorch.
        module: takes graph and node; returns what makes the module, empty for none.
        arrays: takes layer and shapes of its inputs; returns the shapes of its arrays.
        trained: names of its trained arrays.
        state: names of all of its arrays, the trained ones first.
    """

    shapes: Callable[[Layer, list[Shape]], list[Shape]]
    forward: Callable[[Layer, list[np.ndarray], Sequence[np.ndarray]], list[np.ndarray]]
    line: Callable[[Graph, Node, str, Sequence[str]], str]
    module: Callable[[Graph, Node], str] = no_module
    arrays: Callable[[Layer, Sequence[Shape]], list[Shape]] = no_arrays
    trained: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
