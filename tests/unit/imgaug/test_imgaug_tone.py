"""Brightness, contrast, gamma and lighting."""

from __future__ import annotations

import numpy as np
import pytest

from ziggurat.dataflow.imgaug import Brightness, BrightnessScale, Contrast, Gamma, ImageError, Lighting
from ziggurat.errors import UsageError

RAMP = np.arange(0, 250, 10, dtype=np.uint8).reshape(5, 5)
COLORS = np.random.RandomState(0).randint(40, 200, (6, 7, 3)).astype(np.uint8)


def drawn(augmentor, image, seed=0):
    """Return what was drawn, and the result."""
    transform, result = augmentor.set_rng(np.random.RandomState(seed)).draw(image)
    return transform.params, result


def rounded(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("seed", range(4))
def test_brightness_adds_and_clips(seed):
    delta, result = drawn(Brightness(60), RAMP, seed)
    assert abs(delta) <= 60
    assert np.array_equal(result, rounded(RAMP + delta))


@pytest.mark.parametrize("seed", range(4))
def test_brightness_scale_multiplies_and_clips(seed):
    factor, result = drawn(BrightnessScale((0.5, 2)), COLORS, seed)
    assert 0.5 <= factor <= 2
    assert np.abs(result.astype(int) - rounded(COLORS * factor)).max() <= 1


@pytest.mark.parametrize("seed", range(4))
def test_contrast_keeps_the_mean_of_each_channel(seed):
    factor, result = drawn(Contrast((0.3, 1.2)), COLORS, seed)
    mean = COLORS.mean(axis=(0, 1))
    assert np.array_equal(result, rounded((COLORS - mean) * factor + mean))


def test_contrast_about_the_gray_mean():
    factor, result = drawn(Contrast((0.5, 0.5), rgb=True), COLORS.astype(np.float32))
    gray = (COLORS @ np.array([0.299, 0.587, 0.114])).mean()
    assert factor == 0.5
    assert np.allclose(result, (COLORS - gray) * 0.5 + gray, atol=1e-2)


def test_gamma_of_bytes_and_of_floats_is_the_same_curve():
    gamma, result = drawn(Gamma((0.5, 0.5)), RAMP)
    assert np.array_equal(result, rounded((RAMP / 255) ** (1 / 1.5) * 255))
    _gamma, full = drawn(Gamma((gamma, gamma)), RAMP.astype(np.float64))
    assert np.allclose(full, (RAMP / 255) ** (1 / 1.5) * 255)
    _gamma, unit = drawn(Gamma((gamma, gamma), white_level=1.0), (RAMP / 255).astype(np.float32))
    assert np.allclose(unit, (RAMP / 255) ** (1 / 1.5), atol=1e-5)


def test_lighting_adds_one_color():
    augmentor = Lighting(0.1, [10.0, 5.0, 1.0], np.eye(3))
    offset, result = drawn(augmentor, COLORS)
    assert np.array_equal(result, rounded(COLORS + offset))
    normal = np.random.RandomState(0).standard_normal(3)
    assert np.allclose(offset, 0.1 * normal * [10, 5, 1])


def test_floats_are_clipped_only_where_asked():
    image = np.array([[0.1, 0.9]], np.float32)
    assert Brightness(0).augment(image).tolist() == image.tolist()
    bright = BrightnessScale((2, 2), white_level=1.0)
    assert bright.augment(image)[0].tolist() == pytest.approx([0.2, 1.0])
    assert BrightnessScale((2, 2), clip=False).augment(image)[0].tolist() == pytest.approx([0.2, 1.8])


def test_a_list_of_floats_is_kept_in_its_type():
    for dtype in (np.float32, np.float64):
        for augmentor in (
            Brightness(5),
            BrightnessScale((1, 2)),
            Contrast((1, 2)),
            Contrast((1, 2), rgb=False),
            Gamma(),
        ):
            assert augmentor.augment(COLORS.astype(dtype)).dtype == dtype


def test_wrong_arguments():
    with pytest.raises(UsageError, match=r"`delta` is not negative, and finite \(received: -1"):
        Brightness(-1)
    with pytest.raises(UsageError, match=r"`range` is .*, not a range \(low, high\), from -0.999"):
        Gamma((-1.0, 0.5))
    with pytest.raises(UsageError, match=r"`eigval` has shape \(3,\) and `eigvec` \(3, 3\) \(received: \(2,\) and"):
        Lighting(1, [1, 2], np.eye(3))
    with pytest.raises(ImageError, match=r"`Lighting` needs images of three channels \(received: \(5, 5\)"):
        Lighting(1, [1, 2, 3], np.eye(3)).augment(RAMP)
