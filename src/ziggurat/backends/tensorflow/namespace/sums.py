"""Deterministic sums of tensors: two terms at a time.

TensorFlow's operation for many terms starts with a term that no other operation still needs. Which one that is
depends on timing, and with three terms or more so does the last digit of a float.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["exact_sum"]


def exact_sum(inputs: Sequence[Any], name: str | None = None) -> Any:
    """Return the sum of tensors of one shape; stands in for ``tf.add_n``.

    Args:
        inputs: one tensor or more.
        name: of the result.
    """
    terms = list(inputs)
    if not terms:
        raise ValueError("`tf.add_n` takes at least one tensor.")
    total = functools.reduce(lambda left, right: tf.add_n([left, right]), terms)
    return tf.identity(total, name=name) if len(terms) == 1 or name is not None else total
