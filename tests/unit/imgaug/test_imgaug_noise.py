"""Noise and blur."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ziggurat.dataflow.imgaug import GaussianBlur, GaussianNoise, ImageError, JpegNoise, SaltPepperNoise
from ziggurat.errors import UsageError

GRAY = np.full((60, 70, 3), 128, np.uint8)


def rng(seed=0):
    return np.random.RandomState(seed)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_normal_noise_has_its_deviation(dtype):
    noise = GaussianNoise(10).set_rng(rng()).augment(GRAY.astype(dtype)).astype(float) - 128
    assert noise.std() == pytest.approx(10, rel=0.03)
    assert abs(noise.mean()) < 0.4


def test_the_noise_of_a_seed_is_the_same_in_every_version():
    noise = GaussianNoise(100, clip=False).set_rng(rng()).augment(np.zeros((1, 4)))
    assert noise[0] == pytest.approx([71.009399, -11.043601, 15.585870, -20.687775], abs=1e-4)


def test_noise_differs_from_draw_to_draw_and_fits_any_size():
    augmentor = GaussianNoise(10).set_rng(rng())
    transform, first = augmentor.draw(GRAY)
    assert not np.array_equal(augmentor.augment(GRAY), first)
    assert transform.apply_image(GRAY[:10, :10]).shape == (10, 10, 3)


def test_bytes_do_not_wrap_around():
    black = GaussianNoise(30).augment(np.zeros((50, 50), np.uint8))
    assert (black == 0).mean() > 0.4
    assert black.max() < 200


def test_noise_of_floats_is_clipped_where_asked():
    image = np.zeros((20, 20), np.float32)
    assert GaussianNoise(1).augment(image).min() == 0
    assert GaussianNoise(1, clip=False).augment(image).min() < 0
    assert GaussianNoise(1, white_level=0.5).augment(image).max() == 0.5


def test_salt_and_pepper():
    result = SaltPepperNoise(0.1, 0.2).set_rng(rng()).augment(GRAY)
    white, black = (result == 255).all(axis=2), (result == 0).all(axis=2)
    assert white.mean() == pytest.approx(0.1, abs=0.02)
    assert black.mean() == pytest.approx(0.2, abs=0.02)
    assert (result[~white & ~black] == 128).all()
    assert (
        SaltPepperNoise(1, 0, white_level=1.0).augment(np.zeros((3, 3), np.float32)).tolist()
        == np.ones((3, 3)).tolist()
    )


def test_jpeg_is_worse_at_low_quality_and_keeps_the_channels():
    image = cv2.GaussianBlur(rng().randint(0, 255, (64, 64, 3)).astype(np.uint8), (7, 7), 0)
    losses = []
    for quality in (5, 50, 100):
        result = JpegNoise((quality, quality)).augment(image)
        assert result.shape == image.shape
        losses.append(np.abs(result.astype(int) - image).mean())
    assert losses[0] > losses[1] > losses[2]
    assert JpegNoise().augment(image[:, :, :1]).shape == (64, 64, 1)
    assert JpegNoise().augment(image[:, :, 0]).shape == (64, 64)


def test_jpeg_keeps_red_red():
    red = np.zeros((16, 16, 3), np.uint8)
    red[:, :, 0] = 250
    assert np.abs(JpegNoise((95, 95)).augment(red).astype(int) - red).max() < 5


def test_jpeg_reaches_both_ends_of_its_range():
    augmentor = JpegNoise((98, 100)).set_rng(rng())
    assert {augmentor.get_transform(GRAY).params for _ in range(60)} == {98, 99, 100}


def test_blur_draws_odd_windows():
    augmentor = GaussianBlur((0, 3)).set_rng(rng())
    windows = {augmentor.get_transform(GRAY).params.size for _ in range(100)}
    assert windows == {(1, 1), (3, 3), (5, 5)}
    apart = GaussianBlur((0, 3), (1, 2), symmetric=False).set_rng(rng())
    drawn = [apart.get_transform(GRAY).params for _ in range(100)]
    assert {window.size for window in drawn} == {(a, b) for a in (1, 3, 5) for b in (1, 3, 5)}
    assert all(1 <= sigma <= 2 for window in drawn for sigma in window.sigma)


def test_blur_is_opencvs():
    image = rng().randint(0, 255, (20, 20, 3)).astype(np.uint8)
    assert np.array_equal(GaussianBlur((2, 3)).augment(image), cv2.GaussianBlur(image, (5, 5), 0))
    assert GaussianBlur((0, 1)).augment(image).tolist() == image.tolist()


def test_the_old_name_of_the_window():
    with pytest.warns(DeprecationWarning, match=r"`max_size` is deprecated. Use `size_range=\(0, max_size\)`"):
        assert GaussianBlur(max_size=4).size_range == (0, 4)


def test_errors():
    with pytest.raises(ImageError, match=r"JpegNoise takes images of type uint8 \(received: float32"):
        JpegNoise().augment(GRAY.astype(np.float32))
    with pytest.raises(ImageError, match=r"JPEG has one or three channels \(received: 2 channels"):
        JpegNoise().augment(GRAY[:, :, :2])
    with pytest.raises(UsageError, match=r"JPEG's quality is from 0 to 100"):
        JpegNoise((50, 120))
    with pytest.raises(UsageError, match=r"add up to at most 1 \(received: 0.7 and 0.6"):
        SaltPepperNoise(0.7, 0.6)
    with pytest.raises(UsageError, match=r"`size_range` is \[low, high\): high itself is never drawn"):
        GaussianBlur((2, 2))
    with pytest.raises(UsageError, match=r"`sigma` is not negative"):
        GaussianNoise(-1)
