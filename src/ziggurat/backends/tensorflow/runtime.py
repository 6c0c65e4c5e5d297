"""The start of TensorFlow in a process: graph mode, resource variables, the older Keras.

Every module of the backend takes ``tf`` from here, so that nothing imports TensorFlow before its switches are set.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
from typing import Any

from ziggurat.backends.tensorflow.info import INFO, LOG_LEVEL
from ziggurat.backends.tensorflow.mode import is_eager
from ziggurat.backends.tensorflow.native_log import native_log_held_to
from ziggurat.errors import MissingDependencyError, StateError

__all__ = ["tf", "tf2"]


def _start() -> tuple[Any, Any]:
    INFO.set_environment(os.environ)
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    try:
        with native_log_held_to(os.environ[LOG_LEVEL]):
            whole = importlib.import_module("tensorflow")
            importlib.import_module("tf_keras")
            importlib.import_module("tf_slim")
    except ModuleNotFoundError as error:
        package = INFO.requires.get(error.name or "", error.name or "tensorflow")
        raise MissingDependencyError(package, extra="tensorflow", purpose="TensorFlow networks") from error
    graph_mode = whole.compat.v1
    graph_mode.logging.set_verbosity(graph_mode.logging.ERROR)
    if not is_eager():
        _choose_graph_mode(graph_mode)
    level = os.environ[LOG_LEVEL]
    if level == INFO.environment[LOG_LEVEL] and _lacks_driver(whole):
        with native_log_held_to("3"):  # that there is no GPU is no error on such a machine; it is said once a process
            whole.config.list_physical_devices()
    return graph_mode, whole


def _choose_graph_mode(graph_mode: Any) -> None:
    try:
        graph_mode.disable_v2_behavior()
        graph_mode.enable_resource_variables()
    except ValueError as error:
        raise StateError(
            "The TensorFlow backend needs a process in which TensorFlow has not run eagerly yet.",
            received=str(error),
            advice="Start it in a process of its own, as a worker does.",
        ) from error


def _lacks_driver(tensorflow: Any) -> bool:
    """Return whether this TensorFlow is for NVIDIA's GPUs, and the machine has no driver of them."""
    if not tensorflow.test.is_built_with_cuda():
        return False
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return True
    return False


tf, tf2 = _start()
"""TensorFlow with the meaning of version 1 (graph mode), and the whole package."""
