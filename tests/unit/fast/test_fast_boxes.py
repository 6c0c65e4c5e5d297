"""Boxes: within the image, of the asked area and shape, and decided by the random numbers alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ziggurat.dataflow.fast import CenterResizedCrop, RandomResizedCrop, ScaledRandomCrop
from ziggurat.dataflow.fast.boxes import denominators, grid_boxes
from ziggurat.errors import UsageError

SIDES = st.integers(1, 3000)


def drawn(crop, count, size, seed=0):
    numbers = np.random.RandomState(seed).random_sample((count, crop.numbers))
    return crop.boxes(numbers, np.array([size] * count))


@given(width=SIDES, height=SIDES, seed=st.integers(0, 1000))
def test_boxes_lie_in_the_image(width, height, seed):
    boxes, flips = drawn(RandomResizedCrop(), 5, (width, height), seed)
    assert boxes.dtype == np.int32
    assert flips.shape == (5,)
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 1).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= (width, height)).all()


def test_areas_and_ratios_fill_their_ranges():
    boxes, flips = drawn(RandomResizedCrop(area=(0.1, 0.5), aspect=(0.5, 2)), 4000, (1000, 1000))
    areas = boxes[:, 2] * boxes[:, 3] / 1e6
    assert 0.099 < areas.min() < 0.11
    assert 0.49 < areas.max() < 0.501
    assert areas.mean() == pytest.approx(0.3, abs=0.02)
    ratios = boxes[:, 2] / boxes[:, 3]
    assert 0.49 < ratios.min() < 0.52
    assert 1.9 < ratios.max() < 2.03
    assert flips.mean() == pytest.approx(0.5, abs=0.03)
    corners = boxes[:, :2] / (1001 - boxes[:, 2:])
    assert corners.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.03)


def test_a_box_depends_on_its_own_numbers_only():
    crop = RandomResizedCrop()
    numbers = np.random.RandomState(3).random_sample((6, crop.numbers))
    sizes = np.array([(640, 480), (100, 900), (33, 44), (500, 500), (10, 1000), (800, 300)])
    together = crop.boxes(numbers, sizes)[0]
    alone = [crop.boxes(numbers[i : i + 1], sizes[i : i + 1])[0][0] for i in range(6)]
    assert np.array_equal(together, alone)


def test_where_no_attempt_fits_the_largest_centerd_box_is_taken():
    boxes, _ = drawn(RandomResizedCrop(area=(1, 1), aspect=(3 / 4, 4 / 3)), 3, (1000, 100))
    assert boxes.tolist() == [[434, 0, 133, 100]] * 3


def test_no_flip():
    assert not drawn(RandomResizedCrop(flip=False), 50, (300, 300))[1].any()


def test_the_center_crop_is_resize_256_crop_224():
    boxes, flips = drawn(CenterResizedCrop(224), 2, (512, 256))
    assert boxes.tolist() == [[144, 16, 224, 224]] * 2
    assert not flips.any()


def test_a_decoder_may_reduce_as_long_as_nothing_is_enlarged():
    sides = [100, 223, 224, 447, 448, 900, 1792, 4000]
    boxes = np.array([(0, 0, side, side) for side in sides], np.int32)
    assert denominators(boxes, (224, 224)).tolist() == [1, 1, 1, 1, 2, 4, 8, 8]


@given(width=SIDES, height=SIDES, denominator=st.sampled_from([1, 2, 4, 8]), seed=st.integers(0, 1000))
def test_boxes_on_the_grid_hold_the_box_and_are_hardly_larger(width, height, denominator, seed):
    boxes, _ = drawn(RandomResizedCrop(), 3, (width, height), seed)
    grid = grid_boxes(boxes, np.array([(width, height)] * 3), np.full(3, denominator))
    assert (grid[:, :2] % denominator == 0).all()
    before, after = boxes[:, :2] - grid[:, :2], (grid[:, :2] + grid[:, 2:]) - (boxes[:, :2] + boxes[:, 2:])
    assert ((before >= 0) & (before < denominator) & (after >= 0) & (after < denominator)).all()
    assert (grid[:, :2] + grid[:, 2:] <= (width, height)).all()


@pytest.mark.parametrize("wrong", [{"area": (0, 1)}, {"area": (0.5, 0.2)}, {"aspect": (2, 1)}, {"size": 0}])
def test_impossible_crops_are_refused(wrong):
    with pytest.raises(UsageError, match=r"are no ranges|received: "):
        RandomResizedCrop(**wrong)


@given(width=SIDES, height=SIDES, mode=st.sampled_from(["squash", "crop"]), seed=st.integers(0, 1000))
def test_boxes_of_scaled_crops_lie_in_the_image(width, height, mode, seed):
    boxes, flips = drawn(ScaledRandomCrop((256, 240), (224, 200), mode), 5, (width, height), seed)
    assert boxes.dtype == np.int32
    assert not flips.any()
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 1).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= (width, height)).all()


def test_a_scaled_crop_at_the_same_size_is_the_crop():
    boxes, _ = drawn(ScaledRandomCrop((40, 60), (32, 32)), 2000, (60, 40))
    assert (boxes[:, 2:] == 32).all()
    assert sorted(set(boxes[:, 0])) == list(range(29))
    assert sorted(set(boxes[:, 1])) == list(range(9))


def test_a_scaled_crop_squashes_or_keeps_the_ratio():
    squashed, _ = drawn(ScaledRandomCrop((100, 100), (50, 50)), 500, (400, 200))
    assert (squashed[:, 2:] == (200, 100)).all()
    kept, _ = drawn(ScaledRandomCrop((100, 100), (50, 50), "crop"), 500, (400, 200))
    assert (kept[:, 2:] == (100, 100)).all()
    assert (kept[:, 0].min(), kept[:, 0].max()) == (100, 200)  # what is too much is left out on both sides
    assert (kept[:, 1].min(), kept[:, 1].max()) == (0, 100)


def test_half_of_the_scaled_crops_are_mirrored():
    _, flips = drawn(ScaledRandomCrop((40, 40), (32, 32), flip=True), 4000, (60, 60))
    assert flips.mean() == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("wrong", [{"size": (20, 40), "crop": (32, 32)}, {"size": (0, 40), "crop": (1, 1)}])
def test_impossible_scaled_crops_are_refused(wrong):
    with pytest.raises(UsageError, match="received: "):
        ScaledRandomCrop(**wrong)
