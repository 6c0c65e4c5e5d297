"""Owns ``tf`` for users' files: TensorFlow with the meaning of version 1, ``contrib`` included."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from ziggurat.backends.tensorflow.namespace.contrib import contrib_module, slim_module
from ziggurat.backends.tensorflow.namespace.dropout import layers_dropout, nn_dropout
from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.namespace.sums import exact_sum
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["user_slim", "user_tensorflow"]

_GONE: Final = {
    "estimator": "TensorFlow dropped estimators: a `UserModel` with `inference` and `loss` does their work.",
}
# Courtesy to files older than TensorFlow 1.0.
_OLDER: Final = {
    "pack": "stack",
    "unpack": "unstack",
    "mul": "multiply",
    "sub": "subtract",
    "neg": "negative",
    "select": "where",
    "initialize_all_variables": "global_variables_initializer",
    "all_variables": "global_variables",
}


def user_slim() -> ModuleType:
    """Return ``slim`` as a user's file sees it."""
    return _SLIM


def user_tensorflow() -> ModuleType:
    """Return ``tf`` as a user's file sees it."""
    return _TENSORFLOW


def _make() -> ModuleType:
    names: dict[str, Any] = {old: getattr(tf, new) for old, new in _OLDER.items()}
    names |= {
        "contrib": contrib_module(_SLIM),
        "nn": StandInModule("tf.nn", tf.nn, names={"dropout": nn_dropout}),
        "layers": StandInModule("tf.layers", tf.layers, names={"dropout": layers_dropout, "Dropout": _DropoutLayer}),
        "train": StandInModule("tf.train", tf.train, names={"SummaryWriter": tf.summary.FileWriter}),
        "add_n": exact_sum,
        "image_summary": _image_summary,
        "scalar_summary": tf.summary.scalar,
        "histogram_summary": tf.summary.histogram,
        "compat": StandInModule("tf.compat", tf.compat, names={}),
    }
    module = StandInModule("tf", tf, names=names, gone=_GONE)
    names["compat"].v1 = module
    return module


def _image_summary(tag: str, tensor: Any, max_images: int = 3, collections: Any = None, name: str | None = None) -> Any:
    """Stand in for ``tf.image_summary``, which had another word for ``max_outputs``."""
    return tf.summary.image(tag, tensor, max_outputs=max_images, collections=collections)


class _DropoutLayer:
    """Stand in for ``tf.layers.Dropout``."""

    def __init__(
        self, rate: Any = 0.5, noise_shape: Any = None, seed: int | None = None, name: str | None = None
    ) -> None:
        self._options = {"rate": rate, "noise_shape": noise_shape, "seed": seed, "name": name}

    def __call__(self, inputs: Any, training: Any = False) -> Any:
        return layers_dropout(inputs, training=training, **self._options)

    apply = __call__


_SLIM = slim_module()
_TENSORFLOW = _make()
