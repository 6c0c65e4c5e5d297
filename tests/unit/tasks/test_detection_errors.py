"""Errors of detections: kinds and their costs, confusion of classes, curves, the best confidence."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.tasks.detection_parts import NAMES, measured_scene, scene
from ziggurat.tasks.detection_errors import (
    BACKGROUND,
    BOTH,
    CLASSIFICATION,
    DUPLICATE,
    ERRORS,
    LOCALIZATION,
    average_precisions,
    best_points,
    confidence_figures,
    confusion,
    error_costs,
    error_counts,
    error_types,
    precision_at_recalls,
)
from ziggurat.tasks.detection_matching import find_overlaps, image_counts, match

OBJECT = (0, 0, 100, 100, 0, 0)
RIGHT = (0, 0, 100, 100, 0.9, 0)
WRONG = {
    CLASSIFICATION: (0, 0, 100, 90, 0.8, 1),
    LOCALIZATION: (0, 0, 100, 40, 0.8, 0),
    BOTH: (0, 0, 100, 40, 0.8, 1),
    DUPLICATE: (0, 0, 100, 90, 0.8, 0),
    BACKGROUND: (0, 0, 100, 9, 0.8, 0),
}


def _found(detections, targets):
    overlaps = find_overlaps(np.array([detections], np.float32), np.array([targets], np.float32))
    return overlaps, match(overlaps)


@pytest.mark.parametrize("kind", WRONG, ids=[ERRORS[kind] for kind in WRONG])
def test_each_error_has_its_kind(kind):
    overlaps, matching = _found([RIGHT, WRONG[kind]], [OBJECT])
    types = error_types(overlaps, matching)
    assert types.kind.tolist() == [0, kind]
    assert types.target.tolist() == [-1, 0 if kind in (CLASSIFICATION, LOCALIZATION) else -1]
    counts = error_counts(overlaps, matching, types)
    assert counts == {name: int(name == ERRORS[kind]) for name in ERRORS if name}


@pytest.mark.parametrize("kind", [CLASSIFICATION, LOCALIZATION])
def test_without_the_error_the_detection_is_right(kind):
    overlaps, matching = _found([WRONG[kind]], [OBJECT])
    types = error_types(overlaps, matching)
    costs = error_costs(overlaps, matching, types, 2)
    assert costs == {name: pytest.approx(1.0 if name == ERRORS[kind] else 0.0) for name in ERRORS if name}
    assert error_counts(overlaps, matching, types)["missed"] == 0


@pytest.mark.parametrize("kind", [BOTH, DUPLICATE, BACKGROUND])
def test_without_the_error_the_detection_is_gone(kind):
    # One wrong detection stands between the two right ones of its class: there, precision is 2 / 3.
    wrong = (*WRONG[kind][:5], 0) if kind != BOTH else (200, 0, 300, 40, 0.8, 0)
    targets = [OBJECT, (500, 0, 600, 100, 0, 0), (200, 0, 300, 100, 1, 0)]
    overlaps, matching = _found([RIGHT, wrong, (500, 0, 600, 100, 0.7, 0), (200, 0, 300, 100, 0.6, 1)], targets)
    types = error_types(overlaps, matching)
    assert types.kind.tolist() == [0, kind, 0, 0]
    costs = error_costs(overlaps, matching, types, 2)
    lost = (1 - (51 + 50 * 2 / 3) / 101) / 2  # of one of two classes
    assert costs == {name: pytest.approx(lost if name == ERRORS[kind] else 0.0) for name in ERRORS if name}


def test_missed_objects_are_no_longer_asked_for():
    overlaps, matching = _found([RIGHT], [OBJECT, (500, 0, 600, 100, 0, 0)])
    types = error_types(overlaps, matching)
    assert error_counts(overlaps, matching, types)["missed"] == 1
    assert error_costs(overlaps, matching, types, 1)["missed"] == pytest.approx(50 / 101)


def test_of_several_errors_on_an_object_the_best_is_mended():
    detections = [(0, 0, 100, 45, 0.9, 0), (0, 0, 100, 40, 0.8, 0), (0, 55, 100, 100, 0.7, 0)]
    overlaps, matching = _found(detections, [OBJECT])
    types = error_types(overlaps, matching)
    assert types.kind.tolist() == [LOCALIZATION] * 3
    assert error_costs(overlaps, matching, types, 1)["localization"] == pytest.approx(1.0)


def test_costs_are_never_negative_and_all_kinds_occur():
    overlaps = find_overlaps(*scene(6, images=80, found=40))
    matching = match(overlaps)
    types = error_types(overlaps, matching)
    costs = error_costs(overlaps, matching, types, len(NAMES))
    assert min(costs.values()) > 0
    assert (types.kind > 0).sum() == matching.is_false.sum()
    shown = error_counts(overlaps, matching, types, 0.5)
    assert sum(shown.values()) - shown["missed"] == (matching.is_false & (overlaps.scores >= 0.5)).sum()


def test_own_average_precision_is_that_of_the_library():
    detections, targets = scene(7, images=60, found=30)
    targets[..., :4] = targets[..., :4].round(2)
    overlaps = find_overlaps(detections, targets)
    matching = match(overlaps)
    kept = ~matching.is_ignored
    found = average_precisions(
        overlaps.scores[kept], overlaps.classes[kept], matching.is_true[kept], overlaps.objects(len(NAMES))
    )
    wanted = [each["ap50"] for each in measured_scene(detections, targets).compute()["classes"]]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_precision_at_recalls_takes_the_best_that_follows():
    found = precision_at_recalls(np.array([True, False, True]), 4)
    np.testing.assert_allclose(found[[0, 25, 26, 50, 51, 100]], [1, 1, 2 / 3, 2 / 3, 0, 0])
    assert not precision_at_recalls(np.zeros(0, bool), 4).any()
    assert not precision_at_recalls(np.zeros(3, bool), 0).any()


def test_confusion_counts_each_object_and_detection_once():
    overlaps = find_overlaps(*scene(8, images=80))
    for iou, confidence in ((0.5, 0.3), (0.3, 0.0), (0.75, 0.6)):
        matrix = confusion(overlaps, len(NAMES), iou, confidence)
        matching = match(overlaps, iou)
        is_shown = (overlaps.scores >= confidence) & ~matching.is_ignored
        np.testing.assert_array_equal(matrix[:-1].sum(axis=1), overlaps.objects(len(NAMES)))
        np.testing.assert_array_equal(matrix[:, :-1].sum(axis=0), np.bincount(overlaps.classes[is_shown], minlength=4))
        assert matrix[-1, -1] == 0
        true = image_counts(overlaps, matching, confidence)[:, 0].sum()
        assert matrix[:-1, :-1].trace() == true
        assert 0 < true < matrix[:-1, :-1].sum()


def test_confusion_has_rows_of_objects_and_background_last():
    detections = [RIGHT, (500, 0, 600, 100, 0.8, 1), (900, 0, 950, 50, 0.7, 1), (0, 0, 100, 99, 0.2, 1)]
    overlaps, _ = _found(detections, [OBJECT, (500, 0, 600, 100, 0, 0), (700, 0, 800, 100, 1, 0)])
    assert confusion(overlaps, 2).tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("number", [None, 2])
def test_figures_at_a_confidence_are_counts(number):
    overlaps = find_overlaps(*scene(9, images=40))
    matching = match(overlaps)
    confidences = np.array([0.7, 0.0, 0.3, 1.0])
    found = confidence_figures(overlaps, matching, confidences, number)
    is_class = np.ones(len(overlaps.scores), bool) if number is None else overlaps.classes == number
    objects = overlaps.objects(4)[slice(None) if number is None else number].sum()
    for place, confidence in enumerate(confidences):
        is_shown = is_class & (overlaps.scores >= confidence)
        true, false = (is_shown & matching.is_true).sum(), (is_shown & matching.is_false).sum()
        assert found["recall"][place] == true / objects
        assert found["f1"][place] == 2 * true / (true + false + objects)
        if true + false:
            assert found["precision"][place] == true / (true + false)
        else:
            assert np.isnan(found["precision"][place])


def test_the_best_confidence_is_the_best_of_all():
    detections, targets = scene(10, images=40)
    detections[..., 4] = detections[..., 4].round(1)  # equal scores count together
    overlaps = find_overlaps(detections, targets)
    matching = match(overlaps)
    points = best_points(overlaps, matching, len(NAMES))
    confidences = np.unique(overlaps.scores)
    for number, point in zip([None, *range(len(NAMES))], points, strict=True):
        figures = confidence_figures(overlaps, matching, confidences, number)
        assert point.f1 == figures["f1"].max()
        place = confidences.searchsorted(point.confidence)
        assert point.precision == pytest.approx(figures["precision"][place], rel=1e-12)
        assert point.recall == pytest.approx(figures["recall"][place], rel=1e-12)
        assert point.f1 == pytest.approx(figures["f1"][place], rel=1e-12)


def test_there_is_no_best_confidence_without_a_right_one():
    overlaps, matching = _found([WRONG[BACKGROUND]], [OBJECT])
    assert best_points(overlaps, matching, 2) == [None] * 3
