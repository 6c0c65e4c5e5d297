"""Trained network without its training: validation and inference in a session, with a checkpoint's weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.backend import session_config
from ziggurat.backends.tensorflow.classifiers import gives_class_scores
from ziggurat.backends.tensorflow.digits import CLASS_WEIGHTS
from ziggurat.backends.tensorflow.export.class_gradients import ClassGradients
from ziggurat.backends.tensorflow.export.layers import layers_behind
from ziggurat.backends.tensorflow.export.serving import give_weights, named_outputs
from ziggurat.backends.tensorflow.failures import explained
from ziggurat.backends.tensorflow.network_file import load_network
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import TowerInput, build_tower
from ziggurat.engine.backend import ArraySpec, ProgramRequest, single_arrays
from ziggurat.zoo import network_path

__all__ = ["TrainedTower", "tower_input"]


class TrainedTower:
    """Evaluates and predicts; holds no optimizer, and gradients only once somebody asks for them.

    Args:
        request: the network, its input shape, classes and class weights; whether it started from a pretrained model.
        arrays: name → array of a checkpoint.

    Attributes:
        gives_class_scores: whether the first output holds class scores.

    Raises:
        CheckpointError: where the arrays are of another network.
        NetworkCodeError: where the user's network fails.
    """

    def __init__(self, request: ProgramRequest, arrays: Mapping[str, np.ndarray]) -> None:
        self._path = request.network
        graph = tf.Graph()
        with graph.as_default():
            tf.set_random_seed(request.seed)
            if request.class_weights:
                graph.add_to_collection(CLASS_WEIGHTS, tf.constant(request.class_weights, tf.float32))
            shared = tower_input(request)
            x, y = single_arrays(request)
            self._x = tf.placeholder(tf.float32, (None, *x.shape), name="x")
            self._y = _labels(y)
            validation = build_tower(shared, self._x, self._y, stage="val")
            inference = build_tower(shared, self._x, None, stage="inf")
            self._layers = layers_behind(inference.outputs, "inf/model/")
            self.gives_class_scores = y is not None and y.is_class_number and gives_class_scores(validation)
            self._outputs = named_outputs(inference, shared.classes, scores=self.gives_class_scores)
            self._gradients = ClassGradients(self._layers, self._outputs)
            cost = tf.add_n([loss.value for loss in validation.losses])
            outputs = named_outputs(validation, shared.classes, scores=self.gives_class_scores)
            self._values = {**outputs, **validation.scalars, "cost": cost}
            variables = {variable.op.name: variable for variable in tf.global_variables()}
        self._session = tf.Session(graph=graph, config=session_config(request))
        give_weights(self._session, variables, arrays)

    def evaluate(self, x: np.ndarray, y: np.ndarray) -> Mapping[str, Any]:
        """Return cost, the user's scalars, and the outputs of the validation tower."""
        feeds = {self._x: x} if self._y is None else {self._x: x, self._y: y}
        return self._run(self._values, feeds)

    def predict(self, x: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return the outputs of the inference tower."""
        return self._run(self._outputs, {self._x: x})

    def layer_outputs(self, x: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return what each layer of the inference tower gives, in the order of the graph; the outputs come last."""
        return self._run({**self._layers, **self._outputs}, {self._x: x})

    def map_layers(self) -> tuple[list[str], str]:
        """Return the layers with maps in the order of the graph, and the usual one; empty where there is none."""
        return list(self._gradients.layers), self._gradients.usual

    def maps_and_gradients(self, x: np.ndarray, layer: str, class_number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a layer's maps and the gradients of the score of a class by them, both (N, H, W, C) float32."""
        (maps, gradients), chosen = self._gradients.fetches(layer, class_number)
        found = self._run({"maps": maps, "gradients": gradients}, {self._x: x, **chosen})
        return found["maps"], found["gradients"]

    def close(self) -> None:
        """Close the session; closing twice does nothing."""
        self._session.close()

    def _run(self, fetches: Mapping[str, Any], feeds: Mapping[Any, Any]) -> Mapping[str, Any]:
        try:
            return self._session.run(fetches, feeds)
        except tf.errors.OpError as error:
            raise explained(error, self._path) from error


def tower_input(request: ProgramRequest) -> TowerInput:
    """Return what the towers of a request share: its network, executed.

    Raises:
        UnknownNameError: where it names no standard network.
        NetworkCodeError: where the network file fails.
    """
    text, path = request.network_text, request.network
    if text is None:
        file = network_path(request.network, "tensorflow")
        text, path = file.read_text(encoding="utf-8"), str(file)
    network = load_network(text, path)
    x, y = single_arrays(request)
    return TowerInput(network, path, x.shape, None if y is None else y.classes, request.pretrained is not None)


def _labels(target: ArraySpec | None) -> Any:
    if target is None:
        return None
    if target.is_class_number:
        return tf.placeholder(tf.int64, (None,), name="y")
    return tf.placeholder(tf.float32, (None, *target.shape), name="y")
