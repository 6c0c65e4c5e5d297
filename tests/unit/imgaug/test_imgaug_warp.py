"""Shift, turn, zoom and shear."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ziggurat.dataflow.imgaug import (
    Affine,
    Rescale,
    Rotation,
    RotationAndCropValid,
    Shear,
    Shift,
    WarpAffineTransform,
)
from ziggurat.errors import UsageError

IMAGE = np.random.RandomState(0).randint(0, 255, (8, 8, 3)).astype(np.uint8)


def rng(seed=0):
    return np.random.RandomState(seed)


def test_shift_by_whole_pixels_mixes_none():
    augmentor = Shift(0.25, 0.25, border=cv2.BORDER_CONSTANT, border_value=(1, 2, 3)).set_rng(rng(1))
    seen = set()
    for _ in range(60):
        transform, result = augmentor.draw(IMAGE)
        dx, dy = transform.apply_coords(np.zeros((1, 2)))[0].astype(int)
        seen.add((dx, dy))
        back = np.roll(result, (-dy, -dx), axis=(0, 1))
        kept = back[max(0, -dy) : 8 - max(0, dy), max(0, -dx) : 8 - max(0, dx)]
        assert np.array_equal(kept, IMAGE[max(0, -dy) : 8 - max(0, dy), max(0, -dx) : 8 - max(0, dx)])
        if dx > 0:
            assert result[0, 0].tolist() == [1, 2, 3]
    assert {dx for dx, _dy in seen} == {dy for _dx, dy in seen} == {-2, -1, 0, 1, 2}


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_quarter_turn_about_the_center_is_exact(quarters):
    augmentor = Rotation(360, center_range=(0.5, 0.5), step_deg=90).set_rng(rng())
    found = set()
    for _ in range(40):
        result = augmentor.augment(IMAGE)
        matching = [turns for turns in range(4) if np.array_equal(result, np.rot90(IMAGE, turns))]
        found.update(matching)
        assert len(matching) == 1
    assert quarters in found


def test_steps_stay_within_the_limit():
    augmentor = Rotation(50, step_deg=20).set_rng(rng())
    angles = set()
    for _ in range(60):
        (x0, y0), (x1, y1) = augmentor.get_transform(IMAGE).apply_coords(np.array([[0.0, 0.0], [1.0, 0.0]]))
        angles.add(round(float(np.degrees(np.arctan2(y0 - y1, x1 - x0)))))
    assert angles == {-40, -20, 0, 20, 40}


def test_turns_keep_lengths():
    augmentor = Rotation(30).set_rng(rng())
    for _ in range(5):
        start, end = augmentor.get_transform(IMAGE).apply_coords(np.array([[0.0, 0.0], [10.0, 0.0]]))
        assert abs(np.hypot(*(end - start)) - 10) < 1e-9


def test_the_valid_part_has_no_border():
    white = np.full((60, 90), 255, np.uint8)
    augmentor = RotationAndCropValid(45).set_rng(rng())
    for _ in range(20):
        transform, result = augmentor.draw(white)
        height, width = result.shape
        corners = np.array([[0.0, 0], [90, 0], [90, 60], [0, 60]])
        moved = transform.apply_coords(corners).astype(np.float32)
        for corner in ((0, 0), (width, 0), (width, height), (0, height)):
            assert cv2.pointPolygonTest(moved, corner, True) > -1.0
    assert RotationAndCropValid(0).augment(white).shape == (60, 90)


def test_valid_part_of_a_square_turned_by_45_degrees():
    augmentor = RotationAndCropValid(45, step_deg=45).set_rng(rng())
    sizes = {augmentor.augment(np.zeros((100, 100), np.uint8)).shape for _ in range(20)}
    assert sizes == {(100, 100), (70, 70)}


def test_affine_zooms_about_the_center():
    transform = Affine(scale=(2, 2)).get_transform(IMAGE)
    assert transform.apply_coords(np.array([[4.0, 4.0], [5.0, 3.0]])).tolist() == [[4, 4], [6, 2]]


def test_affine_translates_by_whole_pixels_after_the_turn():
    augmentor = Affine(translate_frac=(0.5, 0.25)).set_rng(rng())
    shifts = {tuple(augmentor.get_transform(IMAGE).apply_coords(np.zeros((1, 2)))[0]) for _ in range(300)}
    assert {x for x, _y in shifts} == set(range(-4, 5))
    assert {y for _x, y in shifts} == set(range(-2, 3))


def test_affine_turns():
    augmentor = Affine(rotate_max_deg=25).set_rng(rng())
    for _ in range(20):
        matrix = augmentor.get_transform(IMAGE).matrix
        assert abs(np.degrees(np.arctan2(matrix[0, 1], matrix[0, 0]))) <= 25
        assert np.linalg.det(matrix[:, :2]) == pytest.approx(1)


def test_shear_leans_the_y_axis_and_keeps_lengths():
    augmentor = Shear(30).set_rng(rng())
    for _ in range(20):
        origin, x_axis, y_axis = augmentor.get_transform(IMAGE).apply_coords(np.array([[0.0, 0], [1, 0], [0, 1]]))
        assert (x_axis - origin).tolist() == pytest.approx([1, 0])
        assert np.hypot(*(y_axis - origin)) == pytest.approx(1)
        assert abs(np.degrees(np.arctan2(*(y_axis - origin)))) <= 30


def test_rescale_is_as_often_larger_as_smaller():
    augmentor = Rescale(0.1).set_rng(rng())
    factors = [augmentor.get_transform(IMAGE).matrix[0, 0] for _ in range(400)]
    assert np.log(factors).std() == pytest.approx(0.1, rel=0.15)
    assert abs(np.log(factors).mean()) < 0.02


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.uint16, np.int32, np.uint32, np.int64])
def test_masks_of_any_type_are_warped_without_new_ids(dtype):
    top = min(np.iinfo(dtype).max, 2**40 + 1) if dtype is not bool else 1
    mask = np.where(np.arange(64).reshape(8, 8) % 3 == 0, top, 0).astype(dtype)
    augmentor = Affine((0.6, 0.6), rotate_max_deg=40, border=cv2.BORDER_CONSTANT).set_rng(rng(2))
    moved = augmentor.get_transform(IMAGE).apply_mask(mask, 1)
    assert moved.dtype == dtype
    assert set(moved.ravel().tolist()) == {0, 1, top}


def test_negative_ids_and_fills_arrive():
    mask = np.full((8, 8), -5, np.int64)
    transform = Shift(0.5, border=cv2.BORDER_CONSTANT).set_rng(rng(1)).get_transform(IMAGE)
    assert set(transform.apply_mask(mask, -1).ravel().tolist()) == {-5, -1}


def test_a_border_of_one_number_fills_all_channels():
    matrix = np.array([[1.0, 0, 4], [0, 1, 0]])
    for channels in (1, 3, 4, 7):
        image = np.zeros((4, 8, channels), np.uint8)
        transform = WarpAffineTransform(matrix, (4, 8), (4, 8), border_value=9)
        assert transform.apply_image(image)[0, 0].tolist() == [9] * channels


def test_many_channels_are_warped_as_each_alone():
    image = np.random.RandomState(3).random_sample((8, 8, 6)).astype(np.float32)
    transform = Rotation(40).set_rng(rng()).get_transform(image)
    apart = [transform.apply_image(image[:, :, channel]) for channel in range(6)]
    assert np.allclose(transform.apply_image(image), np.dstack(apart), atol=2e-2)


def test_a_mirroring_matrix_says_so():
    assert WarpAffineTransform(np.array([[-1.0, 0, 8], [0, 1, 0]]), (8, 8), (8, 8)).mirrors
    assert not Rotation(180).get_transform(IMAGE).mirrors


def test_wrong_arguments():
    with pytest.raises(UsageError, match=r"`horiz_frac` is from 0 to 1 \(received: 3"):
        Shift(horiz_frac=3)
    with pytest.raises(UsageError, match=r"`max_deg` is not negative, and finite \(received: -5"):
        Rotation(-5)
    with pytest.raises(UsageError, match=r"`step_deg` is above 0"):
        Rotation(10, step_deg=0)
    with pytest.raises(UsageError, match=r"A shear is below 90 degrees \(received: 90"):
        Shear(90)
    with pytest.raises(UsageError, match=r"`scale` is 2, not a range \(low, high\), from 1e-06 to ∞"):
        Affine(scale=2)
