"""Summaries of a graph: what is logged of a tower (``add_moving_summary``), and when (``MergeAllSummaries``)."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf import logger
from ziggurat.tf.scopes import cached_name_scope
from ziggurat.tf.shape_log import without_tower
from ziggurat.tf.symbolic import rms
from ziggurat.tf.tower import MOVING_SUMMARIES, BaseTowerContext, get_current_tower_context

__all__ = [
    "MovingSummary",
    "add_activation_summary",
    "add_moving_summary",
    "add_param_summary",
    "add_tensor_summary",
    "create_image_summary",
    "create_scalar_summary",
    "moving_summaries_with",
]

_TYPES: Final = ("scalar", "histogram", "sparsity", "mean", "rms")
_OF_ACTIVATIONS: Final = ("sparsity", "rms", "histogram")


@dataclass(frozen=True)
class MovingSummary:
    """A single number whose moving average is put after each epoch.

    Args:
        tag: name of the curve.
        tensor: the number, float.
        decay: of the average, in [0, 1).
    """

    tag: str
    tensor: Any
    decay: float


def add_moving_summary(
    *args: Any,
    decay: float = 0.95,
    collection: str = MOVING_SUMMARIES,
    summary_collections: Sequence[str] | None = None,
) -> list[Any]:
    """Log the moving averages of single numbers, under their names without the tower's.

    ``MovingAverageSummary`` keeps the averages over all steps and puts them after each epoch. The call does nothing in
    a tower that is not the main training tower, and where variables are reused, so that each curve is there once.

    Args:
        args: single numbers of the graph, or one list of them.
        decay: d of a ← d · a + (1 − d) · x, in [0, 1); corrected for the start.
        collection: which ``MovingAverageSummary`` puts them.
        summary_collections: collections of summaries; then ``MergeAllSummaries`` of these keys puts the averages, with
            its own period, in place of ``MovingAverageSummary``.

    Returns:
        The numbers; an empty list where the call does nothing.

    Raises:
        ConfigurationError: where one is not a single number, or the decay is outside of [0, 1).
    """
    numbers = list(args[0]) if len(args) == 1 and isinstance(args[0], list | tuple) else list(args)
    if not 0 <= decay < 1:
        raise ConfigurationError("`decay` must be in [0, 1).", received=decay, advice="0.95 is usual.")
    context = get_current_tower_context()
    if context is not None and not context.is_main_training_tower:
        return []
    if tf.get_variable_scope().reuse is True:
        logger.warning("`add_moving_summary` does nothing where variables are reused.")
        return []
    keys = [collection] if summary_collections is None else [moving_summaries_with(key) for key in summary_collections]
    for number in numbers:
        entry = _moving_summary(number, decay, context)
        for key in keys:
            tf.add_to_collection(key, entry)
    return numbers


def moving_summaries_with(key: str) -> str:
    """Return the collection of moving averages that are put with the summaries of a collection."""
    return f"{MOVING_SUMMARIES}/{key}"


def add_tensor_summary(
    x: Any,
    types: Sequence[str],
    name: str | None = None,
    collections: Sequence[str] | None = None,
    main_tower_only: bool = True,
) -> None:
    """Summarize a tensor as curves and histograms, named ``<name>-<type>``.

    Args:
        x: any shape; a single number for ``scalar``.
        types: of ``scalar``, ``histogram``, ``sparsity`` (share of zeros), ``mean`` and ``rms``.
        name: that of the tensor where it is None.
        collections: which summaries it belongs to; ``SUMMARIES`` where it is None.
        main_tower_only: whether it does nothing in other towers than the main training tower.

    Raises:
        ConfigurationError: for another type.
    """
    unknown = [each for each in types if each not in _TYPES]
    if unknown:
        raise ConfigurationError(
            f"{', '.join(map(str, unknown))} is no type of summary; these are {', '.join(_TYPES)}.",
            advice="For others, call `tf.summary` directly.",
        )
    context = get_current_tower_context()
    if main_tower_only and context is not None and not context.is_main_training_tower:
        return
    name = x.op.name if name is None else name
    for each in types:
        # Curves of a value itself have its plain name: the monitors leave out `-summary`.
        tag = f"{name}-summary" if each == "scalar" else f"{name}-{each}"
        if each == "histogram":
            tf.summary.histogram(tag, x, collections=collections)
        else:
            tf.summary.scalar(tag, _number_of(x, each), collections=collections)


def add_param_summary(*summary_lists: tuple[str, Sequence[str]], collections: Sequence[str] | None = None) -> None:
    """Summarize the trainable variables whose names match: ``add_param_summary(('.*/W', ['histogram', 'rms']))``.

    Args:
        summary_lists: (regular expression that the whole name matches, types of ``add_tensor_summary``).
        collections: which summaries they belong to; ``SUMMARIES`` where it is None.

    Raises:
        ConfigurationError: where one is no such pair.
    """
    for each in summary_lists:
        if not isinstance(each, list | tuple) or len(each) != 2 or isinstance(each[1], str):
            raise ConfigurationError(
                f"{each!r} is not a pair of an expression and types, by which parameters are summarized.",
                advice="Write `add_param_summary(('.*/W', ['histogram', 'rms']))`.",
            )
    context = get_current_tower_context()
    if context is not None and not context.is_main_training_tower:
        return
    with cached_name_scope("param-summary"):
        for variable in tf.trainable_variables():
            for regex, types in summary_lists:
                if re.fullmatch(regex, variable.op.name):
                    add_tensor_summary(variable, types, variable.op.name, collections)


def add_activation_summary(
    x: Any, types: Sequence[str] | None = None, name: str | None = None, collections: Sequence[str] | None = None
) -> None:
    """Summarize an activation: by default its share of zeros, its root mean square and its histogram.

    Args:
        x: any shape but a single number.
        types: of ``add_tensor_summary``.
        name: that of the tensor where it is None.
        collections: which summaries it belongs to; ``SUMMARIES`` where it is None.

    Raises:
        ConfigurationError: for a single number.
    """
    if x.shape.rank == 0:
        raise ConfigurationError(
            "An activation has an axis.", received="a single number", advice="Use `add_moving_summary` for it."
        )
    context = get_current_tower_context()
    if context is not None and not context.is_main_training_tower:
        return
    with cached_name_scope("activation-summary"):
        add_tensor_summary(x, types or _OF_ACTIVATIONS, without_tower(name or x.op.name), collections)


def create_scalar_summary(name: str, v: float) -> Any:
    """Return a ``tf.Summary`` of one number, for ``monitors.put_summary``.

    Args:
        name: of the curve.
        v: the number.
    """
    return tf.Summary(value=[tf.Summary.Value(tag=name, simple_value=float(v))])


def create_image_summary(name: str, val: np.ndarray) -> Any:
    """Return a ``tf.Summary`` of images, for ``monitors.put_summary``.

    Args:
        name: of the image; ``<name>/0``, ``<name>/1``, ... where there is more than one.
        val: (N, H, W, C) or (H, W, C), RGB, gray or with an alpha channel; values from 0 to 255, rounded to whole ones.

    Raises:
        ConfigurationError: for another shape.
    """
    images = np.asarray(val)
    images = images[None] if images.ndim == 3 else images
    if images.ndim != 4 or images.shape[3] not in (1, 2, 3, 4):
        raise ConfigurationError(
            "Images are (N, H, W, C) with at most 4 channels.",
            received=f"shape {np.shape(val)}",
            advice="Reshape them.",
        )
    whole = np.clip(np.rint(images), 0, 255).astype(np.uint8)
    tags = [name] if len(whole) == 1 else [f"{name}/{number}" for number in range(len(whole))]
    return tf.Summary(value=[_image_value(tag, pixels) for tag, pixels in zip(tags, whole, strict=True)])


def without_summary_suffix(tag: str) -> str:
    """Return the name of a curve: without the tower's scope, and without ``-summary`` behind it."""
    return without_tower(tag).removesuffix("-summary")


def scalars_and_rest(serialized: bytes) -> Any:
    """Return a serialized summary as a message whose tags are the names of curves."""
    summary = tf.Summary.FromString(serialized)
    for value in summary.value:
        is_number = value.WhichOneof("value") == "simple_value"
        value.tag = without_summary_suffix(value.tag) if is_number else without_tower(value.tag)
    return summary


def _moving_summary(number: Any, decay: float, context: BaseTowerContext | None) -> MovingSummary:
    tensor = tf.convert_to_tensor(number)
    if tensor.shape.rank != 0:
        raise ConfigurationError(
            "A moving average is of single numbers.",
            received=f"`{tensor.op.name}` with shape {tensor.shape}",
            advice="Reduce it, as by `tf.reduce_mean`.",
        )
    tag = without_summary_suffix(number.op.name if hasattr(number, "op") else tensor.op.name)
    if context is not None and context.ns_name:
        tag = tag.removeprefix(f"{context.ns_name}/")
    if not tensor.dtype.is_floating:
        tensor = tf.cast(tensor, tf.float32)
    return MovingSummary(tag, tensor, decay)


def _number_of(x: Any, kind: str) -> Any:
    if kind == "sparsity":
        return tf.nn.zero_fraction(x)
    if kind == "mean":
        return tf.reduce_mean(x)
    return rms(x) if kind == "rms" else x


def _image_value(tag: str, pixels: np.ndarray) -> Any:
    from PIL import Image

    height, width, channels = pixels.shape
    file = io.BytesIO()
    Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels).save(file, format="PNG")
    image = tf.Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())
    return tf.Summary.Value(tag=tag, image=image)
