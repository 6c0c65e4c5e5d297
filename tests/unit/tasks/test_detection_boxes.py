"""Boxes of detection against plain loops: overlap, non-maximum suppression, px of the input and of the original."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.unit.tasks.detection_parts import headers, plain_iou, scene, target_batch
from ziggurat.errors import UsageError
from ziggurat.tasks.detection_boxes import (
    best_detections,
    clip,
    iou,
    nms,
    original_detections,
    original_targets,
    to_input,
    to_original,
)


@st.composite
def boxes(draw, most=12):
    """Return boxes of whole px that overlap often, (K, 4) float32."""
    corners = draw(arrays(np.int64, (draw(st.integers(0, most)), 2, 2), elements=st.integers(0, 12)))
    return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1).astype(np.float32)


@st.composite
def outputs(draw):
    """Return outputs of a network, (N, K, 4 + classes); equal scores are frequent, and some are 0 or less."""
    images, classes = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    own = draw(boxes())
    scores = st.sampled_from([-1.0, 0.0, 0.0005, 0.1, 0.25, 0.5, 0.75, 1.0])
    found = [
        np.concatenate([own, draw(arrays(np.float32, (len(own), classes), elements=scores))], axis=1)
        for _ in range(images)
    ]
    return np.array(found, np.float32).reshape(images, len(own), 4 + classes)


def _plain_best(output, least, overlap, most):
    """Return the detections of an image in plain loops."""
    rows = [
        (*row[:4], score, kind)
        for row in output.tolist()
        for kind, score in enumerate(row[4:])
        if score > 0 and score >= np.float32(least)
    ]
    rows.sort(key=lambda each: -each[4])
    kept = []
    for row in rows[:1000]:
        if all(plain_iou(row, other) <= overlap for other in kept if other[5] == row[5]) and len(kept) < most:
            kept.append(row)
    return kept


@given(boxes(), boxes(), st.data())
def test_iou_is_that_of_plain_loops(first, second, data):
    crowds = data.draw(arrays(np.bool_, len(second)))
    wanted = [[plain_iou(one, other) for other in second.tolist()] for one in first.tolist()]
    np.testing.assert_allclose(iou(first, second), np.reshape(wanted, (len(first), len(second))), rtol=1e-6)
    wanted = [
        [plain_iou(one, other, is_crowd=crowd) for other, crowd in zip(second.tolist(), crowds, strict=True)]
        for one in first.tolist()
    ]
    found = iou(first.astype(np.float64), second.astype(np.float64), crowds)
    np.testing.assert_allclose(found, np.reshape(wanted, (len(first), len(second))), rtol=1e-12)


def test_iou_takes_batches():
    first = np.array([[[0, 0, 2, 2]], [[0, 0, 4, 4]]], float)
    second = np.array([[[0, 0, 2, 1], [5, 5, 6, 6]], [[2, 2, 6, 6], [0, 0, 4, 4]]], float)
    np.testing.assert_allclose(iou(first, second), [[[0.5, 0]], [[4 / 28, 1]]])


@given(outputs(), st.sampled_from([0.0, 0.05, 0.5]), st.sampled_from([0.301, 0.651]), st.sampled_from([1, 3, 100]))
def test_best_detections_are_those_of_plain_loops(output, least, overlap, most):
    found = best_detections(output, least_score=least, iou=overlap, most=most)
    assert found.shape == (len(output), most, 6)
    assert found.dtype == np.float32
    for rows, own in zip(found, output, strict=True):
        wanted = _plain_best(own, least, overlap, most)
        np.testing.assert_array_equal(rows[: len(wanted)], np.reshape(wanted, (len(wanted), 6)).astype(np.float32))
        assert not rows[len(wanted) :].any()


@given(outputs())
def test_no_detection_is_lost(output):
    found = best_detections(output, least_score=0.0, iou=1.0)
    for rows, own in zip(found, output, strict=True):
        assert (rows[:, 4] > 0).sum() == (own[:, 4:] > 0).sum()


@given(outputs())
def test_what_is_dropped_overlaps_a_better_detection(output):
    found = best_detections(output, least_score=0.0)
    for rows, own in zip(found, output, strict=True):
        for kind in range(own.shape[1] - 4):
            kept = rows[(rows[:, 4] > 0) & (rows[:, 5] == kind)]
            for row in own[own[:, 4 + kind] > 0]:
                better = kept[kept[:, 4] >= row[4 + kind]]
                is_kept = any(np.array_equal(row[:4], each[:4]) for each in better)
                assert is_kept or iou(row[None, :4], better[:, :4]).max() >= 0.6499


@given(boxes(), st.data())
def test_nms_keeps_what_plain_loops_keep(own, data):
    scores = data.draw(arrays(np.float32, len(own), elements=st.sampled_from([0.1, 0.2, 0.5])))
    kept = []
    for place in sorted(range(len(own)), key=lambda each: -scores[each]):
        if all(plain_iou(own[place].tolist(), own[other].tolist()) <= 0.5 for other in kept):
            kept.append(place)
    assert nms(own, scores, 0.5).tolist() == kept


def test_best_detections_of_many_rows_are_those_of_loops():
    chance = np.random.default_rng(0)
    corner, sides = chance.uniform(0, 300, (1, 900, 2)), chance.uniform(5, 90, (1, 900, 2))
    scores = chance.permutation(np.linspace(0, 1, 2700)).reshape(1, 900, 3)
    output = np.concatenate([corner, corner + sides, scores], axis=2).astype(np.float32)
    found = best_detections(output, least_score=0.001)
    wanted = _plain_best(output[0], 0.001, 0.65, 100)
    np.testing.assert_array_equal(found[0, : len(wanted)], np.array(wanted, np.float32))
    assert len(wanted) == 100


def test_boxes_that_are_none_are_no_detections():
    output = np.array([[[np.nan, 0, 5, 5, 0.9], [0, 0, np.inf, 5, 0.8], [5, 0, 0, 5, 0.7], [0, 0, 5, 5, np.nan]]])
    assert not best_detections(output, least_score=0.0).any()


def test_a_box_may_be_found_as_several_classes():
    found = best_detections(np.array([[[0, 0, 9, 9, 0.4, 0.0, 0.8]]]), least_score=0.001, most=3)
    np.testing.assert_allclose(found[0], [[0, 0, 9, 9, 0.8, 2], [0, 0, 9, 9, 0.4, 0], [0] * 6])


def test_best_detections_of_another_shape_are_an_error():
    with pytest.raises(UsageError, match=r"The output of the network has shape \(2, 4\);"):
        best_detections(np.zeros((2, 4)), least_score=0.1)


def test_clip_cuts_at_the_sides_of_each_image():
    boxes = np.array([[[-5, -6, 700, 20]], [[10, 20, 700, 800]]], float)
    found = clip(boxes, np.array([[480, 640], [100, 200]]))
    assert found.tolist() == [[[0, 0, 640, 20]], [[10, 20, 200, 100]]]


@given(
    arrays(np.float32, (5, 4), elements=st.floats(-10_000, 10_000, width=32)),
    st.tuples(st.floats(0.02, 50), st.floats(0.02, 50)),
    st.tuples(st.floats(-5000, 5000), st.floats(-5000, 5000)),
)
def test_px_of_input_and_original_are_inverse(own, scale, place):
    header = headers(1, scale=scale, place=place)[:, 0, 0]
    there = to_input(to_original(own[None], header), header)
    np.testing.assert_allclose(there[0], own, rtol=0, atol=1e-4)
    back = to_original(to_input(own[None], header), header)
    np.testing.assert_allclose(back[0], own, rtol=0, atol=1e-4)


def test_px_of_the_original_are_less_place_and_scale():
    header = headers(1, scale=(0.5, 0.25), place=(10, 20))[0, 0, 0]
    np.testing.assert_allclose(to_original(np.array([[20, 10, 120, 110]], float), header), [[0, 0, 400, 200]])


@pytest.mark.parametrize("scale", [(1.0, 1.0), (0.1, 0.1), (0.37, 0.61), (3.3, 2.9)])
def test_objects_come_back_in_px_of_the_original(scale):
    _, targets = scene(4)
    y = target_batch(targets, scale=scale, place=(13.3, -7.1), size=(2000, 3000))
    found = original_targets(y)
    for rows, own in zip(found, targets, strict=True):
        wanted = own[(own[:, 4] >= 0) | (own[:, 5] > 0)]
        np.testing.assert_array_equal(rows[: len(wanted)], wanted)
        assert (rows[len(wanted) :] == (0, 0, 0, 0, -1, 0)).all()


def test_detections_move_into_the_original_and_are_clipped():
    y = headers(1, size=(100, 200), scale=(0.5, 0.5), place=(10, 0))
    detections = np.array([[[10, 20, 50, 90, 0.9, 2], [0, 0, 0, 0, 0, 0]]], np.float32)
    found = original_detections(detections, y)
    np.testing.assert_allclose(found, [[[20, 20, 100, 100, 0.9, 2], [0] * 6]])
