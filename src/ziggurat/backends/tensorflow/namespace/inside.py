"""``tensorflow.python`` for users' files: TensorFlow's inside, with what published networks import and has moved."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["inside_module"]


def inside_module(tensorflow: ModuleType) -> ModuleType:
    """Return ``tensorflow.python``. Its modules exported the public names too, and do so here.

    Args:
        tensorflow: ``tf`` as a user's file sees it.
    """
    parts = {
        "framework": _part("framework", tensorflow, graph_util=tf.graph_util),
        "keras": StandInModule(
            "tf.python.keras", importlib.import_module("tf_keras"), importlib.import_module("tf_keras.src")
        ),
        "layers": _part("layers", tf.layers),
        "ops": _part("ops", tensorflow, rnn_cell=tf.nn.rnn_cell, rnn=_part("ops.rnn", tensorflow.nn)),
    }
    return StandInModule("tf.python", importlib.import_module("tensorflow.python"), tensorflow, names=parts)


def _part(path: str, public: Any, **names: Any) -> ModuleType:
    return StandInModule(f"tf.python.{path}", importlib.import_module(f"tensorflow.python.{path}"), public, names=names)
