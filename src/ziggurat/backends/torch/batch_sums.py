"""Sums over a batch whose rows lie on several devices: what a loss is divided by that counts other things than rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import torch

__all__ = [
    "Weight",
    "WeightScale",
    "divisors_with_gradients",
    "noting_weights",
    "share_of_batch",
    "summing_over_devices",
]

_TINY: Final = 1e-12
"""What a sum of 0 counts for: the loss over it is 0, too."""

AddUp = Callable[[torch.Tensor], None]
"""Replaces a tensor by its sum over the devices; all of them call it."""

_add_up: list[AddUp | None] = [None]


class Weight(NamedTuple):
    """Weight of a loss of some rows: what it is divided by, where that is not their number.

    Args:
        total: scalar, the sum of the weights.
        divisor: scalar above 0, what the loss was divided by.
        at_least: smallest divisor of a batch; 0 for none.
    """

    total: torch.Tensor
    divisor: torch.Tensor
    at_least: float


class WeightScale(NamedTuple):
    """Scale of the weights of a loss.

    Args:
        of_row: weight of a row, as far as order of magnitude goes.
        at_least: smallest divisor of a batch; 0 for none.
    """

    of_row: float
    at_least: float


_noted: list[list[Weight]] = [[]]
_leaves: list[list[torch.Tensor]] = []


class noting_weights:  # noqa: N801 - it is read as the function of a `with` statement
    """Gives the weights of the losses that are computed inside, in their order.

    Every step enters it: a generator would cost more.
    """

    def __enter__(self) -> list[Weight]:
        noted: list[Weight] = []
        _noted.append(noted)
        return noted

    def __exit__(self, *error: object) -> None:
        _noted.pop()


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


@contextmanager
def divisors_with_gradients() -> Iterator[list[torch.Tensor]]:
    """Give the divisors of the losses inside, as leaves of their graph, to see which loss depends on which."""
    leaves: list[torch.Tensor] = []
    _leaves.append(leaves)
    try:
        yield leaves
    finally:
        _leaves.pop()


def share_of_batch(total: torch.Tensor, rows: int, at_least: float = 0.0) -> torch.Tensor:
    """Return what a loss over some rows of a batch is divided by, so that the batch's loss is the mean over its rows.

    A loss of a part counts as much as the part has rows. One that is divided by something else than rows, as objects,
    pixels that count or weights of classes, is therefore divided by as much of the batch's sum as the part has of its
    rows. Alone, that is the sum itself.

    Args:
        total: scalar, the sum over the rows at hand.
        rows: how many these are.
        at_least: what the sum over the batch counts for where it is less; 0 for a tiny number.
    """
    add_up = _add_up[-1]
    if add_up is None:
        divisor = total.clamp(min=at_least or _TINY)
        if _leaves:
            divisor = divisor.detach().float().requires_grad_()
            _leaves[-1].append(divisor)
        _note(total, divisor, at_least)
        return divisor
    sums = torch.stack([total.detach().float(), total.new_tensor(rows, dtype=torch.float32)])
    add_up(sums)
    share = rows / sums[1]
    divisor = sums[0].clamp(min=at_least or _TINY) * share
    _note(sums[0] * share, divisor, at_least)
    return divisor


def _note(total: torch.Tensor, divisor: torch.Tensor, at_least: float) -> None:
    if len(_noted) > 1:
        _noted[-1].append(Weight(total.detach().float(), divisor.detach().float(), at_least))
