"""Dropout whose masks depend on the step and nothing else, so that a resumed training draws the same ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ziggurat.backends.tensorflow.namespace.deterministic import layers_dropout
from ziggurat.tf.models.context import is_training_now
from ziggurat.tf.models.registry import layer_register, older_arguments
from ziggurat.tf.scopes import make_global_step

__all__ = ["Dropout"]


def _rate_of(keep_prob: Any) -> Any:
    return 1 - keep_prob


@layer_register(use_scope=None)
@older_arguments(keep_prob=("rate", _rate_of), is_training="training")
def Dropout(  # noqa: N802 - Tensorpack's name
    x: Any,
    keep: Any = None,
    *,
    rate: Any = 0.5,
    noise_shape: Sequence[int] | None = None,
    seed: int | None = None,
    training: bool | None = None,
    name: str | None = None,
) -> Any:
    """Set a share of the values to 0 and scale up the others, in training: ``Dropout(name, x, rate=0.5)``.

    The mask follows from the seed of the graph, ``seed``, the place of the layer among all dropouts, and
    ``global_step``.

    Args:
        x: any shape.
        keep: probability to *keep* a value, as Tensorpack has it: by position only, and with a warning.
        rate: probability to set a value to 0, in [0, 1); a number or a tensor.
        noise_shape: shape of the mask, which is broadcast; that of the input where it is None.
        seed: changes the masks.
        training: whether to set anything to 0; as the ``TowerContext`` says where it is None.
        name: of the operation, where the layer has no name.

    Raises:
        StateError: where ``training`` is None and there is no tower.
    """
    if keep is not None:
        rate = 1 - keep
        if not isinstance(keep, int | float) or keep != 0.5:
            warnings.warn(
                f"Dropout: the number behind the tensor is the probability to keep a value, {keep}; write `rate=` for "
                "the probability to set it to 0.",
                UserWarning,
                stacklevel=3,
            )
    is_training = is_training_now(training, "Dropout")
    if is_training:
        make_global_step()
    return layers_dropout(x, rate, noise_shape, seed, is_training, name)
