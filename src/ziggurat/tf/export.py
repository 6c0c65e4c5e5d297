"""Export of a tower that predicts, for other programs: one frozen graph, or a SavedModel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.atomic import replaced_file
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError, TrainingError
from ziggurat.tf import logger
from ziggurat.tf.offline_predictors import OfflinePredictor
from ziggurat.tf.predict_config import PredictConfig

__all__ = ["ModelExporter"]


class ModelExporter:
    """Writes the tower of a configuration, with its weights.

    Args:
        config: what predicts.
        check_inputs: one array an input; what was written is loaded again, and must predict the same for them. None for
            no check.
    """

    def __init__(self, config: PredictConfig, check_inputs: Sequence[Any] | None = None) -> None:
        self.config = config
        self._check_inputs = check_inputs

    def export_compact(self, filename: str, optimize: bool = True, toco_compatible: bool = False) -> None:
        """Write one ``GraphDef`` with the weights as constants.

        Args:
            filename: the file, usually ``.pb``.
            optimize: leave out what only a training needs.
            toco_compatible: nothing is written that TensorFlow Lite could not convert, whatever it says here.

        Raises:
            TrainingError: where what was written does not predict the same.
            StorageError: where the disk is full.
        """
        with _predictor(self.config) as predictor:
            expected = self._expected(predictor)
            names = [tensor.op.name for tensor in predictor.output_tensors]
            with predictor.graph.as_default():
                frozen = tf.graph_util.convert_variables_to_constants(
                    predictor.sess, predictor.graph.as_graph_def(), names
                )
            if optimize:
                fed = [tensor.op.name for tensor in predictor.input_tensors]
                frozen = tf.graph_util.remove_training_nodes(frozen, protected_nodes=[*names, *fed])
            path = Path(filename)
            path.absolute().parent.mkdir(parents=True, exist_ok=True)
            with replaced_file(path, "A graph", durable=False, advice="Free space on the disk.") as temporary:
                temporary.write_bytes(frozen.SerializeToString())
            if self._check_inputs is not None:
                _check(predictor, expected, _run_frozen(path, predictor, self._check_inputs), filename)
        logger.info("The graph is written to %s.", filename)

    def export_serving(
        self, filename: str, tags: Sequence[str] | None = None, signature_name: str = "prediction_pipeline"
    ) -> None:
        """Write a SavedModel; its inputs and outputs have the names of their tensors.

        Args:
            filename: a folder that is not there yet.
            tags: of the graph; ``serve`` where it is None.
            signature_name: name of the signature.

        Raises:
            ConfigurationError: where the folder is in use.
            TrainingError: where what was written does not predict the same.
        """
        if Path(filename).exists() and (not Path(filename).is_dir() or any(Path(filename).iterdir())):
            raise ConfigurationError(
                "A SavedModel is written to a folder that is not there yet.",
                received=filename,
                advice="Give another folder, such as one with a higher version number.",
            )
        wanted = [tf.saved_model.SERVING] if tags is None else list(tags)
        info = tf.saved_model.build_tensor_info
        with _predictor(self.config) as predictor, predictor.graph.as_default():
            expected = self._expected(predictor)
            signature = tf.saved_model.build_signature_def(
                inputs={tensor.name: info(tensor) for tensor in predictor.input_tensors},
                outputs={tensor.name: info(tensor) for tensor in predictor.output_tensors},
                method_name=tf.saved_model.PREDICT_METHOD_NAME,
            )
            builder = tf.saved_model.Builder(filename)
            builder.add_meta_graph_and_variables(
                predictor.sess, wanted, signature_def_map={signature_name: signature}, clear_devices=True
            )
            builder.save()
            if self._check_inputs is not None:
                found = _run_saved(filename, wanted, signature_name, self._check_inputs, predictor)
                _check(predictor, expected, found, filename)
        logger.info("The SavedModel is written to %s.", filename)

    def _expected(self, predictor: OfflinePredictor) -> list[np.ndarray]:
        """Return what the origin predicts for the inputs of the check, before anything is written."""
        return [] if self._check_inputs is None else predictor._do_call(self._check_inputs)


class _predictor:  # noqa: N801 - a context
    """An ``OfflinePredictor`` in a graph that stays open, closed at the end."""

    def __init__(self, config: PredictConfig) -> None:
        self._made = OfflinePredictor(config)

    def __enter__(self) -> OfflinePredictor:
        return self._made

    def __exit__(self, *_: object) -> None:
        self._made.close()


def _check(
    predictor: OfflinePredictor, expected: Sequence[np.ndarray], found: Sequence[np.ndarray], filename: str
) -> None:
    for tensor, one, other in zip(predictor.output_tensors, expected, found, strict=True):
        if not np.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True):
            raise TrainingError(
                "What is exported predicts the same as its origin.",
                received=f"`{tensor.op.name}` of {filename} differs",
                advice="Random operations in prediction, or a layer that trains there, are the usual reasons.",
            )


def _run_frozen(path: Path, predictor: OfflinePredictor, inputs: Sequence[Any]) -> list[np.ndarray]:
    with tf.Graph().as_default():
        tf.import_graph_def(tf.GraphDef.FromString(path.read_bytes()), name="")
        with tf.Session() as session:
            feeds = {
                tensor.name: np.asarray(each) for tensor, each in zip(predictor.input_tensors, inputs, strict=True)
            }
            return session.run([tensor.name for tensor in predictor.output_tensors], feeds)


def _run_saved(
    folder: str, tags: Sequence[str], signature_name: str, inputs: Sequence[Any], predictor: OfflinePredictor
) -> list[np.ndarray]:
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, list(tags), folder).signature_def[signature_name]
        fed = [signature.inputs[tensor.name].name for tensor in predictor.input_tensors]
        fetched = [signature.outputs[tensor.name].name for tensor in predictor.output_tensors]
        return session.run(fetched, dict(zip(fed, map(np.asarray, inputs), strict=True)))
