"""Mirroring, transposing and quarter turns."""

from __future__ import annotations

import numpy as np
import pytest

from ziggurat.dataflow.imgaug import Flip, FlipTransform, Rotation90, Rotation90Transform, Transpose, TransposeTransform
from ziggurat.errors import UsageError

IMAGE = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.uint8)
POINTS = np.array([[0.0, 0.0], [3.0, 2.0], [0.5, 1.5]])


def test_flip_left_and_right():
    transform = FlipTransform(2, 3)
    assert transform.apply_image(IMAGE).tolist() == [[3, 2, 1], [6, 5, 4]]
    assert transform.apply_coords(POINTS).tolist() == [[3, 0], [0, 2], [2.5, 1.5]]
    assert transform.apply_boxes(np.array([[0, 0, 1, 2]])).tolist() == [[2, 0, 3, 2]]
    assert transform.mirrors


def test_flip_top_and_bottom():
    transform = FlipTransform(2, 3, horiz=False)
    assert transform.apply_image(IMAGE).tolist() == [[4, 5, 6], [1, 2, 3]]
    assert transform.apply_coords(POINTS).tolist() == [[0, 2], [3, 0], [0.5, 0.5]]


def test_transpose():
    transform = TransposeTransform()
    assert transform.apply_image(IMAGE).tolist() == [[1, 4], [2, 5], [3, 6]]
    assert transform.apply_coords(POINTS).tolist() == [[0, 0], [2, 3], [1.5, 0.5]]
    assert transform.mirrors


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_quarter_turns_go_against_the_clock(turns):
    transform = Rotation90Transform(2, 3, turns)
    assert np.array_equal(transform.apply_image(IMAGE), np.rot90(IMAGE, turns))
    center_of_5 = transform.apply_coords(np.array([[1.5, 1.5]]))[0]
    x, y = center_of_5.astype(int)
    assert transform.apply_image(IMAGE)[y, x] == 5
    assert not transform.mirrors


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int32, np.uint32, np.int64, np.float64])
def test_masks_of_any_type_arrive_unchanged(dtype):
    mask = np.array([[0, 1, 2], [-1 if np.dtype(dtype).kind == "i" else 1, 0, 1]]).astype(dtype)
    for transform in (FlipTransform(2, 3), TransposeTransform(), Rotation90Transform(2, 3, 3)):
        moved = transform.apply_mask(mask)
        assert moved.dtype == dtype
        assert sorted(moved.ravel().tolist()) == sorted(mask.ravel().tolist())


def test_flip_applies_with_its_probability():
    augmentor = Flip(horiz=True, prob=0.25).set_rng(np.random.RandomState(0))
    flipped = sum(augmentor.augment(IMAGE)[0, 0] == 3 for _ in range(1000))
    assert 200 < flipped < 300
    assert Flip(horiz=True, prob=1).augment(IMAGE)[0, 0] == 3
    assert Flip(vert=True, prob=0).augment(IMAGE)[0, 0] == 1


def test_transpose_and_quarter_turns_choose():
    shapes = {Transpose(prob).augment(IMAGE).shape for prob in (0, 1)}
    assert shapes == {(2, 3), (3, 2)}
    augmentor = Rotation90((0, 2)).set_rng(np.random.RandomState(0))
    corners = {int(augmentor.augment(IMAGE)[0, 0]) for _ in range(50)}
    assert corners == {1, 6}


def test_wrong_arguments():
    with pytest.raises(UsageError, match=r"either horizontal or vertical \(received: horiz=True, vert=True\). Set one"):
        Flip(horiz=True, vert=True)
    with pytest.raises(UsageError, match=r"`prob` is from 0 to 1 \(received: 1.5"):
        Flip(horiz=True, prob=1.5)
    with pytest.raises(UsageError, match=r"`quarter_turns` names at least one turn"):
        Rotation90(())


def test_another_image_of_another_size_is_refused():
    with pytest.raises(
        ValueError,
        match=r"An array is 3 x 3 \(height x width\), and the FlipTransform was drawn for 2 x 3. Give all images",
    ):
        FlipTransform(2, 3).apply_image(np.zeros((3, 3), np.uint8))
