"""Made-up weights with published names, the same in every process that makes them."""

import zlib

import numpy as np


def made_up(shapes):
    """Return key → array for key → shape: values at which no layer hides what another one gets wrong."""
    return {key: _array(key, tuple(shape)) for key, shape in shapes.items()}


def _array(key, shape):
    rng = np.random.default_rng(zlib.crc32(key.encode()))
    last = key.rsplit(".", 1)[-1]
    if last == "num_batches_tracked":
        return np.zeros((), np.int64)
    if last == "running_var" or (last == "weight" and len(shape) == 1) or last == "layer_scale":
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)
    normal = rng.standard_normal(shape, np.float32)
    if last == "weight":
        return normal * np.float32(np.sqrt(1.5 / np.prod(shape[1:])))
    return normal * np.float32(0.1)


def images(shape):
    """Return two images of (H, W, C), (2, H, W, C), 0 to 255."""
    return np.random.default_rng(sum(shape)).uniform(0, 255, (2, *shape)).astype(np.float32)
