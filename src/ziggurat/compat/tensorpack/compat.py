"""Versions and other facts that programs ask for."""

from __future__ import annotations

import platform
from typing import Any, Final

from ziggurat import __version__ as ziggurat_version
from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.tf.tower import MOVING_SUMMARIES, TowerFunc

__all__ = [
    "MOVING_SUMMARY_OPS_KEY",
    "TensorSpec",
    "TowerFuncWrapper",
    "__version__",
    "collect_env_info",
    "get_tf_version_number",
    "get_tf_version_tuple",
    "is_tfv2",
    "tfv1",
]

__version__: Final = "0.11"
MOVING_SUMMARY_OPS_KEY: Final = MOVING_SUMMARIES
TensorSpec: Any = tf.TensorSpec
TowerFuncWrapper = TowerFunc
tfv1: Any = tf


def is_tfv2() -> bool:
    """Return whether programs see TensorFlow 2: they do not."""
    return False


def get_tf_version_tuple() -> tuple[int, int]:
    """Return the first two numbers of TensorFlow's version."""
    major, minor = tf2.__version__.split(".")[:2]
    return int(major), int(minor)


def get_tf_version_number() -> float:
    """Return TensorFlow's version as a number, such as 2.21."""
    return float(".".join(map(str, get_tf_version_tuple())))


def collect_env_info() -> str:
    """Return a text on what the program runs with."""
    return f"Python {platform.python_version()}, TensorFlow {tf2.__version__}, Ziggurat {ziggurat_version}"
