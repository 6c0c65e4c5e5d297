"""Owns ``tf.contrib`` for users' files: what their networks used of it, on tf-slim and TensorFlow of today."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Final

from ziggurat.backends.tensorflow.namespace.dropout import slim_dropout
from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.namespace.repairs import repair_slim
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["contrib_module", "slim_module"]

_GONE: Final = {
    "learn": "Use a plain graph: a `UserModel` needs no estimator.",
    "keras": "Use `tf.keras`, which is the older Keras that knows graphs.",
    "data": "Data comes through `self.x` and `self.y`.",
    "cudnn_rnn": "Use `tf.nn.rnn_cell`.",
    "crf": "Build it from `tf` operations.",
}
_LAYERS_GONE: Final = {
    "embed_sequence": "Use `tf.get_variable` and `tf.nn.embedding_lookup`.",
    "real_valued_column": "Feed the numbers through `self.x`.",
    "sparse_column_with_hash_bucket": "Feed the numbers through `self.x`.",
}


def slim_module() -> ModuleType:
    """Return ``slim``: tf-slim, repaired, with a dropout that resumes exactly."""
    slim = repair_slim()
    own = {"dropout": slim_dropout, "layers": StandInModule("slim.layers", slim.layers, names=_layer_names(slim))}
    return StandInModule("slim", slim, names=own)


def contrib_module(slim: ModuleType) -> ModuleType:
    """Return ``tf.contrib``.

    Args:
        slim: what ``slim_module`` gave.
    """
    real = repair_slim()
    parts = {
        "slim": slim,
        "layers": StandInModule("tf.contrib.layers", real.layers, names=_layer_names(real), gone=_LAYERS_GONE),
        "framework": StandInModule("tf.contrib.framework", real, names=_framework_names(real)),
        "losses": StandInModule("tf.contrib.losses", real.losses),
        "metrics": StandInModule("tf.contrib.metrics", real.metrics),
        "training": StandInModule("tf.contrib.training", real.training),
        "rnn": _rnn_module(),
        "eager": StandInModule("tf.contrib.eager", tf, names={"enable_eager_execution": tf.enable_eager_execution}),
        "tensorboard": _tensorboard_module(),
        "opt": StandInModule("tf.contrib.opt", tf.train),
    }
    return StandInModule("tf.contrib", None, names=parts, gone=_GONE)


def _layer_names(slim: Any) -> dict[str, Any]:
    names = {name: getattr(slim, name) for name in dir(slim) if not name.startswith("_")}
    wanted = {name: value for name, value in names.items() if callable(value)}
    wanted["dropout"] = slim_dropout
    return wanted


def _framework_names(slim: Any) -> dict[str, Any]:
    return {
        "nest": tf.nest,
        "load_variable": tf.train.load_variable,
        "list_variables": tf.train.list_variables,
        "load_checkpoint": tf.train.load_checkpoint,
        "get_or_create_global_step": tf.train.get_or_create_global_step,
        "get_global_step": tf.train.get_global_step,
        "arg_scope": slim.arg_scope,
        "add_arg_scope": slim.add_arg_scope,
    }


def _rnn_module() -> ModuleType:
    cells = tf.nn.rnn_cell
    names = {
        "BasicLSTMCell": cells.BasicLSTMCell,
        "BasicRNNCell": cells.BasicRNNCell,
        "DropoutWrapper": cells.DropoutWrapper,
        "GRUCell": cells.GRUCell,
        "LSTMCell": cells.LSTMCell,
        "LSTMStateTuple": cells.LSTMStateTuple,
        "MultiRNNCell": cells.MultiRNNCell,
        "RNNCell": cells.RNNCell,
        "static_bidirectional_rnn": tf.nn.static_bidirectional_rnn,
        "static_rnn": tf.nn.static_rnn,
        "static_state_saving_rnn": tf.nn.static_state_saving_rnn,
    }
    return StandInModule("tf.contrib.rnn", cells, names=names)


def _tensorboard_module() -> ModuleType:
    class Projector(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("tensorboard.plugins.projector"), name)

    plugins = StandInModule("tf.contrib.tensorboard.plugins", None, names={"projector": Projector("projector")})
    return StandInModule("tf.contrib.tensorboard", None, names={"plugins": plugins})
