"""Graph for export: the network for inference alone, with its preprocessing in the graph or in a separate file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import BuiltTower, TowerInput, build_tower
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.errors import CheckpointError

__all__ = ["ServingModel", "give_weights", "named_outputs", "new_session", "serving_model"]


@dataclass(frozen=True, kw_only=True)
class ServingModel:
    """A network with its weights in a session, ready to be written in any format.

    Args:
        graph: nothing but inference.
        session: holds the weights.
        input: placeholder: images (N, height, width, C) float32, RGB, 0 to 255, where the preprocessing is inside;
            else what ``Preprocessing.finish`` returns.
        outputs: name → tensor: ``output``, ``output_1``, …, and ``probabilities`` of a classifier.
        variables: name → variable.
        inside: whether crop, mean and whitening are part of the graph.
    """

    graph: Any
    session: Any
    input: Any
    outputs: dict[str, Any]
    variables: dict[str, Any]
    inside: bool

    def run(self, pictures: np.ndarray) -> dict[str, np.ndarray]:
        """Return name → output for a batch of what ``input`` takes."""
        return self.session.run(self.outputs, {self.input: pictures})


@contextmanager
def serving_model(
    shared: TowerInput,
    weights: Mapping[str, np.ndarray],
    preprocessing: Preprocessing,
    *,
    scores: bool,
    inside: bool = True,
) -> Iterator[ServingModel]:
    """Build the inference graph in a graph of its own and give it its weights.

    Args:
        shared: network, and the arrays of a batch.
        weights: name → array of a checkpoint; more names than the graph has do no harm.
        preprocessing: what the network was trained with.
        scores: whether the network's first output holds class scores.
        inside: whether the graph crops, takes the mean off and whitens by itself.

    Raises:
        CheckpointError: where a variable is not in ``weights`` or has another shape there.
    """
    graph = tf.Graph()
    with graph.as_default():
        shape = (None, *preprocessing.size, preprocessing.channels) if inside else (None, *shared.input_shape)
        dtype = tf.float32 if inside else tf.as_dtype(shared.input.dtype)
        pictures = tf.placeholder(dtype, shape, name="input")
        x = _finished(pictures, preprocessing) if inside else pictures
        tower = build_tower(shared, x, None, stage="inf")
        outputs = named_outputs(tower, shared.classes, scores=scores)
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        session = new_session(graph)
    try:
        give_weights(session, variables, weights)
        yield ServingModel(
            graph=graph, session=session, input=pictures, outputs=outputs, variables=variables, inside=inside
        )
    finally:
        session.close()


def _finished(pictures: Any, preprocessing: Preprocessing) -> Any:
    """Return what ``Preprocessing.finish`` returns, as a part of the graph."""
    height, width, _ = preprocessing.output_shape
    top, left = (preprocessing.size[0] - height) // 2, (preprocessing.size[1] - width) // 2
    with tf.name_scope("preprocessing"):
        x = pictures
        if preprocessing.mean_values is not None:
            x -= tf.constant(preprocessing.mean_values, tf.float32, name="mean")
        if (height, width) != preprocessing.size:
            x = x[:, top : top + height, left : left + width, :]
        if preprocessing.whitening:
            level, variance = tf.nn.moments(x, axes=[1, 2, 3], keep_dims=True)
            least = 1 / np.sqrt(height * width * preprocessing.channels)
            x = (x - level) / tf.maximum(tf.sqrt(variance), least)
        return x


def new_session(graph: Any) -> Any:
    """Return a session that takes a GPU's memory as it needs it: a training may be at work there."""
    config = tf.ConfigProto()
    config.gpu_options.allow_growth = True
    return tf.Session(graph=graph, config=config)


def named_outputs(tower: BuiltTower, classes: int | None, *, scores: bool) -> dict[str, Any]:
    """Return name → tensor of a tower: ``output``, ``output_1``, …, and ``probabilities`` of a classifier.

    Args:
        tower: of any stage.
        classes: of the data; None where it has none.
        scores: whether the first output holds class scores. A network is a classifier where they are one a class.
    """
    outputs = {}
    for number, tensor in enumerate(tower.outputs):
        name = f"output_{number}" if number else "output"
        outputs[name] = tf.identity(tensor, name)
    logits = outputs["output"]
    if scores and classes is not None and logits.shape[-1] == classes:
        outputs["probabilities"] = tf.nn.softmax(logits, name="probabilities")
    return outputs


def give_weights(session: Any, variables: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> None:
    """Give the variables of a session the values of a checkpoint.

    Args:
        session: whose they are.
        variables: name → variable.
        weights: name → array; more names than there are variables do no harm.

    Raises:
        CheckpointError: where a variable is not in ``weights`` or has another shape there.
    """
    problems = [f"{name} is missing" for name in variables if name not in weights]
    problems += [
        f"{name} has shape {weights[name].shape} instead of {tuple(variable.shape.as_list())}"
        for name, variable in variables.items()
        if name in weights and weights[name].shape != tuple(variable.shape.as_list())
    ]
    if problems:
        raise CheckpointError(
            "A checkpoint is opened by the network that it was saved from.",
            received="; ".join(problems[:10]),
            advice="Give the network file that the job was trained with.",
            details={"problems": problems},
        )
    feeds, initializers = {}, []
    for name, variable in variables.items():
        start = variable.initializer.inputs[1]
        if start in feeds:  # two variables that begin with the same tensor
            variable.load(weights[name], session)
            continue
        feeds[start] = weights[name]
        initializers.append(variable.initializer)
    session.run(initializers, feeds)  # one call: a call for each would prepare the graph each time
