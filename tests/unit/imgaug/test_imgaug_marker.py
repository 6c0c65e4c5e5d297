"""Every geometric augmentor moves points, boxes, polygons and masks exactly as it moves pixels."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from imgaug_marker import centroid, depth, extent, places, scale_of

from ziggurat.dataflow import imgaug

BLACK = imgaug.ConstantBackgroundFiller(0)

MOVING = {
    "flip left and right": lambda: imgaug.Flip(horiz=True, prob=1),
    "flip top and bottom": lambda: imgaug.Flip(vert=True, prob=1),
    "transpose": lambda: imgaug.Transpose(prob=1),
    "quarter turns": lambda: imgaug.Rotation90(),
    "random crop": lambda: imgaug.RandomCrop((38, 44)),
    "center crop": lambda: imgaug.CenterCrop((45, 39)),
    "random crop of random shape": lambda: imgaug.RandomCropRandomShape(36, 40, 60, 60, 1.4),
    "center paste": lambda: imgaug.CenterPaste((110, 101)),
    "random paste": lambda: imgaug.RandomPaste((101, 120)),
    "shift": lambda: imgaug.Shift(0.3, 0.3),
}
"""Augmentors that mix no pixels: masks and images agree in every pixel."""

SCALING = {
    "resize, squash": lambda: imgaug.Resize((90, 61)),
    "resize, crop": lambda: imgaug.Resize((60, 70), mode="crop"),
    "resize, fill": lambda: imgaug.Resize((63, 90), mode="fill", background_filler=BLACK),
    "resize, half crop": lambda: imgaug.Resize((71, 92), mode="half_crop", background_filler=BLACK),
    "resize, area": lambda: imgaug.Resize((50, 40), interp=cv2.INTER_AREA),
    "shortest edge": lambda: imgaug.ResizeShortestEdge(71),
    "random resize by ratios": lambda: imgaug.RandomResize((0.7, 1.9), (0.7, 1.9), aspect_ratio_thres=0.3),
    "random resize in pixels": lambda: imgaug.RandomResize((60, 120), aspect_ratio_thres=0),
    "random resized crop": lambda: imgaug.RandomResizedCrop((0.4, 1.0), target_shape=(80, 72)),
    "rotation": lambda: imgaug.Rotation(180, center_range=(0.3, 0.7)),
    "rotation in steps": lambda: imgaug.Rotation(180, center_range=(0.5, 0.5), step_deg=90),
    "rotation, valid part": lambda: imgaug.RotationAndCropValid(30),
    "affine": lambda: imgaug.Affine((0.7, 1.4), (0.2, 0.2), 40, 20, border=cv2.BORDER_CONSTANT),
    "shear": lambda: imgaug.Shear(25),
    "rescale": lambda: imgaug.Rescale(0.2),
    "list": lambda: imgaug.AugmentorList([imgaug.Rotation(20), imgaug.Resize(80, mode="crop"), imgaug.RandomCrop(60)]),
    "random order": lambda: imgaug.RandomOrderAug(
        [imgaug.RandomCrop(45), imgaug.Transpose(1), imgaug.Affine((1, 1.3))]
    ),
    "random choice": lambda: imgaug.RandomChooseAug([(imgaug.Rotation(90), 1), (imgaug.ResizeShortestEdge(90), 2)]),
    "random apply": lambda: imgaug.RandomApply(imgaug.Rotation(45), 0.5),
}
"""Augmentors that interpolate: within a pixel of the marker's border masks and images may differ."""

some = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
sizes = st.tuples(st.integers(48, 80), st.integers(48, 80))
seeds = st.integers(0, 2**32 - 1)
picks = st.integers(0, 10**6)


def drawn(augmentor, shape, seed, pick):
    """Return a transform and a marker that stays in the image."""
    transform = augmentor.set_rng(np.random.RandomState(seed)).get_transform(np.zeros((*shape, 3), dtype=np.float32))
    found = places(transform, shape)
    assume(found)
    return transform, found[pick % len(found)]


@pytest.mark.parametrize("name", [*MOVING, *SCALING])
@some
@given(shape=sizes, seed=seeds, pick=picks)
def test_points_move_with_the_pixels(name, shape, seed, pick):
    transform, marker = drawn({**MOVING, **SCALING}[name](), shape, seed, pick)
    found = centroid(transform.apply_image(marker.picture(shape)))
    assert np.abs(found - transform.apply_coords(marker.center)).max() <= 0.25 * scale_of(transform, marker)


@pytest.mark.parametrize("name", [*MOVING, *SCALING])
@some
@given(shape=sizes, seed=seeds, pick=picks)
def test_boxes_move_with_the_pixels(name, shape, seed, pick):
    transform, marker = drawn({**MOVING, **SCALING}[name](), shape, seed, pick)
    found = extent(transform.apply_image(marker.picture(shape)))
    assert np.abs(found - transform.apply_boxes(marker.box)).max() <= 1.0 * scale_of(transform, marker)


@pytest.mark.parametrize("name", [*MOVING, *SCALING])
@some
@given(shape=sizes, seed=seeds, pick=picks)
def test_polygons_and_masks_move_with_the_pixels(name, shape, seed, pick):
    transform, marker = drawn({**MOVING, **SCALING}[name](), shape, seed, pick)
    white = transform.apply_image(marker.picture(shape))[:, :, 0] > 127
    mask = transform.apply_mask(marker.mask(shape))
    (polygon,) = transform.apply_polygons([marker.polygon])
    inside = depth(polygon, *white.shape)
    clear = np.abs(inside) > 1.0 * scale_of(transform, marker)
    assert np.array_equal(white[clear], inside[clear] > 0)
    assert mask.dtype == np.int64
    assert mask.shape == white.shape
    assert set(np.unique(mask)) <= {0, 7}
    assert np.array_equal(mask[clear] == 7, white[clear])


@pytest.mark.parametrize("name", MOVING)
@some
@given(shape=sizes, seed=seeds, pick=picks)
def test_where_no_pixels_are_mixed_all_agree_exactly(name, shape, seed, pick):
    transform, marker = drawn(MOVING[name](), shape, seed, pick)
    image = transform.apply_image(marker.picture(shape))
    assert np.array_equal(extent(image), transform.apply_boxes(marker.box))
    assert np.array_equal(image[:, :, 0] > 127, transform.apply_mask(marker.mask(shape)) == 7)
