"""Matching of detections and objects, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.unit.tasks.detection_parts import plain_matching, scene
from ziggurat.errors import UsageError
from ziggurat.tasks.detection_matching import (
    FALSE,
    IGNORED,
    MISSED,
    TRUE,
    detection_outcomes,
    find_overlaps,
    image_counts,
    image_scores,
    match,
    target_outcomes,
)


def _plain(detections, targets, iou, confidence):
    """Return outcomes of detections and of objects, (N, K) and (N, M), in plain loops."""
    outcomes, found = np.zeros(detections.shape[:2], int), np.zeros(targets.shape[:2], int)
    for rows, own, one, other in zip(detections, targets, outcomes, found, strict=True):
        other[:] = np.select([own[:, 5] > 0, own[:, 4] >= 0], [IGNORED, MISSED], 0)
        places = [place for place in np.argsort(-rows[:, 4], kind="stable") if rows[place, 4] >= max(confidence, 1e-9)]
        for place, result in zip(places, plain_matching(rows[places].tolist(), own.tolist(), iou), strict=True):
            one[place] = IGNORED if result == "-" else TRUE if result >= 0 else FALSE
            if result != "-" and result >= 0:
                other[result] = TRUE
    return outcomes, found


def _compare(detections, targets, iou, confidence):
    overlaps = find_overlaps(detections, targets)
    matching = match(overlaps, iou)
    outcomes, found = _plain(detections, targets, iou, confidence)
    np.testing.assert_array_equal(detection_outcomes(overlaps, matching, detections.shape[1], confidence), outcomes)
    np.testing.assert_array_equal(target_outcomes(overlaps, matching, targets.shape[1], confidence), found)
    counts = image_counts(overlaps, matching, confidence)
    wanted = [(outcomes == TRUE).sum(1), (outcomes == FALSE).sum(1), (found == MISSED).sum(1)]
    np.testing.assert_array_equal(counts, np.stack(wanted, axis=1))


@pytest.mark.parametrize("confidence", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("iou", [0.1, 0.5, 0.75])
def test_matching_is_that_of_plain_loops(iou, confidence):
    _compare(*scene(5, images=60, most=8, found=30, classes=2), iou, confidence)


@st.composite
def small_scenes(draw):
    """Return detections and targets of whole px, with equal overlaps, equal scores, crowds and padding anywhere."""
    images, found, most = draw(st.integers(1, 3)), draw(st.integers(0, 7)), draw(st.integers(0, 5))

    def rows(count, *columns):
        corners = draw(arrays(np.int64, (images, count, 2, 2), elements=st.integers(0, 6)))
        others = [draw(arrays(np.float32, (images, count, 1), elements=each)) for each in columns]
        return np.concatenate([corners.min(axis=2), corners.max(axis=2) + 1, *others], axis=2).astype(np.float32)

    kind = st.sampled_from([0.0, 1.0])
    detections = rows(found, st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8]), kind)
    return detections, rows(most, st.sampled_from([-1.0, 0.0, 1.0]), st.sampled_from([0.0, 0.0, 0.0, 1.0, 2.0]))


@given(small_scenes(), st.sampled_from([0.1, 0.3, 0.5, 1.0]), st.sampled_from([0.0, 0.3, 0.7]))
def test_matching_of_any_scene_is_that_of_loops(content, iou, confidence):
    _compare(*content, iou, confidence)


def test_the_better_detection_takes_the_object():
    detections = np.array([[[0, 0, 10, 9, 0.5, 0], [0, 0, 10, 10, 0.4, 0], [0, 0, 10, 6, 0.9, 0]]], np.float32)
    targets = np.array([[[0, 0, 10, 10, 0, 0]]], np.float32)
    overlaps = find_overlaps(detections, targets)
    assert detection_outcomes(overlaps, match(overlaps), 3).tolist() == [[FALSE, FALSE, TRUE]]
    assert detection_outcomes(overlaps, match(overlaps, 0.75), 3).tolist() == [[TRUE, FALSE, FALSE]]


def test_a_crowd_takes_any_number_of_detections():
    detections = np.array([[[0, 0, 10, 10, 0.9, 0], [5, 5, 15, 15, 0.8, 0], [0, 0, 10, 10, 0.7, 1]]], np.float32)
    targets = np.array([[[0, 0, 100, 100, 0, 1], [0, 0, 0, 0, -1, 0]]], np.float32)
    overlaps = find_overlaps(detections, targets)
    assert detection_outcomes(overlaps, match(overlaps), 3).tolist() == [[IGNORED, IGNORED, FALSE]]
    assert target_outcomes(overlaps, match(overlaps), 2).tolist() == [[IGNORED, 0]]
    targets[0, 0, 4:] = (-1, 2)  # a region without a class
    overlaps = find_overlaps(detections, targets)
    assert detection_outcomes(overlaps, match(overlaps), 3).tolist() == [[IGNORED] * 3]


def test_the_score_of_an_image_is_its_f1():
    detections = np.zeros((4, 2, 6), np.float32)
    targets = np.zeros((4, 2, 6), np.float32)
    targets[..., 4] = -1
    targets[:2, 0] = (0, 0, 10, 10, 0, 0)
    detections[0, 0] = (0, 0, 10, 10, 0.9, 0)
    detections[0, 1] = (50, 0, 60, 10, 0.8, 0)
    detections[1, 0] = (0, 0, 10, 10, 0.29, 0)  # not shown
    detections[2, 0] = (0, 0, 10, 10, 0.31, 0)
    np.testing.assert_allclose(image_scores(detections, targets), [2 / 3, 0, 0, 1])


def test_matching_of_nothing_is_empty():
    overlaps = find_overlaps(np.zeros((0, 100, 6)), np.zeros((0, 3, 6)))
    assert image_counts(overlaps, match(overlaps)).shape == (0, 3)
    assert image_scores(np.zeros((2, 100, 6)), np.zeros((2, 0, 6))).tolist() == [1, 1]


def test_results_of_other_shapes_are_an_error():
    with pytest.raises(UsageError, match=r"`targets` \(3, 2, 6\) for 2 images"):
        find_overlaps(np.zeros((2, 100, 6)), np.zeros((3, 2, 6)))
