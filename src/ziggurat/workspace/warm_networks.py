"""Warm networks without a studio: predictions by processes that keep trained networks open."""

from __future__ import annotations

from ziggurat.services.inference_pool import INFERENCE_COMMAND, InferencePool
from ziggurat.settings import Settings
from ziggurat.workspace.frameworks import worker_environment

__all__ = ["open_inference_pool"]


def open_inference_pool(settings: Settings) -> InferencePool:
    """Return a pool of the processes that predict; close it, or let this process end.

    Args:
        settings: settings of this process; those of the pool get the same.
    """
    return InferencePool(INFERENCE_COMMAND, worker_environment(settings))
