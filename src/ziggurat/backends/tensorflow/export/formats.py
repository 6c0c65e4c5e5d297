"""Export formats: how each is written and run again."""

from __future__ import annotations

import importlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.export.serving import ServingModel, new_session
from ziggurat.backends.tensorflow.runtime import native_log_held_to, tf, tf2
from ziggurat.engine.detection_parity import DETECTIONS
from ziggurat.errors import MissingDependencyError, UnknownNameError

__all__ = [
    "FORMATS",
    "ExportFormat",
    "Runner",
    "format_named",
]

Runner = Callable[[np.ndarray], dict[str, np.ndarray]]
"""Takes a batch of inputs, returns name → output."""


class ExportFormat(ABC):
    """One format."""

    name: str
    """Name under which it is asked for."""

    title: str
    """Name for people."""

    packages: tuple[str, ...] = ("tensorflow",)
    """What runs a model of this format, by the names under which it is installed."""

    has_float64: bool = True
    """Whether a model may calculate in float64."""

    @abstractmethod
    def write(self, model: ServingModel, folder: Path) -> Path:
        """Write the model into a folder; return the file or folder to load."""

    @abstractmethod
    def runner(self, path: Path) -> Runner:
        """Load what was written, by the format's own runtime alone, and return what runs it."""


class CheckpointFormat(ExportFormat):
    """TensorFlow's checkpoint with its metagraph: ``model.ckpt.*`` and ``checkpoint``."""

    name = "checkpoint"
    title = "TensorFlow checkpoint"

    def write(self, model: ServingModel, folder: Path) -> Path:
        """Write ``model.ckpt.meta``, ``.index`` and ``.data-*``, which ``tf.train.latest_checkpoint`` finds."""
        with model.graph.as_default():
            for key, tensor in {"input": model.input, **model.outputs}.items():
                tf.add_to_collection(f"ziggurat/{key}", tensor)
            # Relative: the folder is moved to its place when everything in it is written.
            saver = tf.train.Saver(model.variables, save_relative_paths=True)
            saver.save(model.session, str(folder / "model.ckpt"), write_state=True)
        return folder / "model.ckpt"

    def runner(self, path: Path) -> Runner:
        """Restore the metagraph and the variables into a session of their own."""
        graph = tf.Graph()
        with graph.as_default():
            saver = tf.train.import_meta_graph(f"{path}.meta", clear_devices=True)
        session = new_session(graph)
        saver.restore(session, str(path))
        return _session_runner(session)


class FrozenGraphFormat(ExportFormat):
    """A frozen graph: one ``.pb`` file, the weights in it as constants."""

    name = "pb"
    title = "Frozen TensorFlow graph"

    def write(self, model: ServingModel, folder: Path) -> Path:
        """Write ``model.pb``; read it back with ``tf.import_graph_def``."""
        path = folder / "model.pb"
        path.write_bytes(_frozen(model).SerializeToString())
        return path

    def runner(self, path: Path) -> Runner:
        """Import the graph into a session of its own."""
        definition = tf.GraphDef()
        definition.ParseFromString(path.read_bytes())
        graph = tf.Graph()
        with graph.as_default():
            tf.import_graph_def(definition, name="")
        return _session_runner(new_session(graph))


class SavedModelFormat(ExportFormat):
    """A SavedModel with the signature ``serving_default``."""

    name = "savedmodel"
    title = "TensorFlow SavedModel"

    def write(self, model: ServingModel, folder: Path) -> Path:
        """Write the folder ``saved_model``."""
        path = folder / "saved_model"
        shutil.rmtree(path, ignore_errors=True)
        with model.graph.as_default():
            builder = tf.saved_model.Builder(str(path))
            signature = tf.saved_model.predict_signature_def({"input": model.input}, model.outputs)
            builder.add_meta_graph_and_variables(
                model.session, [tf.saved_model.tag_constants.SERVING], {"serving_default": signature}
            )
            builder.save()
        return path

    def runner(self, path: Path) -> Runner:
        """Load it into a session of its own and run it by its signature."""
        graph = tf.Graph()
        session = new_session(graph)
        with graph.as_default():
            meta = tf.saved_model.load(session, [tf.saved_model.tag_constants.SERVING], str(path))
        signature = meta.signature_def["serving_default"]
        outputs = {key: info.name for key, info in signature.outputs.items()}
        return lambda batch: session.run(outputs, {signature.inputs["input"].name: batch})


class OnnxFormat(ExportFormat):
    """ONNX, opset 18: one ``.onnx`` file for onnxruntime and many others."""

    name = "onnx"
    title = "ONNX"
    packages = ("onnxruntime",)

    def write(self, model: ServingModel, folder: Path) -> Path:
        """Write ``model.onnx``, converted from the frozen graph."""
        convert = _optional("tf2onnx.convert", "tf2onnx")
        path = folder / "model.onnx"
        convert.from_graph_def(
            _frozen(model),
            input_names=[model.input.name],
            output_names=[tensor.name for tensor in model.outputs.values()],
            opset=18,
            output_path=str(path),
        )
        return path

    def runner(self, path: Path) -> Runner:
        """Load it with onnxruntime on the processor."""
        session = _optional("onnxruntime", "onnxruntime").InferenceSession(path, providers=["CPUExecutionProvider"])
        (source,) = session.get_inputs()
        names = [output.name for output in session.get_outputs()]
        return lambda batch: {
            name.removesuffix(":0"): value
            for name, value in zip(names, session.run(names, {source.name: batch}), strict=True)
        }


class LiteRtFormat(ExportFormat):
    """LiteRT (TensorFlow Lite): one ``.tflite`` file for phones and boards."""

    name = "tflite"
    title = "LiteRT (TensorFlow Lite)"
    has_float64 = False

    def write(self, model: ServingModel, folder: Path) -> Path:
        """Write ``model.tflite`` in float32."""
        with model.graph.as_default():
            converter = tf.lite.TFLiteConverter.from_session(model.session, [model.input], list(model.outputs.values()))
            converter.target_spec.supported_ops = [tf2.lite.OpsSet.TFLITE_BUILTINS, tf2.lite.OpsSet.SELECT_TF_OPS]
            with native_log_held_to("3"):  # it looks for initializers, which a frozen graph has no more
                content = converter.convert()
        path = folder / "model.tflite"
        path.write_bytes(content)
        return path

    def runner(self, path: Path) -> Runner:
        """Load it with the interpreter, which takes one batch size at a time."""
        interpreter = tf2.lite.Interpreter(model_path=str(path))
        (source,) = interpreter.get_input_details()

        def run(batch: np.ndarray) -> dict[str, np.ndarray]:
            interpreter.resize_tensor_input(source["index"], batch.shape)
            interpreter.allocate_tensors()
            interpreter.set_tensor(source["index"], batch)
            interpreter.invoke()
            return {
                output["name"].split(":")[0]: interpreter.get_tensor(output["index"])
                for output in interpreter.get_output_details()
            }

        return run


FORMATS: Final[dict[str, ExportFormat]] = {
    each.name: each
    for each in (CheckpointFormat(), FrozenGraphFormat(), SavedModelFormat(), OnnxFormat(), LiteRtFormat())
}
"""name → format."""


def format_named(name: str) -> ExportFormat:
    """Return a format.

    Raises:
        UnknownNameError: where there is none of that name.
    """
    if name not in FORMATS:
        raise UnknownNameError("export format", name, FORMATS)
    return FORMATS[name]


def _frozen(model: ServingModel) -> Any:
    names = [tensor.op.name for tensor in model.outputs.values()]
    with model.graph.as_default():
        return tf.graph_util.convert_variables_to_constants(model.session, model.graph.as_graph_def(), names)


def _session_runner(session: Any) -> Runner:
    """Return what runs a graph by the names that ``serving_model`` gave its tensors."""
    known = {operation.name for operation in session.graph.get_operations()}
    names = [name for name in known if name in ("probabilities", "output", DETECTIONS) or _is_numbered(name)]
    fetches = {name: f"{name}:0" for name in sorted(names)}
    return lambda batch: session.run(fetches, {"input:0": batch})


def _is_numbered(name: str) -> bool:
    return name.startswith("output_") and name.removeprefix("output_").isdigit()


def _optional(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(package, extra="export", purpose="exporting to ONNX") from error
