"""Images of an evaluation that are chosen by their errors, classes and sizes, at any IoU and confidence."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.tasks.detection_parts import NAMES, scene
from ziggurat.errors import UnknownNameError, UsageError
from ziggurat.tasks.detection_choice import DetectionSamples, detection_fields, object_changes
from ziggurat.tasks.detection_errors import (
    ERRORS,
    average_precisions,
    confidence_figures,
    confusion,
    error_counts,
    error_types,
)
from ziggurat.tasks.detection_matching import find_overlaps, match
from ziggurat.tasks.sample_choice import checked_choice

FIELDS = detection_fields(NAMES)
BACKGROUND = str(len(NAMES))
IMAGES = 20


@pytest.fixture
def boxes():
    detections, targets = scene(3, images=IMAGES)
    detections[detections[..., 4] < 0.05] = 0  # what is never shown
    return detections, targets


def asked(**values):
    return checked_choice(FIELDS, values)


def samples_of(boxes):
    return DetectionSamples(*boxes, len(NAMES))


def alone(boxes, image):
    """Return the overlaps of one image."""
    return find_overlaps(*(part[image : image + 1] for part in boxes))


@pytest.mark.parametrize(("iou", "confidence"), [(0.5, 0.3), (0.75, 0.1), (0.3, 0.6)])
def test_each_kind_of_error_leaves_the_images_that_have_it(boxes, iou, confidence) -> None:
    samples = samples_of(boxes)
    for name in filter(None, ERRORS):
        found = samples.choose(asked(errors=name, iou=iou, confidence=confidence)).kept
        expected = []
        for image in range(IMAGES):
            overlaps = alone(boxes, image)
            matching = match(overlaps, iou)
            types = error_types(overlaps, matching, iou)
            expected.append(error_counts(overlaps, matching, types, confidence)[name] > 0)
        assert found.tolist() == expected, name
    has_any = samples.choose(asked(errors="any", iou=iou, confidence=confidence)).kept
    each = [samples.choose(asked(errors=name, iou=iou, confidence=confidence)).kept for name in ERRORS if name]
    assert has_any.tolist() == np.any(each, axis=0).tolist()


@pytest.mark.parametrize(("iou", "confidence"), [(0.5, 0.3), (0.6, 0.05)])
def test_each_cell_of_the_confusion_leaves_its_images(boxes, iou, confidence) -> None:
    samples, side = samples_of(boxes), len(NAMES) + 1
    matrices = np.array([confusion(alone(boxes, image), len(NAMES), iou, confidence) for image in range(IMAGES)])
    figures = samples.figures(asked(iou=iou, confidence=confidence))
    assert figures["confusion"] == matrices.sum(axis=0).tolist()
    for actual in range(side):
        for found in range(side):
            chosen = samples.choose(asked(actual=actual, found=found, iou=iou, confidence=confidence)).kept
            assert chosen.tolist() == (matrices[:, actual, found] > 0).tolist(), (actual, found)


def test_figures_are_those_of_all_images(boxes) -> None:
    figures = samples_of(boxes).figures(asked(iou=0.6, confidence=0.4))
    overlaps = find_overlaps(*boxes)
    matching = match(overlaps, 0.6)
    is_shown = overlaps.scores >= 0.4
    true, false = (int((part & is_shown).sum()) for part in (matching.is_true, matching.is_false))
    objects = int(overlaps.is_object.sum())
    assert figures["precision"] == pytest.approx(true / (true + false), abs=1e-4)
    assert figures["recall"] == pytest.approx(true / objects, abs=1e-4)
    counts = error_counts(overlaps, matching, error_types(overlaps, matching, 0.6), 0.4)
    assert {each["error"]: each["count"] for each in figures["errors"]} == counts
    assert (figures["correct"], figures["false"], figures["missed"]) == (true, false, objects - true)
    assert [each["confidence"] for each in figures["by_confidence"]] == [round(0.01 * each, 2) for each in range(5, 96)]


def test_curves_and_points_of_classes_follow_the_overlap(boxes) -> None:
    figures = samples_of(boxes).figures(asked(iou=0.6, confidence=0.4))
    overlaps = find_overlaps(*boxes)
    matching = match(overlaps, 0.6)
    kept = ~matching.is_ignored
    areas = average_precisions(
        overlaps.scores[kept], overlaps.classes[kept], matching.is_true[kept], overlaps.objects(len(NAMES))
    )
    assert np.mean(figures["precisions"], axis=1) == pytest.approx(areas, abs=1e-3)
    for number, point in enumerate(figures["points"]):
        found = confidence_figures(overlaps, matching, np.array([0.4]), number)
        assert point == pytest.approx([found["recall"][0], found["precision"][0]], abs=1e-4)
    assert "precisions" not in samples_of(boxes).figures(asked())


def test_sizes_are_those_of_the_objects() -> None:
    areas = {"small": 20.0, "medium": 60.0, "large": 200.0}
    targets = np.array([[(0, 0, side, side, 0, 0)] for side in areas.values()], np.float32)
    samples = DetectionSamples(np.zeros((3, 1, 6), np.float32), targets, len(NAMES))
    for number, name in enumerate(areas):
        kept = samples.choose(asked(size=name)).kept
        assert np.flatnonzero(kept).tolist() == [number]
        assert samples.choose(asked(size=name, actual="0", found=BACKGROUND)).kept.tolist() == kept.tolist()
        assert not samples.choose(asked(size=name, actual="1")).kept.any()


def test_changes_count_objects_and_wrong_boxes(boxes) -> None:
    detections, targets = boxes
    fewer = detections.copy()
    fewer[:7, :, 4] = 0
    first, second = DetectionSamples(fewer, targets, len(NAMES)), samples_of(boxes)
    every = (np.arange(IMAGES), np.arange(IMAGES))
    there, back = (object_changes(*pair, every, asked()) for pair in ((first, second), (second, first)))
    assert there is not None
    assert back is not None
    assert there.broken == back.fixed == 0
    assert there.fixed == back.broken > 0
    assert there.wrong_before < there.wrong_after
    objects = int(find_overlaps(*boxes).is_object.sum())
    matching = match(second.overlaps)
    found = int((matching.is_true & (second.overlaps.scores >= 0.3)).sum())
    assert there.still_missed == objects - found
    part = object_changes(first, second, (np.arange(7, IMAGES), np.arange(7, IMAGES)), asked())
    assert part is not None
    assert (part.fixed, part.broken) == (0, 0)
    moved = targets.copy()
    moved[0, 0, :2] -= 1
    assert object_changes(first, DetectionSamples(detections, moved, len(NAMES)), every, asked()) is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"iou": "7"}, "from 0.1 to 0.95"),
        ({"iou": "nan"}, "from 0.1 to 0.95"),
        ({"confidence": "much"}, "from 0.05 to 0.95"),
        ({"errors": "missing"}, "one of its values"),
        ({"actual": "5"}, "one of its values"),
    ],
)
def test_a_value_that_cannot_be_is_refused(values, words) -> None:
    with pytest.raises(UsageError, match=words):
        asked(**values)


def test_an_unknown_field_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean `errors`"):
        asked(eror="missed")
