"""Loss of samples with two labels each (Mixup, CutMix), by the user's own ``loss`` for either of them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.tower import Tower
from ziggurat.errors import NetworkCodeError

__all__ = ["MixedLabels", "mixed_loss", "mixed_placeholders", "names_behind", "split_labels"]

_COLLECTED: Final = ("losses", "regularization_losses", "summaries", "update_ops")
"""Collections of a graph that the functions of a loss add to, and read."""


@dataclass(frozen=True)
class MixedLabels:
    """The arrays of a training batch beside samples and labels.

    Args:
        y: (N) int64, class numbers of what was mixed into the samples.
        share: (N) float32, that of the first labels, the same for the whole batch.
    """

    y: Any
    share: Any


def mixed_placeholders(y: Any) -> MixedLabels:
    """Return placeholders of second labels, which are like the first, and of shares."""
    return MixedLabels(
        tf.placeholder(y.dtype, y.shape, name="second_y"), tf.placeholder(tf.float32, (None,), name="share")
    )


def split_labels(mixed: MixedLabels | None, towers: int) -> list[MixedLabels | None]:
    """Return equal parts along the first axis, one a tower."""
    if mixed is None or towers == 1:
        return [mixed] * towers
    parts = zip(tf.split(mixed.y, towers, axis=0), tf.split(mixed.share, towers, axis=0), strict=True)
    return [MixedLabels(y, share) for y, share in parts]


def mixed_loss(tower: Tower, mixed: MixedLabels, path: str) -> Any:
    """Return ``share`` of the loss for ``tower.y`` plus the rest of the loss for the second labels.

    The user's ``loss`` is called twice over one ``inference``, so that dropout is the same for both. What it adds to
    the collections of the graph for the second labels is left out: curves are those of the first.

    Args:
        tower: whose ``inference`` is built.
        mixed: second labels and shares.
        path: the network file, for errors.

    Raises:
        NetworkCodeError: where the loss for other labels cannot be had that way.
    """
    built: Any = tower
    inference, before = built.inference, _collections()
    first = built.loss
    after, variables = _collections(), len(tf.global_variables())
    twin = copy.copy(built)
    twin.y, twin.summaries = mixed.y, []
    twin.__dict__["_model_properties"] = {"inference": inference}
    _restore(before)  # ``tf.losses.get_total_loss`` would add the losses for the first labels to those for the others
    second = twin.loss
    _restore(after)
    names = names_behind(_values(second))
    if mixed.y.op.name not in names or built.y.op.name in names or len(tf.global_variables()) != variables:
        raise NetworkCodeError(
            "Mixup and CutMix need a `loss` that is computed from `self.inference` and `self.y`, for any labels.",
            received=_received(names, built.y, mixed.y),
            advice="Use `self.y` in `loss` only and make no variables there, or set `augmentation.mixup` and "
            "`augmentation.cutmix` to 0.",
            details={"file": path},
        )
    share = mixed.share[0]
    if isinstance(first, list | tuple):
        return [_part(one, other, share) for one, other in zip(first, second, strict=True)]
    return _weighted(first, second, share)


def _received(names: Iterable[str], y: Any, second: Any) -> str:
    if second.op.name not in names:
        return "a loss that does not change when `self.y` is another"
    if y.op.name in names:
        return "a loss that takes labels also from elsewhere, such as from what `inference` made of them"
    return "a loss that makes variables"


def _part(first: Any, second: Any, share: Any) -> Any:
    if not (isinstance(first, Mapping) and isinstance(second, Mapping) and "loss" in first and "loss" in second):
        return first  # what is wrong with it is said by those who read it
    return {**first, "loss": _weighted(first["loss"], second["loss"], share)}


def _weighted(first: Any, second: Any, share: Any) -> Any:
    if not isinstance(first, tf.Tensor):
        return first
    weight = tf.cast(share, first.dtype)
    return weight * first + (1 - weight) * second


def _values(loss: Any) -> list[Any]:
    parts: Sequence[Any] = loss if isinstance(loss, list | tuple) else [loss]
    values = [each.get("loss") if isinstance(each, Mapping) else each for each in parts]
    return [each for each in values if isinstance(each, tf.Tensor)]


def _collections() -> dict[str, list[Any]]:
    return {name: tf.get_collection(name) for name in _COLLECTED}


def _restore(kept: Mapping[str, list[Any]]) -> None:
    for name, values in kept.items():
        tf.get_collection_ref(name)[:] = values


def names_behind(outputs: Iterable[Any]) -> set[str]:
    """Return the names of all operations that tensors are made of; behind outputs, neither loss nor summaries are."""
    waiting, names = [tensor.op for tensor in outputs], set[str]()
    while waiting:
        operation = waiting.pop()
        if operation.name not in names:
            names.add(operation.name)
            waiting.extend(source.op for source in operation.inputs)
    return names
