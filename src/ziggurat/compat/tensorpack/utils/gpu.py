"""Number and choice of GPUs."""

from __future__ import annotations

from contextlib import AbstractContextManager

from ziggurat.compat.tensorpack.utils.general import change_env
from ziggurat.tf.sessions import visible_gpus

__all__ = ["change_gpu", "get_nr_gpu", "get_num_gpu"]


def change_gpu(val: int | str | list[int] | None) -> AbstractContextManager[None]:
    """Return a context in which ``CUDA_VISIBLE_DEVICES`` names other GPUs; it acts before TensorFlow has opened any.

    Args:
        val: numbers of GPUs; None for no GPU.
    """
    if val is None:
        return change_env("CUDA_VISIBLE_DEVICES", "-1")
    chosen = ",".join(map(str, val)) if isinstance(val, list | tuple) else str(val)
    return change_env("CUDA_VISIBLE_DEVICES", chosen)


def get_num_gpu() -> int:
    """Return the number of GPUs that TensorFlow may use."""
    return len(visible_gpus())


get_nr_gpu = get_num_gpu
"""Older name of ``get_num_gpu``."""
