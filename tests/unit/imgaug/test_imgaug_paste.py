"""Pasting on a canvas."""

from __future__ import annotations

import numpy as np
import pytest

from ziggurat.dataflow.imgaug import (
    BackgroundFiller,
    CenterPaste,
    ConstantBackgroundFiller,
    ImageError,
    NoiseBackgroundFiller,
    RandomPaste,
)
from ziggurat.errors import UsageError

IMAGE = np.full((2, 3, 3), 9, np.uint8)


def test_center_paste():
    augmentor = CenterPaste((6, 7), ConstantBackgroundFiller([1, 2, 3]))
    transform, result = augmentor.draw(IMAGE)
    assert result.shape == (6, 7, 3)
    assert np.array_equal(result[2:4, 2:5], IMAGE)
    assert result[0, 0].tolist() == [1, 2, 3]
    assert transform.apply_coords(np.array([[0.0, 0.0]])).tolist() == [[2, 2]]
    mask = transform.apply_mask(np.ones((2, 3), np.int32), 255)
    assert (mask == 1).sum() == 6
    assert (mask == 255).sum() == 36


def test_black_is_the_default():
    assert CenterPaste(4).augment(IMAGE).sum() == IMAGE.sum()


def test_random_paste_reaches_every_place():
    augmentor = RandomPaste((4, 4)).set_rng(np.random.RandomState(0))
    places = {tuple(augmentor.get_transform(IMAGE).apply_coords(np.zeros((1, 2)))[0]) for _ in range(100)}
    assert places == {(x, y) for x in (0, 1) for y in (0, 1, 2)}


def test_noise_follows_its_seed_and_the_images_type():
    image = np.zeros((1, 1, 3), np.uint8)
    noise = NoiseBackgroundFiller(5)
    assert np.array_equal(noise.fill((30, 30), image), noise.fill((30, 30), image))
    assert not np.array_equal(noise.fill((30, 30), image), NoiseBackgroundFiller(6).fill((30, 30), image))
    assert noise.fill((30, 30), image.astype(np.uint16)).max() > 60000
    floating = NoiseBackgroundFiller(5, white_level=1.0).fill((30, 30), image.astype(np.float32))
    assert floating.dtype == np.float32
    assert 0.9 < floating.max() <= 1.0


class Kept(BackgroundFiller):
    """A user's filler that keeps its canvas."""

    def __init__(self, shape):
        self.canvas = np.zeros(shape, np.uint8)

    def fill(self, background_shape, img):
        return self.canvas


def test_a_users_filler_may_keep_its_canvas():
    filler = Kept((4, 4, 3))
    assert CenterPaste(4, filler).augment(IMAGE).sum() == IMAGE.sum()
    assert filler.canvas.sum() == 0


def test_errors():
    with pytest.raises(ImageError, match=r"An image of 2 x 3 .* does not fit on the canvas of CenterPaste"):
        CenterPaste(2).augment(IMAGE)
    with pytest.raises(UsageError, match=r"shape \(5, 5, 3\), not of \(4, 4\) .* Correct `Kept.fill`"):
        CenterPaste(4, Kept((5, 5, 3))).augment(IMAGE)
    with pytest.raises(NotImplementedError, match=r"BackgroundFiller does not define `fill`"):
        CenterPaste(4, BackgroundFiller()).augment(IMAGE)
