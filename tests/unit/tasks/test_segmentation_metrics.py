"""Metrics of segmentation, against scikit-learn and a count pixel by pixel."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import confusion_matrix, jaccard_score, precision_score, recall_score

from tests.unit.tasks.metric_parts import assert_close, measured, merged
from ziggurat.errors import UsageError
from ziggurat.tasks.segmentation_metrics import SegmentationMetric, class_masks, constant_class_baseline, sample_iou

_NAMES = ["sky", "road", "car", "tree"]


def _make(ignore=255):
    return lambda: SegmentationMetric(_NAMES, ignore)


def _batch(seed=0, count=9, classes=4):
    chance = np.random.default_rng(seed)
    scores = chance.random((count, 6, 7, classes)).astype(np.float32)
    masks = chance.choice([*range(classes), 255, 77], (count, 6, 7, 1)).astype(np.uint8)
    return {"output": scores}, {"y": masks}


def _mean_iou(predicted, target, classes, ignore):
    """Return the mean IoU and pixel accuracy of some pixels, counted as sets of places."""
    places = [place for place in range(len(target)) if 0 <= target[place] < classes and target[place] != ignore]
    ious = []
    for number in range(classes):
        is_there = {place for place in places if target[place] == number}
        is_predicted = {place for place in places if predicted[place] == number}
        if number != ignore and is_there | is_predicted:
            ious.append(len(is_there & is_predicted) / len(is_there | is_predicted))
    right = [predicted[place] == target[place] for place in places]
    return (np.mean(ious) if ious else np.nan), (np.mean(right) if right else np.nan)


def test_segmentation_values_are_those_of_scikit_learn():
    outputs, targets = _batch()
    values = measured(_make(), outputs, targets)

    predicted, target = outputs["output"].argmax(axis=3).ravel(), targets["y"].ravel()
    known = target < 4
    predicted, target = predicted[known], target[known]
    ious = jaccard_score(target, predicted, average=None, labels=range(4))
    np.testing.assert_allclose([each["iou"] for each in values["classes"]], ious, rtol=1e-12)
    assert values["mean_iou"] == pytest.approx(np.mean(ious), rel=1e-12)
    assert values["pixel_accuracy"] == pytest.approx(np.mean(target == predicted), rel=1e-12)
    assert values["confusion"] == confusion_matrix(target, predicted).tolist()
    for name, score in (("precision", precision_score), ("recall", recall_score)):
        found = [each[name] for each in values["classes"]]
        np.testing.assert_allclose(found, score(target, predicted, average=None), rtol=1e-12)
    assert [each["pixels"] for each in values["classes"]] == np.bincount(target).tolist()
    assert [each["predicted"] for each in values["classes"]] == np.bincount(predicted).tolist()
    assert values["counts"] == {"pixels": len(target), "outside": int((targets["y"] == 77).sum())}
    json.dumps(values)


def test_segmentation_parts_merge_to_one_pass():
    outputs, targets = _batch()
    for seed in range(4):
        assert merged(_make(), outputs, targets, seed) == measured(_make(), outputs, targets)


def test_class_numbers_count_as_scores_do():
    outputs, targets = _batch()
    numbers = outputs["output"].argmax(axis=3)
    wanted = measured(_make(), outputs, targets)
    assert measured(_make(), {"output": numbers}, targets) == wanted
    assert measured(_make(), {"output": numbers[..., None].astype(np.int32)}, {"y": targets["y"][..., 0]}) == wanted
    assert measured(_make(), {"output": numbers}, {"y": targets["y"].astype(np.float32)}) == wanted


def test_absent_classes_are_not_part_of_the_mean_iou():
    values = measured(_make(), {"output": np.array([[[0, 0, 1]]])}, {"y": np.array([[[0, 0, 0]]])})
    assert [each["iou"] for each in values["classes"]] == [2 / 3, 0.0, None, None]
    assert values["mean_iou"] == pytest.approx(1 / 3)


def test_an_ignored_class_has_no_iou():
    outputs, targets = _batch()
    values = measured(_make(ignore=0), outputs, targets)
    wanted = _mean_iou(outputs["output"].argmax(axis=3).ravel(), targets["y"].ravel(), 4, 0)
    assert (values["mean_iou"], values["pixel_accuracy"]) == pytest.approx(wanted, rel=1e-12)
    assert values["classes"][0]["iou"] is None
    assert values["classes"][0]["predicted"] > 0
    assert values["counts"]["outside"] == int((targets["y"] >= 4).sum())


def test_without_counted_pixels_there_are_no_figures():
    assert SegmentationMetric(_NAMES).compute() == {}
    masks = np.full((1, 2, 2), 255)
    assert measured(_make(None), {"output": masks * 0}, {"y": masks}) == {"counts": {"pixels": 0, "outside": 4}}
    assert measured(_make(255), {"output": masks * 0}, {"y": masks}) == {}


def test_many_classes_have_no_confusion_matrix():
    names = [str(number) for number in range(1001)]
    values = measured(lambda: SegmentationMetric(names), {"output": np.ones((1, 2, 2))}, {"y": np.ones((1, 2, 2))})
    assert "confusion" not in values
    assert values["mean_iou"] == 1.0


_MASKS = arrays(np.int64, (3, 2, 4), elements=st.integers(-1, 4))


@given(arrays(np.int64, (3, 2, 4), elements=st.integers(0, 2)), _MASKS, st.sampled_from([None, 1, 4]))
def test_sample_iou_is_that_of_each_sample_alone(predicted, target, ignore):
    ious, accuracies = sample_iou(predicted, target, 3, ignore)
    for number in range(3):
        wanted = _mean_iou(predicted[number].ravel(), target[number].ravel(), 3, ignore)
        np.testing.assert_allclose((ious[number], accuracies[number]), wanted, rtol=1e-12)
        alone = measured(
            lambda: SegmentationMetric(_NAMES[:3], ignore), {"output": predicted[[number]]}, {"y": target[[number]]}
        )
        np.testing.assert_allclose(ious[number], alone.get("mean_iou", np.nan), rtol=1e-12)


def test_constant_baseline_is_the_iou_of_that_prediction():
    _, targets = _batch(3)
    target = np.where(targets["y"] == 3, 1, targets["y"])  # class 1 is the most frequent one, class 3 is absent
    matrix = measured(_make(), {"output": np.zeros(target.shape[:3], int)}, {"y": target})["confusion"]
    constant = measured(_make(), {"output": np.ones(target.shape[:3], int)}, {"y": target})
    assert constant_class_baseline(matrix) == pytest.approx(constant["mean_iou"], rel=1e-12)
    assert constant_class_baseline(np.zeros((4, 4))) is None


@pytest.mark.parametrize(
    ("output", "target", "text"),
    [
        (np.zeros((2, 3, 3, 5)), np.zeros((2, 3, 3)), r"shape \(2, 3, 3, 5\), neither a score for each of 4 classes"),
        (np.zeros((2, 3, 3), int), np.zeros((2, 4, 3)), r"output \(2, 3, 3\) for target \(2, 4, 3\)"),
        (np.full((2, 3, 3), 4), np.zeros((2, 3, 3)), "from 4 to 4, not from 0 to 3"),
        (np.zeros((2, 3, 3), int), np.zeros((2, 3, 3, 3)), r"number for each pixel \(received: shape"),
        (np.zeros((2, 3, 3), int), np.full((2, 3, 3), 0.5), r"class number 0\.5 is no whole number"),
    ],
)
def test_masks_of_another_form_are_refused(output, target, text):
    with pytest.raises(UsageError, match=text):
        measured(_make(), {"output": output}, {"y": target})


def test_segmentation_states_of_other_classes_are_refused():
    with pytest.raises(UsageError, match=r"`matrix` \(2, 2\) for \(4, 4\)"):
        SegmentationMetric(_NAMES).merge(SegmentationMetric(_NAMES[:2]).state())


def test_of_equal_scores_the_smaller_class_is_predicted():
    assert class_masks(np.ones((1, 1, 1, 4)), 4).tolist() == [[[0]]]
    assert_close(measured(_make(), {"output": np.ones((1, 1, 1, 4))}, {"y": np.zeros((1, 1, 1))})["mean_iou"], 1.0)
