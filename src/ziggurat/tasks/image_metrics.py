"""Metrics of image-to-image networks: mean squared error, PSNR and SSIM, over all samples and of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import cv2
import numpy as np

from ziggurat.errors import UsageError
from ziggurat.tasks.metric import Metric
from ziggurat.tasks.metric_values import add_sums, check_same_shape, finite_number

__all__ = ["HIGHEST_PSNR", "ImageMetric", "sample_mse", "sample_psnr", "sample_ssim"]

HIGHEST_PSNR: Final = 100.0
"""PSNR in dB of images that are equal or nearly so; without a limit it would be infinite."""

_WINDOW_PX: Final = 11
_SIGMA_PX: Final = 1.5
_C1: Final = 0.01**2
_C2: Final = 0.03**2


class ImageMetric(Metric):
    """Mean over all samples of MSE, PSNR and SSIM, each computed per image; see ``sample_mse`` and the others.

    It reads the output ``output`` and the target ``y``, (N, H, W, C) or (N, H, W), which may differ in size from batch
    to batch.

    Args:
        scale: value of a white pixel, such as 255 or 1; black is 0. Values beyond are not clipped.
    """

    def __init__(self, scale: float) -> None:
        self._scale = _checked_scale(scale)
        whole = {name: np.zeros((), np.int64) for name in ("samples", "not_finite")}
        self._sums: dict[str, np.ndarray] = {**whole, **{name: np.zeros(()) for name in ("mse", "psnr", "ssim")}}

    def update(self, outputs: Mapping[str, np.ndarray], targets: Mapping[str, np.ndarray]) -> None:
        """Add a batch.

        Raises:
            UsageError: where the sizes of output and target differ.
        """
        output, target = _images(outputs["output"]), _images(targets["y"])
        check_same_shape(output, target)
        mse = sample_mse(output, target, self._scale)
        self._sums["samples"] += len(output)
        self._sums["not_finite"] += int(np.count_nonzero(~np.isfinite(mse)))
        self._sums["mse"] += mse.sum()
        self._sums["psnr"] += _psnr(mse).sum()
        self._sums["ssim"] += sample_ssim(output, target, self._scale).sum()

    def compute(self) -> dict[str, Any]:
        """Return the values.

        Returns:
            ``psnr`` in dB; ``ssim``, at most 1; ``mse``, of values from 0 to 1; ``counts``: ``samples``, and
            ``not_finite``, those with NaN or infinite pixels, because of which the three are None. Empty before the
            first sample.
        """
        count = int(self._sums["samples"])
        if not count:
            return {}
        values: dict[str, Any] = {name: finite_number(self._sums[name] / count) for name in ("psnr", "ssim", "mse")}
        return {**values, "counts": {"samples": count, "not_finite": int(self._sums["not_finite"])}}

    def state(self) -> dict[str, np.ndarray]:
        """Return the number of samples and the sums of their values."""
        return {name: value.copy() for name, value in self._sums.items()}

    def merge(self, state: Mapping[str, np.ndarray]) -> None:
        """Add the sums of other samples."""
        add_sums(self._sums, state)


def sample_mse(output: np.ndarray, target: np.ndarray, scale: float) -> np.ndarray:
    """Return the mean squared error of each image, (N) float64, of values that are divided by ``scale``.

    Args:
        output: (N, H, W, C) or (N, H, W).
        target: of the same shape.
        scale: value of a white pixel.
    """
    output, target = _images(output), _images(target)
    check_same_shape(output, target)
    with np.errstate(invalid="ignore", over="ignore"):
        # Image by image: a batch of large images in float64 would take several times its memory.
        return np.array([np.mean((np.subtract(*pair, dtype=np.float64) / scale) ** 2) for pair in zip(output, target)])


def sample_psnr(output: np.ndarray, target: np.ndarray, scale: float) -> np.ndarray:
    """Return the peak signal-to-noise ratio of each image in dB, (N) float64: 10 log10(1 / MSE), 100 at most.

    Args:
        output: (N, H, W, C) or (N, H, W).
        target: of the same shape.
        scale: value of a white pixel.
    """
    return _psnr(sample_mse(output, target, scale))


def sample_ssim(output: np.ndarray, target: np.ndarray, scale: float) -> np.ndarray:
    """Return the structural similarity of each image, (N) float64, the mean over its channels.

    It is that of Wang et al., "Image Quality Assessment: From Error Visibility to Structural Similarity" (IEEE
    Transactions on Image Processing, 2004): a Gaussian window of 11 x 11 pixels with a standard deviation of 1.5,
    K1 = 0.01, K2 = 0.03, and the mean over all places where the window lies inside the image, so that no border is
    made up. Where a side is shorter than 11 pixels, the window is as wide as the largest odd number that fits into the
    shorter side, with the same standard deviation.

    Args:
        output: (N, H, W, C) or (N, H, W).
        target: of the same shape.
        scale: value of a white pixel.
    """
    output, target = _images(output), _images(target)
    check_same_shape(output, target)
    if 0 in output.shape[1:]:
        raise UsageError("Images have pixels.", received=f"shape {output.shape}")
    size = min(_WINDOW_PX, *output.shape[1:3])
    window = cv2.getGaussianKernel(size - 1 + size % 2, _SIGMA_PX, cv2.CV_64F)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.array([_ssim(first, second, scale, window) for first, second in zip(output, target)])


def _ssim(first: np.ndarray, second: np.ndarray, scale: float, window: np.ndarray) -> float:
    """Return the similarity of two images (H, W, C)."""
    channels = first.shape[2]
    first, second = np.divide(first, scale, dtype=np.float64), np.divide(second, scale, dtype=np.float64)
    stack = np.concatenate([first, second, first * first, second * second, first * second], axis=2)
    border = len(window) // 2
    inside = (slice(border, stack.shape[0] - border), slice(border, stack.shape[1] - border))
    planes = [_smooth(stack[:, :, plane], window)[inside] for plane in range(5 * channels)]
    mean_1, mean_2, square_1, square_2, product = np.stack(planes).reshape(5, channels, *planes[0].shape)
    variances = square_1 - mean_1**2 + square_2 - mean_2**2
    covariance = product - mean_1 * mean_2
    top = (2 * mean_1 * mean_2 + _C1) * (2 * covariance + _C2)
    bottom = (mean_1**2 + mean_2**2 + _C1) * (variances + _C2)
    return float(np.mean(top / bottom))


def _smooth(plane: np.ndarray, window: np.ndarray) -> np.ndarray:
    return cv2.sepFilter2D(np.ascontiguousarray(plane), cv2.CV_64F, window, window)


def _psnr(mse: np.ndarray) -> np.ndarray:
    return -10.0 * np.log10(np.maximum(mse, 10 ** (-HIGHEST_PSNR / 10)))


def _images(values: np.ndarray) -> np.ndarray:
    """Return images as (N, H, W, C)."""
    values = np.asarray(values)
    if values.ndim == 3:
        return values[..., None]
    if values.ndim != 4:
        raise UsageError(
            f"Images of shape {values.shape} are neither (samples, height, width, channels) nor "
            "(samples, height, width)."
        )
    return values


def _checked_scale(scale: float) -> float:
    if not 0 < scale < float("inf"):
        raise UsageError("`scale` is the value of a white pixel, above 0.", received=repr(scale))
    return float(scale)
