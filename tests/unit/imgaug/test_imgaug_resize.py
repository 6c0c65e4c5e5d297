"""Scaling to a size."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ziggurat.dataflow.imgaug import (
    ConstantBackgroundFiller,
    ImageError,
    RandomResize,
    Resize,
    ResizeShortestEdge,
    ResizeTransform,
)
from ziggurat.errors import UnknownNameError, UsageError


def half_and_half(height=40, width=80):
    """Left half 100, right half 200."""
    image = np.full((height, width, 3), 100, np.uint8)
    image[:, width // 2 :] = 200
    return image


def rng(seed=0):
    return np.random.RandomState(seed)


def test_resize_transform():
    transform = ResizeTransform(2, 2, 4, 6)
    image = np.array([[0, 90], [0, 90]], np.uint8)
    assert transform.apply_image(image)[0].tolist() == [0, 0, 30, 60, 90, 90]
    assert transform.apply_coords(np.array([[1.0, 1.0], [2.0, 2.0]])).tolist() == [[3, 2], [6, 4]]
    assert transform.apply_mask(np.array([[1, 5], [7, 9]]))[0].tolist() == [1, 1, 1, 5, 5, 5]


def test_the_same_size_costs_nothing():
    image = half_and_half()
    assert ResizeTransform(40, 80, 40, 80).apply_image(image) is image


def test_squash_ignores_the_aspect_ratio():
    result = Resize((20, 20)).augment(half_and_half())
    assert result.shape == (20, 20, 3)
    assert result[0, :, 0].tolist() == [100] * 10 + [200] * 10


def test_crop_cuts_both_sides():
    result = Resize(20, mode="crop").augment(half_and_half())  # scaled to 20 x 40, ten columns off each side
    assert result.shape == (20, 20, 3)
    assert result[0, :, 0].tolist() == [100] * 10 + [200] * 10
    transform = Resize(20, mode="crop").get_transform(half_and_half())
    assert transform.apply_boxes(np.array([[20, 0, 60, 40]])).tolist() == [[0, 0, 20, 20]]


def test_fill_pads_both_sides():
    augmentor = Resize(20, mode="fill", background_filler=ConstantBackgroundFiller(7))
    result = augmentor.augment(half_and_half())  # scaled to 10 x 20, five rows above and below
    assert result[:, 0, 0].tolist() == [7] * 5 + [100] * 10 + [7] * 5
    transform = augmentor.get_transform(half_and_half())
    assert transform.apply_boxes(np.array([[0, 0, 80, 40]])).tolist() == [[0, 5, 20, 15]]
    assert transform.apply_mask(np.ones((40, 80), np.uint8), 255)[:, 0].tolist() == [255] * 5 + [1] * 10 + [255] * 5


def test_half_crop_takes_the_mean_of_both_ratios():
    augmentor = Resize(20, mode="half_crop", background_filler=ConstantBackgroundFiller(7))
    result = augmentor.augment(half_and_half())  # ratios 2 and 4, so 3: scaled to 13 x 27
    assert result.shape == (20, 20, 3)
    assert (result[:, 0, 0] == 7).sum() == 7
    transform = augmentor.get_transform(half_and_half())
    assert transform.apply_coords(np.array([[0.0, 0.0], [80.0, 40.0]])).tolist() == [[-3, 3], [24, 16]]


def test_filling_noise_is_drawn_anew_and_follows_the_seed():
    augmentor = Resize(20, mode="fill").set_rng(rng())
    first, second = augmentor.augment(half_and_half()), augmentor.augment(half_and_half())
    assert np.array_equal(first[5:15], second[5:15])
    assert not np.array_equal(first, second)
    assert np.array_equal(augmentor.set_rng(rng()).augment(half_and_half()), first)
    assert 100 < first[:5].mean() < 155


@pytest.mark.parametrize("mode", ["squash", "crop", "fill", "half_crop"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 500), (500, 3), (37, 37), (64, 48)])
def test_every_mode_gives_the_size(mode, shape):
    assert Resize((37, 41), mode=mode).augment(np.ones(shape, np.float32)).shape == (37, 41)


def test_shortest_edge():
    assert ResizeShortestEdge(20).augment(half_and_half(40, 81)).shape == (20, 41, 3)
    assert ResizeShortestEdge(20).augment(half_and_half(80, 40)).shape == (40, 20, 3)


def test_random_resize_by_ratios_keeps_the_aspect_limit():
    augmentor = RandomResize((0.5, 2.0), (0.5, 2.0), aspect_ratio_thres=0.1).set_rng(rng())
    sizes = [augmentor.augment(half_and_half(100, 200)).shape[:2] for _ in range(100)]
    assert all(abs(width / height / 2 - 1) < 0.12 for height, width in sizes)
    assert min(width for _height, width in sizes) < 140 < 300 < max(width for _height, width in sizes)


def test_random_resize_in_pixels():
    augmentor = RandomResize((30, 60), (10, 90), aspect_ratio_thres=5.0).set_rng(rng())
    sizes = [augmentor.augment(half_and_half()).shape[:2] for _ in range(50)]
    assert all(30 <= width <= 60 and 10 <= height <= 90 for height, width in sizes)
    kept = RandomResize((30, 60), aspect_ratio_thres=0).set_rng(rng()).augment(half_and_half()).shape
    assert abs(kept[1] / kept[0] - 2) < 0.1


def test_random_resize_with_a_minimum():
    augmentor = RandomResize((0.1, 0.2), minimum=(30, 25), aspect_ratio_thres=0)
    assert augmentor.augment(half_and_half()).shape == (25, 30, 3)


def test_random_resize_never_gives_up_silently():
    with pytest.raises(ImageError, match=r"keeps the aspect ratio within its limit \(received: an image of 40 x 80"):
        RandomResize((30, 30), (30, 30)).augment(half_and_half())


def test_area_interpolation_moves_nothing_where_a_side_grows():
    image = half_and_half(40, 80)
    grown = ResizeTransform(40, 80, 20, 90, cv2.INTER_AREA).apply_image(image)
    assert np.array_equal(grown, ResizeTransform(40, 80, 20, 90, cv2.INTER_LINEAR).apply_image(image))
    shrunk = ResizeTransform(40, 80, 20, 40, cv2.INTER_AREA).apply_image(image)
    assert shrunk[0, :, 0].tolist() == [100] * 20 + [200] * 20


def test_sizes_may_be_numpys():
    assert Resize(np.int64(7)).augment(half_and_half()).shape == (7, 7, 3)
    assert Resize(np.array([7, 8])).augment(half_and_half()).shape == (7, 8, 3)


def test_wrong_arguments():
    with pytest.raises(UnknownNameError, match=r"`halfcrop` is not a known mode of `Resize`. Did you mean `half_crop`"):
        Resize(10, mode="halfcrop")
    with pytest.raises(UsageError, match=r"both in pixels .* or both ratios .* \(received: xrange=\(1, 2\), y"):
        RandomResize((1, 2), (1.0, 2.0))
    with pytest.raises(ImageError, match=r"4 x 5 \(height x width\), and the ResizeTransform was drawn for 2 x 2"):
        ResizeTransform(2, 2, 4, 4).apply_mask(np.zeros((4, 5), int))
