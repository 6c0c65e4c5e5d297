"""Advice for a training that ran out of memory: requested memory, free memory, and a batch size to try."""

from __future__ import annotations

import os
from collections.abc import Callable

import psutil

from ziggurat.errors import TrainingError
from ziggurat.formatting import as_bytes
from ziggurat.nvidia import Accelerators
from ziggurat.specs import TrainSpec

__all__ = ["free_memory_bytes", "with_memory_advice"]


def free_memory_bytes(is_gpu: bool) -> int:
    """Return the free memory of the machine, or of the GPU with the least free memory that this process may use."""
    if is_gpu:
        free = [each.device.free_bytes for each in Accelerators(os.environ).read() if not each.error]
        if free:
            return min(free)
    return psutil.virtual_memory().available


def with_memory_advice(
    error: TrainingError, spec: TrainSpec, free_bytes: Callable[[bool], int] = free_memory_bytes
) -> TrainingError:
    """Return the error with the numbers of this machine in its advice, if it is about memory.

    ``details["memory"]`` gets ``batch_size``, ``asked_bytes``, ``free_bytes`` and ``suggested_batch_size`` (0: none).
    The suggestion assumes that the requested memory is proportional to the batch size; it is not tried.

    Args:
        error: of a step; other errors are returned unchanged.
        spec: of the job.
        free_bytes: returns the free memory, of a GPU where its argument says so.
    """
    asked = error.details.get("asked_bytes")
    if not isinstance(asked, int) or asked <= 0:
        return error
    free, towers = free_bytes(error.details.get("is_gpu") is True), spec.towers
    batch = spec.batch_size
    suggested = batch // 2
    while suggested and asked * suggested > free * batch:
        suggested //= 2
    suggested -= suggested % towers
    numbers = f"Batch {batch} asks for {as_bytes(asked)} at once; {as_bytes(free)} are free."
    if suggested:
        advice = f"{numbers} Try `batch_size` {suggested}, and `gradient_accumulation_steps` to train a batch in parts."
    else:
        advice = f"{numbers} No batch size fits: make the network smaller."
    memory = {"batch_size": batch, "asked_bytes": asked, "free_bytes": free, "suggested_batch_size": suggested}
    return TrainingError(
        error.rule, received=error.received, advice=advice, details={**error.details, "memory": memory}
    )
