"""Indices spread evenly over a sequence, for charts and for the tables behind them."""

from __future__ import annotations

__all__ = ["spread_indices"]


def spread_indices(count: int, most: int) -> list[int]:
    """Return at most ``most`` indices of ``count``, spread evenly, the first and the last one among them.

    Args:
        count: length of the sequence.
        most: how many indices to return at most; 2 at least.

    >>> spread_indices(3, 5), spread_indices(101, 3)
    ([0, 1, 2], [0, 50, 100])
    """
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]
