"""How batches reach a PyTorch program: made when a step needs them, or ahead in a thread."""

from __future__ import annotations

from typing import Final

import torch

from ziggurat.engine.feed import BatchCycle, DirectFeed, Feed, QueueFeed

__all__ = ["make_feed"]

_AHEAD_ON_GPU: Final = 2
"""Batches that are made ahead for a GPU where none are asked for: its steps leave the processor free meanwhile."""


def make_feed(batches: BatchCycle, device: torch.device, ahead: int) -> Feed:
    """Return the feed of a program.

    Args:
        batches: endless batches.
        device: where the steps compute.
        ahead: batches that a thread makes ahead; 0 for the backend's choice.
    """
    count = ahead or (_AHEAD_ON_GPU if device.type == "cuda" else 0)
    return QueueFeed(batches, count) if count else DirectFeed(batches)
