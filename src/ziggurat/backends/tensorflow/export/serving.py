"""Graph for export: the network for inference alone, with its preprocessing in the graph or in a separate file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ziggurat.backends.tensorflow.boxes import best_detections
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.towers import BuiltTower, TowerInput, build_tower
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.engine.detection_parity import DETECTIONS, DetectionRule
from ziggurat.errors import CheckpointError
from ziggurat.tasks.preprocessing import InputPreprocessing

__all__ = ["ServingModel", "give_weights", "named_outputs", "new_session", "serving_model"]


@dataclass(frozen=True, kw_only=True)
class ServingModel:
    """A network with its weights in a session, ready to be written in any format.

    Args:
        graph: nothing but inference.
        session: holds the weights.
        input: placeholder: where the preprocessing is inside, images (N, height, width, C) float32, RGB, 0 to 255, or
            encoded rows (N, F) float64; else what the network gets.
        outputs: name → tensor: ``output``, ``output_1``, …, and ``probabilities`` of a classifier; ``detections`` in
            the place of boxes and scores.
        variables: name → variable.
        inside: whether the preprocessing is part of the graph.
    """

    graph: Any
    session: Any
    input: Any
    outputs: dict[str, Any]
    variables: dict[str, Any]
    inside: bool

    def run(self, batch: np.ndarray) -> dict[str, np.ndarray]:
        """Return name → output for a batch of what ``input`` takes."""
        return self.session.run(self.outputs, {self.input: batch})


@contextmanager
def serving_model(
    shared: TowerInput,
    weights: Mapping[str, np.ndarray],
    preprocessing: InputPreprocessing,
    *,
    scores: bool,
    inside: bool = True,
    rule: DetectionRule | None = None,
) -> Iterator[ServingModel]:
    """Build the inference graph in a graph of its own and give it its weights.

    Args:
        shared: network, and the arrays of a batch.
        weights: name → array of a checkpoint; more names than the graph has do no harm.
        preprocessing: what the network was trained with.
        scores: whether the network's first output holds class scores.
        inside: whether the graph preprocesses by itself: it crops images, takes the mean off and whitens, or scales the
            numbers of rows. There is nothing to do for texts: their token numbers are the input.
        rule: of detections: their non-maximum suppression is in the graph, too, where the preprocessing is; None for
            outputs as the network gives them.

    Raises:
        CheckpointError: where a variable is not in ``weights`` or has another shape there.
    """
    graph = tf.Graph()
    with graph.as_default():
        decoded, x = _input(shared, preprocessing, inside=inside)
        tower = build_tower(shared, x, None, stage="inf")
        outputs = named_outputs(tower, shared.classes, scores=scores)
        if rule is not None and inside and rule.output in outputs:
            limits = {"least_score": rule.least_score, "iou": rule.iou, "most": rule.most}
            with tf.name_scope("postprocessing"):
                detections = best_detections(outputs.pop(rule.output), **limits)
            outputs = {DETECTIONS: tf.identity(detections, DETECTIONS), **outputs}
        variables = {variable.op.name: variable for variable in tf.global_variables()}
        session = new_session(graph)
    try:
        give_weights(session, variables, weights)
        yield ServingModel(
            graph=graph, session=session, input=decoded, outputs=outputs, variables=variables, inside=inside
        )
    finally:
        session.close()


def _input(shared: TowerInput, preprocessing: InputPreprocessing, *, inside: bool) -> tuple[Any, Any]:
    """Return the placeholder of the model, and what the network gets of it."""
    if inside and isinstance(preprocessing, Preprocessing):
        images = shared.input_shape[-1] // preprocessing.channels
        shape = (None, *preprocessing.size, preprocessing.channels * images)
        decoded = tf.placeholder(tf.float32, shape, name="input")
        if images == 1:
            return decoded, _finished(decoded, preprocessing)
        parts = [_finished(part, preprocessing) for part in tf.split(decoded, images, axis=3)]
        return decoded, tf.concat(parts, axis=3)
    if inside and isinstance(preprocessing, TablePreprocessing):
        decoded = tf.placeholder(tf.float64, (None, *preprocessing.shape), name="input")
        return decoded, _scaled(decoded, preprocessing)
    decoded = tf.placeholder(tf.as_dtype(shared.input.dtype), (None, *shared.input_shape), name="input")
    return decoded, decoded


def _scaled(rows: Any, preprocessing: TablePreprocessing) -> Any:
    """Return what ``TablePreprocessing.finish`` returns, in float64, which has the digits for seconds of years."""
    count = len(preprocessing.offset)
    with tf.name_scope("preprocessing"):
        measured = rows[:, :count] - tf.constant(preprocessing.offset, tf.float64, name="offset")
        matrix = tf.constant(preprocessing.matrix, tf.float64, name="matrix")
        measured = tf.matmul(measured, matrix) if preprocessing.matrix.ndim == 2 else measured * matrix
        return tf.cast(tf.concat([measured, rows[:, count:]], axis=1), tf.float32)


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
            f"The checkpoint is of another network: {'; '.join(problems[:10])}.",
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
