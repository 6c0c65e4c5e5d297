"""Gradients of a class score with respect to a layer's feature maps, in the inference graph; each is built once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ziggurat.backends.tensorflow.export.class_scores import class_scores
from ziggurat.backends.tensorflow.export.map_layers import MapLayer, map_layers, usual_layer
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import UnknownNameError, UsageError

__all__ = ["ClassGradients"]


class ClassGradients:
    """Gradients by the layers of a tower; nothing is added to the graph before somebody asks.

    Args:
        layers: name → what it gives, in the order of the graph.
        outputs: name → tensor, as ``named_outputs`` gives them; only a classifier has ``probabilities``.
    """

    def __init__(self, layers: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        self._tensors = layers
        self._outputs = outputs
        self._built: dict[str, tuple[Any, Any]] = {}
        self._scores: Any = None
        self._class: Any = None

    @cached_property
    def layers(self) -> dict[str, MapLayer]:
        """Layers with maps, in the order of the graph; none where the network does not classify."""
        is_classifier = "probabilities" in self._outputs
        return map_layers(self._tensors, self._outputs["output"]) if is_classifier else {}

    @cached_property
    def usual(self) -> str:
        """The layer that is looked at unless another is asked for; empty where there is none."""
        return usual_layer(self.layers)

    def fetches(self, layer: str, class_number: int) -> tuple[tuple[Any, Any], dict[Any, int]]:
        """Return the tensors of maps and gradients, both (N, H, W, C) float32, and what must be fed for them.

        Raises:
            UnknownNameError: where no layer of that name has maps.
            UsageError: where no gradient comes back to it.
        """
        if layer not in self.layers:
            raise UnknownNameError("layer with maps", layer, self.layers)
        if layer not in self._built:
            with self.layers[layer].tensor.graph.as_default(), tf.name_scope("grad_cam/"):
                self._built[layer] = self._build(layer)
        return self._built[layer], {self._class: class_number}

    def _build(self, layer: str) -> tuple[Any, Any]:
        if self._scores is None:
            classes = int(self._outputs["probabilities"].shape[-1])
            self._scores = class_scores(self._outputs["output"], classes)
            self._class = tf.placeholder(tf.int32, (), name="class")
        found = self.layers[layer]
        try:
            # Samples do not touch each other here, so the gradient of the sum is that of each sample's own score.
            (gradient,) = tf.gradients(tf.reduce_sum(self._scores[:, self._class]), found.tensor)
        except LookupError as error:  # an operation that nobody has told how to be differentiated
            raise _no_gradient(layer, str(error)) from None
        if gradient is None:
            raise _no_gradient(layer, "none")
        return _channels_last(found.tensor, found), _channels_last(tf.convert_to_tensor(gradient), found)


def _channels_last(tensor: Any, layer: MapLayer) -> Any:
    numbers = tf.cast(tensor, tf.float32)
    return tf.transpose(numbers, (0, 2, 3, 1)) if layer.channels_first else numbers


def _no_gradient(layer: str, received: str) -> UsageError:
    return UsageError(
        f"Grad-CAM needs a gradient from the score of a class back to the layer `{layer}`.",
        received=received,
        advice="Choose a layer nearer to the end of the network.",
    )
