"""Description of the TensorFlow backend, and the choice of its mode before it starts; it imports no TensorFlow."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from ziggurat.entities.backend_info import BackendInfo, ExportFormat
from ziggurat.zoo import ZOO, networks_in

__all__ = ["INFO", "LOG_LEVEL", "eager_debugging", "is_eager"]

LOG_LEVEL: Final = "TF_CPP_MIN_LOG_LEVEL"
"""Variable with the level from which on TensorFlow's native code logs."""

_TASKS: Final = "ziggurat.backends.tensorflow.export.provider:TensorFlowTasks"

_TEMPLATE: Final = '''"""My network."""


class UserModel(Tower):
    @model_property
    def inference(self):
        net = slim.conv2d(self.x / 255.0, 32, [3, 3], scope="conv1")
        net = slim.max_pool2d(net, [2, 2], scope="pool1")
        net = slim.flatten(net)
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="fc1")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
'''

INFO: Final = BackendInfo(
    title="TensorFlow",
    backend="ziggurat.backends.tensorflow.backend:TensorFlowBackend",
    rank=10,
    accelerators=("gpu",),
    networks=networks_in(ZOO / "tensorflow"),
    zoo=ZOO / "tensorflow",
    takes_network_files=True,
    start_bytes=780_000_000,
    network_template=_TEMPLATE,
    file_names=("slim", "tensorflow", "tf", "tf_slim"),
    capabilities={
        "SupportsInference": _TASKS,
        "SupportsGradients": _TASKS,
        "GivesFeatures": _TASKS,
        "SupportsExport": _TASKS,
        "SupportsDescribe": _TASKS,
        "SupportsGraph": _TASKS,
        "SupportsForeign": _TASKS,
        "SupportsDebug": "ziggurat.backends.tensorflow.info:eager_debugging",
    },
    export_formats=(
        ExportFormat("savedmodel", "SavedModel", "For TensorFlow, TensorFlow Serving and conversion tools."),
        ExportFormat("onnx", "ONNX", "For ONNX Runtime and most other inference engines."),
        ExportFormat("tflite", "LiteRT (TensorFlow Lite)", "For phones and small devices."),
        ExportFormat("pb", "Frozen graph (.pb)", "One file with the weights in it, as DIGITS users know it."),
        ExportFormat("checkpoint", "TensorFlow checkpoint", "To go on with in TensorFlow programs of your own."),
    ),
    checkpoint_suffix=".index",
    # tf.layers, recurrent cells and slim's batch_norm need the Keras that knows graphs; Keras 3 is silently wrong.
    environment={"TF_USE_LEGACY_KERAS": "1", LOG_LEVEL: "2"},
    worker_variables=("TF_*", "TF2_*", "XLA_*", "KERAS_*"),
    requires={"tensorflow": "tensorflow", "tf_keras": "tf_keras", "tf_slim": "tf-slim"},
    extra="tensorflow",
)

_eager = False


def choose_eager() -> None:
    """Let TensorFlow start eagerly. Call it before anything else of this package is imported."""
    global _eager
    _eager = True


def is_eager() -> bool:
    """Return whether TensorFlow starts eagerly in this process."""
    return _eager


def eager_debugging() -> Any:
    """Return what runs networks eagerly, in a process in which TensorFlow has not started yet."""
    choose_eager()
    return import_module("ziggurat.backends.tensorflow.debug").TensorFlowDebugging()
