"""The start of TensorFlow in a process: graph mode, resource variables, the older Keras, and the log of native code.

Every module of the backend takes ``tf`` from here, so that nothing imports TensorFlow before its switches are set.

TensorFlow applies ``TF_CPP_MIN_LOG_LEVEL`` only once its log is initialized; what its libraries say while they are
loaded goes to standard error, whatever the level. A process of its own reads that: where the import ends the process,
as on a machine without the instructions that TensorFlow needs, its last words are shown all the same.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ziggurat.backends.tensorflow.info import INFO, LOG_LEVEL, is_eager
from ziggurat.errors import MissingDependencyError, StateError

__all__ = ["native_log_held_to", "tf", "tf2"]

_LEVELS: Final = "IWEF"
_FILTER: Final = """
import re, sys
noise = re.compile(rb"[%s]\\d{4} [\\d:.]+ +\\d+ [^ ]+:\\d+\\] |WARNING: All log messages before absl::InitializeLog")
for line in sys.stdin.buffer:
    if not noise.match(line):
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
"""


@contextmanager
def native_log_held_to(level: str) -> Iterator[None]:
    """Leave lines below a level out of what native code writes to standard error inside.

    Args:
        level: as in ``TF_CPP_MIN_LOG_LEVEL``: 0 leaves out nothing, 1 information, 2 warnings too, 3 errors too.
    """
    left_out = _LEVELS[: int(level)] if level.isdecimal() else ""
    if not left_out or not sys.executable:
        yield
        return
    try:
        sys.stderr.flush()
        kept = os.dup(2)
    except (AttributeError, OSError):  # there is no standard error
        yield
        return
    command = [sys.executable, "-I", "-S", "-c", _FILTER % left_out]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, close_fds=True) as reader:
        assert reader.stdin is not None
        os.dup2(reader.stdin.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)


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
        _compute_in_place_operators()
    except ValueError as error:
        raise StateError(
            "TensorFlow has run eagerly in this process already, so the backend cannot start: "
            f"{str(error).rstrip('.')}.",
            advice="Start it in a process of its own, as a worker does.",
        ) from error


def _compute_in_place_operators() -> None:
    """Let ``variable += value`` compute a new tensor, as variables of TensorFlow 1 did, where others raise an error."""
    variable = importlib.import_module("tensorflow.python.ops.resource_variable_ops").BaseResourceVariable
    for name in ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__"):
        if name in vars(variable):  # not where a process chooses graph mode a second time
            delattr(variable, name)  # Python computes `a = a + b` then


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
