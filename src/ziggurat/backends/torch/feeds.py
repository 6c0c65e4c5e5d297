"""How batches reach a PyTorch program: made when a step needs them, or ahead in a thread, up to the memory of a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch

from ziggurat.engine.apart import ApartCycle
from ziggurat.engine.feed import BatchCycle, DirectFeed, Feed, QueueFeed

__all__ = ["StagedBatch", "make_feed", "taken"]

_AHEAD_ON_GPU: Final = 2
"""Batches that are made ahead for a GPU where none are asked for: its steps leave the processor free meanwhile."""

_NUMBERS: Final = "biufc"


def make_feed(batches: BatchCycle, device: torch.device, ahead: int, *, staged: bool = True) -> Feed:
    """Return the feed of a program.

    Args:
        batches: endless batches.
        device: where the steps compute.
        ahead: batches that a thread makes ahead; 0 for the backend's choice.
        staged: whether batches that wait for a GPU are copied into its memory meanwhile.
    """
    count = ahead or (_AHEAD_ON_GPU if device.type == "cuda" else 0)
    if staged and device.type == "cuda":
        return StagingFeed(ApartCycle(batches) if batches.may_run_apart else batches, count, device)
    return QueueFeed(batches, count) if count else DirectFeed(batches)


class StagedBatch(list[Any]):
    """A batch of arrays in the memory of the host, whose copies are on their way to a GPU.

    Args:
        arrays: the batch.
        copies: tensor on the GPU of each array; what has none stands as it is.
        arrived: when all of them are there.
    """

    def __init__(self, arrays: Sequence[Any], copies: Sequence[Any], arrived: torch.cuda.Event) -> None:
        super().__init__(arrays)
        self._copies = list(copies)
        self._arrived = arrived

    def take(self) -> list[Any]:
        """Return the copies, for the stream of the caller; the batch lets them go, and gives its arrays from then on.

        Who keeps batches, such as a black box, keeps no memory of the GPU.
        """
        copies, self._copies = self._copies, []
        if not copies:
            return list(self)
        for each in copies:
            if isinstance(each, torch.Tensor):
                stream = torch.cuda.current_stream(each.device)
                stream.wait_event(self._arrived)
                each.record_stream(stream)
        return copies


def taken(batch: Any) -> Any:
    """Return a batch for a step: its copies on the GPU where it has some, else the batch as it is."""
    return batch.take() if isinstance(batch, StagedBatch) else batch


class StagingFeed(QueueFeed):
    """Makes batches ahead in a thread, which also copies them to a GPU, while the steps before them compute.

    Copies go through pinned memory, on a stream of their own: https://docs.pytorch.org/docs/stable/notes/cuda.html

    Args:
        batches: the batches, at the position where the feed begins.
        capacity: batches that are made ahead at most, at least 1: so many more lie in the memory of the GPU.
        device: the GPU.
    """

    def __init__(self, batches: BatchCycle, capacity: int, device: torch.device) -> None:
        super().__init__(batches, capacity)
        self._device = device
        self._stream: torch.cuda.Stream | None = None

    def _held(self, batch: Any) -> Any:
        held = super()._held(batch)
        if type(held) is not list or not any(isinstance(each, np.ndarray) for each in held):
            return held
        try:
            return self._staged(held)
        except torch.OutOfMemoryError:  # the step says so, with what to do, where it has no room either
            return held

    def _staged(self, held: list[Any]) -> StagedBatch:
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)
        with torch.cuda.stream(self._stream):
            copies = [self._copy(each) for each in held]
            arrived = torch.cuda.Event()
            arrived.record(self._stream)
        return StagedBatch(held, copies, arrived)

    def _copy(self, part: Any) -> Any:
        if not isinstance(part, np.ndarray) or part.dtype.kind not in _NUMBERS:
            return part
        tensor = torch.from_numpy(part if part.flags.c_contiguous else np.ascontiguousarray(part))
        return tensor.pin_memory().to(self._device, non_blocking=True)
