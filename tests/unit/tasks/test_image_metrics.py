"""Metrics of image-to-image networks, against the formulas of the papers, window by window."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.unit.tasks.metric_parts import assert_close, measured, merged
from ziggurat.errors import UsageError
from ziggurat.tasks.image_metrics import ImageMetric, sample_mse, sample_psnr, sample_ssim


def _make():
    return ImageMetric(255)


def _batch(count=6, height=17, width=14, channels=3, seed=0):
    chance = np.random.default_rng(seed)
    target = chance.integers(0, 256, (count, height, width, channels)).astype(np.float32)
    return {"output": target + chance.normal(0, 30, target.shape).astype(np.float32)}, {"y": target}


def _ssim(first, second, window):
    """Return the SSIM of two planes with values from 0 to 1, place by place, as in the paper."""
    reach = np.arange(window) - window // 2
    weights = np.exp(-(reach[:, None] ** 2 + reach[None, :] ** 2) / (2 * 1.5**2))
    weights /= weights.sum()
    found = []
    for top in range(first.shape[0] - window + 1):
        for left in range(first.shape[1] - window + 1):
            x = first[top : top + window, left : left + window]
            y = second[top : top + window, left : left + window]
            mean_x, mean_y = (weights * x).sum(), (weights * y).sum()
            variance_x = (weights * (x - mean_x) ** 2).sum()
            variance_y = (weights * (y - mean_y) ** 2).sum()
            covariance = (weights * (x - mean_x) * (y - mean_y)).sum()
            top_part = (2 * mean_x * mean_y + 0.01**2) * (2 * covariance + 0.03**2)
            found.append(top_part / ((mean_x**2 + mean_y**2 + 0.01**2) * (variance_x + variance_y + 0.03**2)))
    return np.mean(found)


def test_image_values_are_means_of_the_samples():
    outputs, targets = _batch()
    values = measured(_make, outputs, targets)
    differences = (outputs["output"].astype(np.float64) - targets["y"]) / 255
    squares = np.mean(differences**2, axis=(1, 2, 3))
    assert values["mse"] == pytest.approx(squares.mean(), rel=1e-9)
    assert values["psnr"] == pytest.approx(np.mean(10 * np.log10(1 / squares)), rel=1e-9)
    assert values["ssim"] == pytest.approx(sample_ssim(outputs["output"], targets["y"], 255).mean(), rel=1e-12)
    assert values["counts"] == {"samples": 6, "not_finite": 0}
    json.dumps(values)


def test_image_parts_merge_to_one_pass():
    outputs, targets = _batch()
    for seed in range(4):
        assert_close(merged(_make, outputs, targets, seed), measured(_make, outputs, targets))


@pytest.mark.parametrize(
    ("height", "width", "window"), [(17, 14, 11), (11, 11, 11), (10, 30, 9), (12, 7, 7), (2, 9, 1), (1, 1, 1)]
)
def test_ssim_is_that_of_the_paper(height, width, window):
    outputs, targets = _batch(2, height, width, 2)
    found = sample_ssim(outputs["output"], targets["y"], 255)
    for number in range(2):
        first, second = (array[number].astype(np.float64) / 255 for array in (outputs["output"], targets["y"]))
        planes = [_ssim(first[:, :, channel], second[:, :, channel], window) for channel in range(2)]
        assert found[number] == pytest.approx(np.mean(planes), abs=1e-9)


def test_an_image_is_like_itself():
    _, targets = _batch()
    image = targets["y"].astype(np.uint8)
    assert sample_ssim(image, image, 255) == pytest.approx(np.ones(6), abs=1e-12)
    assert sample_mse(image, image, 255).tolist() == [0] * 6
    assert sample_psnr(image, image, 255).tolist() == [100] * 6


def test_image_values_do_not_depend_on_the_scale():
    outputs, targets = _batch()
    small = measured(lambda: ImageMetric(1), {"output": outputs["output"] / 255}, {"y": targets["y"] / 255})
    assert_close(small, measured(_make, outputs, targets), 1e-5)


def test_whole_numbers_do_not_wrap_around():
    black, white = np.zeros((1, 12, 12, 1), np.uint8), np.full((1, 12, 12, 1), 255, np.uint8)
    assert sample_mse(black, white, 255).tolist() == [1]
    assert sample_psnr(black, white, 255).tolist() == [0]
    assert sample_ssim(black[..., 0], white[..., 0], 255) == pytest.approx([0.0001 / 1.0001])


def test_batches_of_images_may_differ_in_size():
    metric = _make()
    for size in (12, 20):
        metric.update(*_batch(2, size, size))
    assert metric.compute()["counts"]["samples"] == 4
    assert ImageMetric(1).compute() == {}


def test_an_image_with_nan_hides_nothing():
    outputs, targets = _batch()
    outputs["output"][1, 2, 3, 0] = np.nan
    values = measured(_make, outputs, targets)
    assert values == {"psnr": None, "ssim": None, "mse": None, "counts": {"samples": 6, "not_finite": 1}}


def test_images_of_other_sizes_are_refused():
    with pytest.raises(UsageError, match=r"output \(1, 8, 8, 1\) for target \(1, 8, 9, 1\)"):
        measured(_make, {"output": np.ones((1, 8, 8, 1))}, {"y": np.ones((1, 8, 9, 1))})
    with pytest.raises(UsageError, match=r"Images of shape \(8, 8\) are neither"):
        measured(_make, {"output": np.ones((8, 8))}, {"y": np.ones((8, 8))})
    with pytest.raises(UsageError, match=r"Images have pixels"):
        sample_ssim(np.ones((1, 0, 8, 1)), np.ones((1, 0, 8, 1)), 1)
    with pytest.raises(UsageError, match=r"white pixel, above 0 \(received: 0"):
        ImageMetric(0)
    with pytest.raises(UsageError, match=r"`samples` missing"):
        _make().merge({})
