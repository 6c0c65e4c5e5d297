"""Sums over a batch whose rows lie on several devices: what a loss is divided by that counts other things than rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

__all__ = ["is_on_several_devices", "share_of_batch", "summing_over_devices"]

AddUp = Callable[[torch.Tensor], None]
"""Replaces a tensor by its sum over the devices; all of them call it."""

_add_up: list[AddUp | None] = [None]


@contextmanager
def summing_over_devices(add_up: AddUp | None) -> Iterator[None]:
    """Let losses inside be divided by sums over all devices.

    Args:
        add_up: adds up over the devices; None where the rows at hand are the whole batch.
    """
    _add_up.append(add_up)
    try:
        yield
    finally:
        _add_up.pop()


def is_on_several_devices() -> bool:
    """Return whether other devices have rows of the same batch."""
    return _add_up[-1] is not None


def share_of_batch(total: torch.Tensor, rows: int, at_least: float = 0.0) -> torch.Tensor:
    """Return what a loss over some rows of a batch is divided by, so that the batch's loss is the mean over its rows.

    A loss of a part counts as much as the part has rows. One that is divided by something else than rows, as objects,
    pixels that count or weights of classes, is therefore divided by as much of the batch's sum as the part has of its
    rows. Alone, that is the sum itself.

    Args:
        total: scalar, the sum over the rows at hand.
        rows: how many these are.
        at_least: what the sum over the batch counts for where it is less.
    """
    add_up = _add_up[-1]
    if add_up is None:
        return total.clamp(min=at_least)
    sums = torch.stack([total.detach().float(), total.new_tensor(rows, dtype=torch.float32)])
    add_up(sums)
    return sums[0].clamp(min=at_least) * (rows / sums[1])
