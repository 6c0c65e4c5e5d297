"""Labels with a place: shapes, hulls, clipping, keypoints."""

from __future__ import annotations

import numpy as np
import pytest

from ziggurat.dataflow.imgaug import (
    CropTransform,
    FlipTransform,
    LabelError,
    Rotation90Transform,
    TransformFactory,
    TransformList,
    UnsupportedLabelError,
    WarpAffineTransform,
    box_areas,
    clip_boxes,
    clip_polygon,
    hide_keypoints,
    keep_boxes,
    polygon_area,
)
from ziggurat.errors import UsageError


def test_boxes_are_clipped_and_dropped_by_area_and_visibility():
    boxes = np.array([[1, 1, 5, 5], [-8, 0, 2, 4], [20, 20, 30, 30], [9, 9, 10.5, 10.5]])
    assert clip_boxes(boxes, (10, 12)).tolist() == [[1, 1, 5, 5], [0, 0, 2, 4], [12, 10, 12, 10], [9, 9, 10.5, 10]]
    kept, places = keep_boxes(boxes, (10, 12, 3))
    assert places.tolist() == [0, 1, 3]
    assert kept[1].tolist() == [0, 0, 2, 4]
    assert keep_boxes(boxes, (10, 12), min_visibility=0.5)[1].tolist() == [0, 3]
    assert keep_boxes(boxes, (10, 12), min_area_px=9)[1].tolist() == [0]
    assert box_areas(boxes).tolist() == [16, 40, 100, 2.25]


def test_no_boxes_stay_no_boxes():
    assert FlipTransform(4, 4).apply_boxes([]).shape == (0, 4)
    kept, places = keep_boxes(np.zeros((0, 4)), (5, 5))
    assert kept.shape == (0, 4)
    assert places.shape == (0,)
    assert FlipTransform(4, 4).apply_coords(np.zeros((0, 2))).shape == (0, 2)


def test_a_list_of_transforms_makes_one_hull_at_the_end():
    turn = np.deg2rad(30)
    there = np.array([[np.cos(turn), -np.sin(turn), 5.0], [np.sin(turn), np.cos(turn), 0]])
    back = np.linalg.inv(np.vstack([there, [0, 0, 1]]))[:2]
    both = TransformList([WarpAffineTransform(matrix, (9, 9), (9, 9)) for matrix in (there, back)])
    assert both.apply_boxes(np.array([[2, 2, 4, 5]])) == pytest.approx(np.array([[2, 2, 4, 5]]))


def test_a_transform_with_its_own_boxes_is_asked_for_them():
    grown = TransformFactory(apply_image=lambda image: image, apply_boxes=lambda boxes: boxes + [-1, -1, 1, 1])
    both = TransformList([CropTransform(1, 1, 5, 5), grown])
    assert both.apply_boxes(np.array([[2, 2, 4, 5]])).tolist() == [[0, 0, 4, 5]]


def test_types_of_coordinates():
    flip = FlipTransform(4, 6)
    assert flip.apply_coords(np.array([[1, 2]])).dtype == np.float64
    assert flip.apply_coords(np.array([[1, 2]], np.float32)).dtype == np.float32
    assert flip.apply_boxes(np.array([[0, 0, 1, 1]], np.float32)).dtype == np.float32
    points = np.array([[1.0, 2.0]])
    flip.apply_coords(points)
    assert points.tolist() == [[1, 2]]


def test_polygons_are_clipped():
    square = np.array([[-2.0, 2], [4, 2], [4, 8], [-2, 8]])
    part = clip_polygon(square, (6, 10))
    assert polygon_area(part) == pytest.approx(4 * 4)
    assert part.min(axis=0).tolist() == [0, 2]
    assert part.max(axis=0).tolist() == [4, 6]
    assert clip_polygon(square + 50, (6, 10)).shape == (0, 2)
    inside = np.array([[1.0, 1], [3, 1], [2, 4]])
    assert polygon_area(clip_polygon(inside, (6, 10))) == polygon_area(inside) == 3


def test_keypoints_keep_visibility_and_placeless_ones_stay():
    keypoints = np.array([[1.0, 2, 2], [5, 1, 1], [0, 0, 0]])
    moved = FlipTransform(4, 6).apply_keypoints(keypoints)
    assert moved.tolist() == [[5, 2, 2], [1, 1, 1], [0, 0, 0]]
    both = FlipTransform(4, 6).apply_keypoints(np.stack([keypoints, keypoints]))
    assert both.shape == (2, 3, 3)
    assert both[1].tolist() == moved.tolist()


def test_left_and_right_change_names_in_a_mirror_only():
    left_and_right = np.array([[1.0, 2, 2], [5, 2, 1]])
    mirrored = FlipTransform(4, 6).apply_keypoints(left_and_right, mirror_pairs=[(0, 1)])
    assert mirrored.tolist() == [[1, 2, 1], [5, 2, 2]]
    turned = Rotation90Transform(4, 6, 2).apply_keypoints(left_and_right, mirror_pairs=[(0, 1)])
    assert turned.tolist() == [[5, 2, 2], [1, 2, 1]]
    twice = TransformList([FlipTransform(4, 6), FlipTransform(4, 6, horiz=False)])
    assert twice.apply_keypoints(left_and_right, mirror_pairs=[(0, 1)]).tolist() == turned.tolist()


def test_keypoints_outside_are_hidden_on_request():
    keypoints = np.array([[1.0, 2, 2], [6, 1, 2], [3, -0.5, 1]])
    assert hide_keypoints(keypoints, (4, 6))[:, 2].tolist() == [2, 0, 0]
    assert keypoints[1, 2] == 2


def test_a_transform_made_of_functions():
    transform = TransformFactory("Half", apply_image=lambda image: image[::2], apply_lines=lambda lines: lines[:1])
    assert repr(transform) == "Half(apply_image, apply_lines)"
    assert transform.apply_image(np.zeros((4, 2))).shape == (2, 2)
    assert transform.apply_lines([1, 2]) == [1]
    assert TransformList([transform, transform]).apply_lines([1, 2, 3]) == [1]
    with pytest.raises(UnsupportedLabelError, match=r"`apply_coords` needs .* Half\(apply_image, apply_lines\)"):
        transform.apply_coords(np.zeros((1, 2)))
    with pytest.raises(UsageError, match=r"are named `apply_...` \(received: `image`"):
        TransformFactory(image=len)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda t: t.apply_coords(np.zeros(4)),
            r"Coordinates are an array \(N, 2\) of \(x, y\) \(received: an arr",
        ),
        (
            lambda t: t.apply_boxes(np.zeros((2, 5))),
            r"Boxes are an array \(N, 4\) .* \(received: an array of shape",
        ),
        (lambda t: t.apply_keypoints(np.zeros((2, 2))), r"Keypoints are an array \(N, 3\) of \(x, y, visibility\)"),
        (lambda t: t.apply_coords(np.array([["a", "b"]])), r"type <U1\). Check the component's index and its shape"),
    ],
)
def test_wrong_shapes(call, message):
    with pytest.raises(LabelError, match=message):
        call(FlipTransform(4, 4))
