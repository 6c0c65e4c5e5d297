"""Clipping, whitening, stretching and types."""

from __future__ import annotations

import numpy as np
import pytest

from ziggurat.dataflow.imgaug import Clip, ImageError, MeanVarianceNormalize, MinMaxNormalize, ToFloat32, ToUint8
from ziggurat.errors import UsageError

IMAGE = np.random.RandomState(0).randint(20, 200, (8, 9, 3)).astype(np.uint8)
CONSTANT = np.full((4, 5, 3), 77, np.uint8)


def test_clip():
    assert Clip(50, 100).augment(IMAGE).min() >= 50
    assert Clip(-10, 300).augment(IMAGE).tolist() == IMAGE.tolist()
    assert Clip(0, 0.5).augment(np.array([[-1.0, 0.2, 3.0]])).tolist() == [[0, 0.2, 0.5]]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "float64"])
def test_whitening(dtype):
    result = MeanVarianceNormalize().augment(IMAGE.astype(dtype))
    assert result.dtype == (np.float64 if dtype == "float64" else np.float32)
    assert result.mean() == pytest.approx(0, abs=1e-5)
    assert result.std() == pytest.approx(1, abs=1e-5)


def test_whitening_each_channel():
    result = MeanVarianceNormalize(all_channel=False).augment(IMAGE)
    assert result.mean(axis=(0, 1)) == pytest.approx([0, 0, 0], abs=1e-5)
    assert result.std(axis=(0, 1)) == pytest.approx([1, 1, 1], abs=1e-5)


def test_whitening_one_color_gives_zero():
    assert not MeanVarianceNormalize().augment(CONSTANT).any()
    assert not MeanVarianceNormalize(all_channel=False).augment(CONSTANT).any()


def test_stretching():
    result = MinMaxNormalize(-1, 1).augment(IMAGE)
    assert result.dtype == np.float32
    assert result.min() == -1
    assert result.max() == pytest.approx(1)
    apart = MinMaxNormalize(all_channel=False).augment(IMAGE)
    assert apart.max(axis=(0, 1)) == pytest.approx([255, 255, 255], abs=1e-3)


def test_stretching_one_color_gives_the_least_value():
    assert np.array_equal(MinMaxNormalize(3, 9).augment(CONSTANT), np.full((4, 5, 3), 3, np.float32))


def test_to_bytes_rounds_and_clips():
    image = np.array([[-3.0, 0.4, 0.6, 254.5, 999.0, np.inf]])
    assert ToUint8().augment(image).tolist() == [[0, 0, 1, 254, 255, 255]]
    assert ToUint8(white_level=1.0).augment(np.array([[0.0, 0.5, 1.0, 2.0]])).tolist() == [[0, 128, 255, 255]]
    assert ToUint8(white_level=65535).augment(np.array([[0, 65535]], np.uint16)).tolist() == [[0, 255]]


def test_to_float():
    result = ToFloat32().augment(IMAGE)
    assert result.dtype == np.float32
    assert np.array_equal(result, IMAGE)


def test_errors():
    with pytest.raises(ImageError, match=r"`ToUint8` needs numbers \(received: NaN in the image"):
        ToUint8().augment(np.array([[1.0, np.nan]]))
    with pytest.raises(UsageError, match=r"`\(min, max\)` is \(5, 1\), not a range \(low, high\)"):
        Clip(5, 1)
    with pytest.raises(UsageError, match=r"`white_level` is above 0"):
        ToUint8(0)
