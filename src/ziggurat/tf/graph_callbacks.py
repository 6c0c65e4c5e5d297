"""Callbacks over operations of the graph."""

from __future__ import annotations

from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf.callback import Callback

__all__ = ["RunUpdateOps"]


class RunUpdateOps(Callback):
    """Runs the operations of a collection with every step: the updates of batch normalization.

    Args:
        collection: the collection; ``UPDATE_OPS`` where it is None.
    """

    def __init__(self, collection: str | None = None) -> None:
        self.collection = collection or tf.GraphKeys.UPDATE_OPS

    def setup_graph(self) -> None:
        """Let the program run them."""
        operations: list[Any] = self.graph.get_collection(self.collection)
        if operations:
            with self.graph.as_default():
                self.trainer.program.run_with_step(tf.group(*operations, name="ziggurat/update_ops"))
