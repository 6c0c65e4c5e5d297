"""Hue, saturation, color spaces and gray: RGB everywhere."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ziggurat.dataflow.imgaug import ColorSpace, Grayscale, Hue, HueSaturationValue, ImageError, Saturation
from ziggurat.errors import UsageError

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)
COLORS = np.random.RandomState(0).randint(0, 256, (6, 7, 3)).astype(np.uint8)


def plain(color, dtype=np.uint8):
    return np.full((2, 2, 3), color, dtype=dtype)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize(("turn", "expected"), [(0, RED), (60, GREEN), (120, BLUE), (180, RED), (-60, BLUE)])
def test_hue_turns_the_circle(dtype, turn, expected):
    result = Hue((turn, turn)).augment(plain(RED, dtype))
    assert np.allclose(result, plain(expected, dtype), atol=1e-3)


def test_hue_keeps_the_scale_of_floats():
    result = Hue((60, 60)).augment(plain((1.0, 0, 0), np.float32))
    assert np.allclose(result, plain((0, 1.0, 0), np.float32), atol=1e-6)


def test_hue_of_bgr():
    assert Hue((60, 60), rgb=False).augment(plain(BLUE)).tolist() == plain(GREEN).tolist()  # red in BGR


def test_hue_never_overflows():
    augmentor = Hue((-500, 500)).set_rng(np.random.RandomState(0))
    value = COLORS.max(axis=2)
    for _ in range(20):
        assert np.abs(augmentor.augment(COLORS).max(axis=2).astype(int) - value).max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_saturation_mixes_with_gray(dtype):
    transform, result = Saturation(0.4).set_rng(np.random.RandomState(1)).draw(COLORS.astype(dtype))
    share = transform.params
    assert 0.6 <= share <= 1.4
    gray = (COLORS @ np.array([0.299, 0.587, 0.114]))[:, :, None]
    expected = np.clip(COLORS * share + gray * (1 - share), 0, 255)
    assert np.abs(result - expected).max() <= (1.5 if dtype == np.uint8 else 0.1)


@pytest.mark.parametrize("augmentor", [Hue(), Saturation()])
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1)])
def test_a_gray_image_has_neither_hue_nor_saturation(augmentor, shape):
    image = np.arange(20, dtype=np.uint8).reshape(shape)
    assert np.array_equal(augmentor.augment(image), image)


def test_hue_saturation_and_value_together():
    augmentor = HueSaturationValue(0.02, 0.04, 0.06).set_rng(np.random.RandomState(0))
    drawn = [augmentor.get_transform(COLORS).params for _ in range(500)]
    assert np.std(drawn, axis=0) == pytest.approx([0.02, 0.04, 0.06], rel=0.15)
    assert np.array_equal(HueSaturationValue(0, 0, 0).augment(plain(RED)), plain(RED))
    gray = HueSaturationValue(0, 0, 0.1).set_rng(np.random.RandomState(0)).augment(np.full((2, 2), 100, np.uint8))
    assert gray[0, 0] == round(100 + np.random.RandomState(0).standard_normal(3)[2] * 0.1 * 255)


def test_value_of_floats_follows_their_white():
    image = plain((0.5, 0.25, 0.0), np.float32)
    transform, result = HueSaturationValue(0, 0, 0.1, white_level=1.0).set_rng(np.random.RandomState(3)).draw(image)
    value = transform.params[2]
    assert result[0, 0].tolist() == pytest.approx([0.5 + value, (0.5 + value) / 2, 0], abs=1e-5)


def test_gray_is_made_of_rgb():
    assert Grayscale().augment(plain(RED)).tolist() == np.full((2, 2, 1), 76).tolist()
    assert Grayscale(rgb=False).augment(plain(RED))[0, 0, 0] == 29
    assert Grayscale(keepdims=False).augment(plain(RED)).shape == (2, 2)
    assert Grayscale(keepshape=True).augment(plain(RED))[0, 0].tolist() == [76, 76, 76]
    assert Grayscale().augment(np.full((3, 4), 7, np.uint8)).shape == (3, 4, 1)


def test_color_space():
    assert ColorSpace(cv2.COLOR_RGB2GRAY).augment(plain(RED)).shape == (2, 2, 1)
    assert ColorSpace(cv2.COLOR_RGB2GRAY, keepdims=False).augment(plain(RED)).shape == (2, 2)
    assert ColorSpace(cv2.COLOR_RGB2BGR).augment(plain(RED)).tolist() == plain(BLUE).tolist()


def test_errors():
    four = np.zeros((3, 3, 4), np.uint8)
    with pytest.raises(
        ImageError, match=r"Hue needs images of one or three channels \(received: 4 channels\). Drop the"
    ):
        Hue().augment(four)
    with pytest.raises(ImageError, match=r"Gray is made of images of one or three channels \(received: 4"):
        Grayscale().augment(four)
    with pytest.raises(ImageError, match=r"needs an image with the channels of its source \(received: an image \(3"):
        ColorSpace(cv2.COLOR_RGB2HSV).augment(four[:, :, 0])
    with pytest.raises(UsageError, match=r"`alpha` is from 0 to 1 \(received: 2"):
        Saturation(2)
