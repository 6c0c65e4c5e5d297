"""``tf`` for users' files: TensorFlow with the meaning of version 1, its inside and names of before included."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.namespace.contrib import contrib_module, slim_module
from ziggurat.backends.tensorflow.namespace.deterministic import exact_sum, layers_dropout, nn_dropout
from ziggurat.backends.tensorflow.namespace.proxy import StandInModule, notify
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["new_names", "user_slim", "user_tensorflow"]

_RENAMED: Final = {
    "all_variables": "global_variables",
    "audio_summary": "summary.audio",
    "complex_abs": "abs",
    "initialize_all_variables": "global_variables_initializer",
    "initialize_local_variables": "local_variables_initializer",
    "initialize_variables": "variables_initializer",
    "inv": "reciprocal",
    "listdiff": "setdiff1d",
    "merge_all_summaries": "summary.merge_all",
    "merge_summary": "summary.merge",
    "mul": "multiply",
    "neg": "negative",
    "pack": "stack",
    "select": "where",
    "sub": "subtract",
    "unpack": "unstack",
}
_RENAMED_NN: Final = {
    "bidirectional_rnn": "static_bidirectional_rnn",
    "deconv2d": "conv2d_transpose",
    "rnn": "static_rnn",
    "state_saving_rnn": "static_state_saving_rnn",
}
_CROSS_ENTROPIES: Final = (
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "sparse_softmax_cross_entropy_with_logits",
)


def older_names() -> dict[str, Any]:
    """Return name → function for ``tf``."""
    return {
        **{old: functools.reduce(getattr, new.split("."), tf) for old, new in _RENAMED.items()},
        "batch_matmul": _batch_matmul,
        "concat": _concat,
        "histogram_fixed_width": _histogram_fixed_width,
        "histogram_summary": _histogram_summary,
        "image_summary": _image_summary,
        "scalar_summary": _scalar_summary,
        "split": _split,
    }


def new_names() -> dict[str, str]:
    """Return name of before → name of today, both without ``tf``; those that are functions of ours are not there."""
    layers = {f"nn.{old}": f"nn.{new}" for old, new in _RENAMED_NN.items()}
    return {**_RENAMED, **layers, "train.SummaryWriter": "summary.FileWriter"}


def older_nn_names() -> dict[str, Any]:
    """Return name → function for ``tf.nn``."""
    named = {old: getattr(tf.nn, new) for old, new in _RENAMED_NN.items()}
    return named | {name: _cross_entropy(name, getattr(tf.nn, name)) for name in _CROSS_ENTROPIES}


def older_image_names() -> dict[str, Any]:
    """Return name → function for ``tf.image``."""
    return {"per_image_whitening": tf.image.per_image_standardization, "resize_images": _resize_images}


@functools.wraps(tf.concat)
def _concat(*arguments: Any, **options: Any) -> Any:
    _rename(options, concat_dim="axis")
    if arguments and _is_number(arguments[0]):
        notify("`tf.concat(axis, values)` has the order of before TensorFlow 1.0; it is read as (values, axis).")
        options |= zip(("axis", "values", "name"), arguments, strict=False)
        arguments = ()
    return tf.concat(*arguments, **options)


@functools.wraps(tf.split)
def _split(*arguments: Any, **options: Any) -> Any:
    _rename(options, split_dim="axis", num_split="num_or_size_splits")
    if arguments and _is_number(arguments[0]) and (len(arguments) > 2 or "value" in options):
        notify(
            "`tf.split(axis, count, value)` has the order of before TensorFlow 1.0; it is read as (value, count, axis)."
        )
        options |= zip(("axis", "num_or_size_splits", "value", "name"), arguments, strict=False)
        arguments = ()
    return tf.split(*arguments, **options)


@functools.wraps(tf.histogram_fixed_width)
def _histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = tf.int32, name: str | None = None
) -> Any:
    wanted = tf.as_dtype(dtype)
    counted = wanted if wanted.is_integer else tf.int32  # TensorFlow counts in whole numbers alone today
    counts = tf.histogram_fixed_width(values, value_range, nbins, counted, name=name)
    return counts if wanted.is_integer else tf.cast(counts, wanted)


def _batch_matmul(x: Any, y: Any, adj_x: bool = False, adj_y: bool = False, name: str | None = None) -> Any:
    return tf.matmul(x, y, adjoint_a=adj_x, adjoint_b=adj_y, name=name)


def _scalar_summary(tags: Any, values: Any, collections: Any = None, name: str | None = None) -> Any:
    return tf.summary.scalar(tags, values, collections)


def _histogram_summary(tag: Any, values: Any, collections: Any = None, name: str | None = None) -> Any:
    return tf.summary.histogram(tag, values, collections)


def _image_summary(tag: str, tensor: Any, max_images: int = 3, collections: Any = None, name: str | None = None) -> Any:
    return tf.summary.image(tag, tensor, max_outputs=max_images, collections=collections)


def _cross_entropy(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def cross_entropy(*arguments: Any, **options: Any) -> Any:
        _rename(options, targets="labels")
        if arguments and arguments[0] is not None:  # the first place is a guard against this order today
            notify(f"`tf.nn.{name}(logits, labels)` has the order of before TensorFlow 1.0; name the two.")
            options |= zip(("logits", "labels"), arguments, strict=False)
            options |= {"name" if isinstance(each, str) else "dim": each for each in arguments[2:]}
            arguments = ()
        return function(*arguments, **options)

    return cross_entropy


@functools.wraps(tf.image.resize_images)
def _resize_images(*arguments: Any, **options: Any) -> Any:
    if len(arguments) > 2 and _is_number(arguments[1]) and _is_number(arguments[2]):
        notify(
            "`tf.image.resize_images(images, height, width)` is of before TensorFlow 1.0; the size is [height, width]."
        )
        images, height, width, *rest = arguments
        arguments = (images, [height, width], *rest)
    if "new_height" in options and "new_width" in options:
        options["size"] = [options.pop("new_height"), options.pop("new_width")]
    return tf.image.resize_images(*arguments, **options)


def _is_number(value: Any) -> bool:
    """Return whether a value is one whole number, as an axis is; a Python number or a tensor."""
    if isinstance(value, tf.Tensor):
        return value.shape.rank == 0 and value.dtype.is_integer
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _rename(options: dict[str, Any], **names: str) -> None:
    for old, new in names.items():
        if old in options:
            options[new] = options.pop(old)


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
        "pywrap_tensorflow": _part("pywrap_tensorflow", tensorflow, NewCheckpointReader=tf.train.NewCheckpointReader),
        "ops": _part(
            "ops",
            tensorflow,
            constant_op=importlib.import_module("tensorflow.python.framework.constant_op"),
            rnn_cell=tf.nn.rnn_cell,
            rnn=_part("ops.rnn", tensorflow.nn),
        ),
    }
    return StandInModule("tf.python", importlib.import_module("tensorflow.python"), tensorflow, names=parts)


def _part(path: str, public: Any, **names: Any) -> ModuleType:
    return StandInModule(f"tf.python.{path}", importlib.import_module(f"tensorflow.python.{path}"), public, names=names)


_GONE: Final = {
    "estimator": "TensorFlow dropped estimators: a `UserModel` with `inference` and `loss` does their work.",
}


def user_slim() -> ModuleType:
    """Return ``slim`` as a user's file sees it."""
    return user_tensorflow().contrib.slim


@functools.cache
def user_tensorflow(*, exact: bool = True) -> ModuleType:
    """Return ``tf`` as a user's file sees it.

    Args:
        exact: take a dropout and a sum that let a training resume bit for bit. The dropout draws its masks from the
            global step; a program that does not count its steps there would get the same mask for ever.
    """
    slim = slim_module(exact=exact)
    names = {
        **older_names(),
        "contrib": contrib_module(slim),
        "image": StandInModule("tf.image", tf.image, names=older_image_names()),
        "nn": StandInModule("tf.nn", tf.nn, names=older_nn_names()),
        "layers": StandInModule("tf.layers", tf.layers),
        "train": StandInModule("tf.train", tf.train, names={"SummaryWriter": tf.summary.FileWriter}),
        "compat": StandInModule("tf.compat", tf.compat, names={}),
    }
    if exact:
        names["nn"].dropout = nn_dropout
        names["layers"].__dict__.update(dropout=layers_dropout, Dropout=_DropoutLayer)
        names["add_n"] = exact_sum
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
