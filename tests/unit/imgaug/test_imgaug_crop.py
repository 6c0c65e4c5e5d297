"""Cutting out parts, and covering them."""

from __future__ import annotations

import numpy as np
import pytest

from ziggurat.dataflow.imgaug import (
    CenterCrop,
    CropTransform,
    GoogleNetRandomCropAndResize,
    ImageError,
    RandomCrop,
    RandomCropRandomShape,
    RandomCutout,
    RandomResizedCrop,
)
from ziggurat.errors import UsageError

IMAGE = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)


def rng(seed=0):
    return np.random.RandomState(seed)


def test_crop_moves_labels_and_copies_nothing():
    transform = CropTransform(1, 2, 3, 4)
    part = transform.apply_image(IMAGE)
    assert np.array_equal(part, IMAGE[1:4, 2:6])
    assert np.shares_memory(part, IMAGE)
    assert transform.apply_coords(np.array([[2.0, 1.0]])).tolist() == [[0, 0]]
    assert np.array_equal(transform.apply_mask(IMAGE[:, :, 0]), IMAGE[1:4, 2:6, 0])


def test_crop_outside_is_an_error():
    with pytest.raises(ImageError, match=r"lies inside the image \(received: rows 3 to 6 and columns 0 to 2 of a"):
        CropTransform(3, 0, 3, 2).apply_image(IMAGE)


def test_random_crop_reaches_every_place():
    augmentor = RandomCrop((4, 5)).set_rng(rng())
    corners = {tuple(augmentor.augment(IMAGE)[0, 0]) for _ in range(200)}
    assert corners == {tuple(IMAGE[y, x]) for y in range(2) for x in range(3)}


def test_crop_of_the_whole_image():
    assert np.array_equal(RandomCrop((5, 7)).augment(IMAGE), IMAGE)


def test_center_crop():
    assert np.array_equal(CenterCrop((3, 3)).augment(IMAGE), IMAGE[1:4, 2:5])


@pytest.mark.parametrize("augmentor", [RandomCrop(6), CenterCrop(6), RandomCropRandomShape(6, 6)])
def test_too_small_images_are_an_error(augmentor):
    name = type(augmentor).__name__
    message = rf"{name} needs images at least as large .* \(received: 5 x 7 .* for a part of 6 x 6\). Put a"
    with pytest.raises(ImageError, match=message):
        augmentor.augment(IMAGE)


def test_random_shapes_reach_every_limit():
    augmentor = RandomCropRandomShape(2, 3, 4, 5).set_rng(rng())
    shapes = {augmentor.augment(IMAGE).shape[:2] for _ in range(300)}
    assert shapes == {(h, w) for h in (3, 4, 5) for w in (2, 3, 4)}
    one_short = RandomCropRandomShape(6, 5).set_rng(rng())
    corners = {int(one_short.augment(IMAGE)[0, 0, 0]) for _ in range(60)}
    assert corners == {0, 3}  # 6 of 7 columns: both places, the last one too


def test_random_shapes_keep_the_aspect_ratio():
    augmentor = RandomCropRandomShape(1, 1, max_aspect_ratio=1.5).set_rng(rng())
    for _ in range(200):
        height, width = augmentor.augment(IMAGE).shape[:2]
        assert max(height, width) <= 1.5 * min(height, width)


def test_impossible_shapes_are_an_error():
    with pytest.raises(UsageError, match=r"largest part is not smaller than the smallest one \(received: width 5 to 4"):
        RandomCropRandomShape(5, 5, wmax=4)
    with pytest.raises(ImageError, match=r"hold a part of a permitted shape \(received: 5 x 7 .* Lower `wmin`"):
        RandomCropRandomShape(7, 2, max_aspect_ratio=1.2).augment(IMAGE)


def test_random_resized_crop_has_the_asked_area_and_ratio():
    augmentor = GoogleNetRandomCropAndResize((0.2, 0.5), (0.75, 1.333)).set_rng(rng())
    for _ in range(200):
        y0, x0, height, width = augmentor.draw_part(300, 400)
        assert 0.19 < height * width / (300 * 400) < 0.51
        assert 0.74 < width / height < 1.35
        assert 0 <= y0 <= 300 - height
        assert 0 <= x0 <= 400 - width


def test_random_resized_crop_falls_back_to_the_central_part():
    augmentor = RandomResizedCrop((1.0, 1.0), (1.0, 1.0), target_shape=(10, 20)).set_rng(rng())
    assert augmentor.draw_part(100, 100) in {(0, 0, 100, 100)}
    assert augmentor.draw_part(100, 40) == (40, 0, 20, 40)
    image = np.zeros((100, 40, 3), np.uint8)
    image[40:60] = 200
    assert augmentor.augment(image).shape == (10, 20, 3)
    assert augmentor.augment(image).min() == 200


def test_random_resized_crop_is_crop_and_resize():
    image = np.random.RandomState(1).randint(0, 255, (40, 50, 3)).astype(np.uint8)
    augmentor = RandomResizedCrop(target_shape=16)
    transform = augmentor.set_rng(rng(5)).get_transform(image)
    y0, x0, height, width = augmentor.set_rng(rng(5)).draw_part(40, 50)
    assert transform.apply_coords(np.array([[x0 + width, y0 + height]], float)).tolist() == [[16, 16]]
    assert transform.apply_image(image).shape == (16, 16, 3)


def test_cutout_covers_a_rectangle_of_the_drawn_size():
    image = np.full((9, 9, 3), 7, np.uint8)
    augmentor = RandomCutout((2, 3), (4, 5), fill=[1, 2, 3]).set_rng(rng())
    areas = set()
    for _ in range(100):
        covered = (augmentor.augment(image) != 7).all(axis=2)
        rows, columns = np.flatnonzero(covered.any(axis=1)), np.flatnonzero(covered.any(axis=0))
        assert covered.sum() == len(rows) * len(columns)
        areas.add((len(rows), len(columns)))
    assert areas == {(2, 4), (2, 5), (3, 4), (3, 5)}
    assert augmentor.augment(image).min() == 1


def test_cutout_larger_than_the_image_covers_all_of_it():
    assert RandomCutout(50, 50, fill=3).augment(IMAGE).tolist() == np.full_like(IMAGE, 3).tolist()


def test_wrong_arguments():
    with pytest.raises(UsageError, match=r"`crop_shape` is a number of pixels, or \(height, width\), .* \(received: 0"):
        RandomCrop(0)
    with pytest.raises(UsageError, match=r"`h_range` is \(5, 2\), not a range \(low, high\), from 0 to ∞"):
        RandomCutout((5, 2), 3)
    with pytest.raises(ImageError, match=r"A color is one number, or one for each channel \(received: 2 numbers"):
        RandomCutout(2, 2, fill=(1, 2)).augment(IMAGE)
    with pytest.raises(UsageError, match=r"`crop_area_fraction` is .*, not a range \(low, high\), from 0 to 1"):
        RandomResizedCrop((0.5, 2))
