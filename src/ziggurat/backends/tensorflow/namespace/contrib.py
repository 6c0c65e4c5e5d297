"""``tf.contrib`` for users' files: what their networks used of it, on tf-slim and TensorFlow of today."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any, Final

from ziggurat.backends.tensorflow.namespace.deterministic import slim_dropout
from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.namespace.repairs import repair_slim
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import UsageError

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
_INSIDE: Final = ("layers", "losses", "metrics", "ops", "slim", "training")


def slim_module(*, exact: bool = True) -> ModuleType:
    """Return ``slim``: tf-slim, repaired.

    Args:
        exact: take a dropout that resumes exactly, in its ready networks (``nets``) too. It draws its masks from the
            global step, so it is for networks whose training counts the steps there; it holds for the whole process.
    """
    slim = repair_slim()
    layers = importlib.import_module("tf_slim.layers")  # `slim.layers` is a module in it
    if exact:
        for module in (slim, layers, slim.layers):
            module.__dict__["dropout"] = slim_dropout
    _take_older_arg_scope(slim)
    own = {"layers": StandInModule("slim.layers", layers, names=_layer_names(slim))}
    return _with_inside(StandInModule("slim", slim, names=own))


def _take_older_arg_scope(slim: Any) -> None:
    """Let ``resnet_arg_scope`` take ``is_training``, which TensorFlow before 1.3 had as its first argument."""
    homes = [importlib.import_module(f"tf_slim.nets.{name}") for name in ("resnet_utils", "resnet_v1", "resnet_v2")]
    newer = homes[0].resnet_arg_scope

    @functools.wraps(newer)
    def resnet_arg_scope(*arguments: Any, is_training: Any = None, **options: Any) -> Any:
        if arguments and isinstance(arguments[0], bool):
            is_training, arguments = arguments[0], arguments[1:]
        scope = newer(*arguments, **options)
        if is_training is None:
            return scope
        with slim.arg_scope(scope), slim.arg_scope([slim.batch_norm], is_training=is_training) as narrower:
            return narrower

    for module in homes:
        module.__dict__["resnet_arg_scope"] = resnet_arg_scope


def contrib_module(slim: ModuleType) -> ModuleType:
    """Return ``tf.contrib``.

    Args:
        slim: what ``slim_module`` gave.
    """
    real = repair_slim()
    layers, ops = (importlib.import_module(f"tf_slim.{name}") for name in ("layers", "ops"))
    framework = StandInModule("tf.contrib.framework", real, ops, names=_framework_names(real))
    parts = {
        "slim": slim,
        "layers": _with_inside(StandInModule("tf.contrib.layers", layers, names=_layer_names(real), gone=_LAYERS_GONE)),
        "framework": _with_inside(framework),
        "losses": _with_inside(StandInModule("tf.contrib.losses", real.losses)),
        "metrics": _with_inside(StandInModule("tf.contrib.metrics", real.metrics)),
        "training": _with_inside(StandInModule("tf.contrib.training", real.training)),
        "rnn": _with_inside(_rnn_module()),
        "distributions": StandInModule("tf.contrib.distributions", tf.distributions),
        "eager": StandInModule("tf.contrib.eager", tf, names={"enable_eager_execution": tf.enable_eager_execution}),
        "tensorboard": _tensorboard_module(),
        "opt": StandInModule("tf.contrib.opt", tf.train),
    }
    return StandInModule("tf.contrib", names=parts, gone=_GONE)


def _with_inside(module: ModuleType) -> ModuleType:
    """Give a part of ``contrib`` the longer path that it had too, such as ``slim.python.slim`` for ``slim``."""
    module.__dict__["python"] = StandInModule(f"{module.__name__}.python", names=dict.fromkeys(_INSIDE, module))
    return module


def _layer_names(slim: Any) -> dict[str, Any]:
    names = {name: getattr(slim, name) for name in dir(slim) if not name.startswith("_")}
    return {name: value for name, value in names.items() if callable(value)}


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


class _BlockCell(tf.nn.rnn_cell.BasicLSTMCell):
    """``LSTMBlockCell``: one fused operation then, the same sums and the same variables here."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: Any = None,
        use_peephole: bool = False,
        **options: Any,
    ) -> None:
        if use_peephole or cell_clip not in (None, -1):
            raise UsageError(
                f"`LSTMBlockCell` got cell_clip={cell_clip}, use_peephole={use_peephole}, which it does not have here.",
                advice="Use `tf.nn.rnn_cell.LSTMCell`.",
            )
        super().__init__(num_units, forget_bias, **{"name": "lstm_cell", **options})


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
        "LSTMBlockCell": _BlockCell,
        "core_rnn": tf.nn,
        "core_rnn_cell": cells,
        "rnn_cell": cells,
        "static_bidirectional_rnn": tf.nn.static_bidirectional_rnn,
        "static_rnn": tf.nn.static_rnn,
        "static_state_saving_rnn": tf.nn.static_state_saving_rnn,
    }
    return StandInModule("tf.contrib.rnn", cells, names=names)


def _tensorboard_module() -> ModuleType:
    class Projector(ModuleType):
        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("tensorboard.plugins.projector"), name)

    plugins = StandInModule("tf.contrib.tensorboard.plugins", names={"projector": Projector("projector")})
    return StandInModule("tf.contrib.tensorboard", names={"plugins": plugins})
