"""``tf`` for users' files: TensorFlow with the meaning of version 1, ``contrib`` included."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from ziggurat.backends.tensorflow.namespace.contrib import contrib_module, slim_module
from ziggurat.backends.tensorflow.namespace.dropout import layers_dropout, nn_dropout
from ziggurat.backends.tensorflow.namespace.inside import inside_module
from ziggurat.backends.tensorflow.namespace.older import older_image_names, older_names, older_nn_names
from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.namespace.sums import exact_sum
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["user_slim", "user_tensorflow"]

_GONE: Final = {
    "estimator": "TensorFlow dropped estimators: a `UserModel` with `inference` and `loss` does their work.",
}


def user_slim() -> ModuleType:
    """Return ``slim`` as a user's file sees it."""
    return _SLIM


def user_tensorflow() -> ModuleType:
    """Return ``tf`` as a user's file sees it."""
    return _TENSORFLOW


def _make() -> ModuleType:
    names = {
        **older_names(),
        "contrib": contrib_module(_SLIM),
        "image": StandInModule("tf.image", tf.image, names=older_image_names()),
        "nn": StandInModule("tf.nn", tf.nn, names={**older_nn_names(), "dropout": nn_dropout}),
        "layers": StandInModule("tf.layers", tf.layers, names={"dropout": layers_dropout, "Dropout": _DropoutLayer}),
        "train": StandInModule("tf.train", tf.train, names={"SummaryWriter": tf.summary.FileWriter}),
        "add_n": exact_sum,
        "compat": StandInModule("tf.compat", tf.compat, names={}),
    }
    module = StandInModule("tf", tf, names=names, gone=_GONE)
    names["compat"].v1 = module
    module.__dict__["python"] = inside_module(module)
    return module


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
