"""Figures of classified samples, against the same figures counted one sample at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ziggurat.tasks.classification_metrics import (
    class_curves,
    class_figures,
    confusion_matrix,
    threshold_figures,
    top_share,
)

CLASSES = 4
NAMES = ["ant", "bee", "cat", "dog"]

SAMPLES = st.lists(
    st.tuples(
        st.integers(-1, CLASSES - 1),
        st.integers(0, CLASSES - 1),
        st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]),
    ),
    min_size=1,
    max_size=40,
)


def arrays(samples):
    labels, predicted, scores = zip(*samples, strict=True)
    return np.array(labels, np.int32), np.array(predicted, np.int32), np.array(scores, np.float32)


def counted(samples):
    matrix = [[0] * CLASSES for _ in range(CLASSES)]
    for label, predicted, _score in samples:
        if label >= 0:
            matrix[label][predicted] += 1
    return matrix


def share(part, whole):
    return part / whole if whole else None


@given(SAMPLES)
def test_the_confusion_counts_each_labelled_sample_once(samples):
    labels, predicted, _ = arrays(samples)

    assert confusion_matrix(labels, predicted, CLASSES).tolist() == counted(samples)


@given(SAMPLES)
def test_precision_recall_and_f1_of_each_class(samples):
    labels, predicted, _ = arrays(samples)

    found = class_figures(confusion_matrix(labels, predicted, CLASSES), NAMES)

    for number, each in enumerate(found):
        right = sum(1 for label, taken, _ in samples if label == taken == number)
        support = sum(1 for label, _, _ in samples if label == number)
        taken_for = sum(1 for label, taken, _ in samples if taken == number and label >= 0)
        assert each["name"] == NAMES[number]
        assert each["support"] == support
        assert each["precision"] == share(right, taken_for)
        assert each["recall"] == share(right, support)
        precision, recall = each["precision"], each["recall"]
        if precision and recall:
            assert each["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
        else:
            assert each["f1"] in (0.0, None)


@given(SAMPLES, st.sampled_from([0.0, 0.3, 0.5, 1.0, 1.1]))
def test_a_threshold_leaves_the_unsure_undecided(samples, threshold):
    labels, predicted, scores = arrays(samples)

    found = threshold_figures(labels, predicted, scores, NAMES, threshold)

    decided = [each for each in samples if each[2] >= threshold]
    known = [each for each in decided if each[0] >= 0]
    assert found["coverage"] == len(decided) / len(samples)
    assert found["decided"] == len(decided)
    assert found["accuracy"] == share(sum(label == taken for label, taken, _ in known), len(known))
    assert found["confusion"] == counted(decided)
    for number, each in enumerate(found["per_class"]):
        right = sum(1 for label, taken, _ in known if label == taken == number)
        support = sum(1 for label, _, _ in samples if label == number)
        assert each["support"] == support
        assert each["recall"] == share(right, support)
        assert each["precision"] == share(right, sum(1 for _, taken, _ in known if taken == number))


@given(SAMPLES)
def test_curves_count_what_is_taken_at_each_threshold(samples):
    labels, _, scores = arrays(samples)
    is_of_class = labels == 0

    found = class_curves(scores, is_of_class, points=1000)

    thresholds = sorted(set(scores.tolist()), reverse=True)
    assert found["thresholds"] == thresholds
    positives, negatives = int(is_of_class.sum()), int((~is_of_class).sum())
    mean, before, area, corner = 0.0, 0.0, 0.0, (0.0, 0.0)
    for place, threshold in enumerate(thresholds):
        taken = scores >= threshold
        hits, misses = int((taken & is_of_class).sum()), int((taken & ~is_of_class).sum())
        recall, rate = hits / max(1, positives), misses / max(1, negatives)
        assert found["precision"][place] == pytest.approx(hits / (hits + misses))
        assert found["recall"][place] == found["true_positive"][place] == pytest.approx(recall)
        assert found["false_positive"][place] == pytest.approx(rate)
        mean += (recall - before) * hits / (hits + misses)
        area += (rate - corner[0]) * (recall + corner[1]) / 2
        before, corner = recall, (rate, recall)
    assert found["average_precision"] == (pytest.approx(mean) if positives else None)
    assert found["area"] == (pytest.approx(area) if positives and negatives else None)


def test_the_area_is_the_share_of_pairs_in_the_right_order():
    random = np.random.default_rng(3)
    is_of_class = random.random(200) < 0.3
    scores = np.round(random.random(200) + 0.3 * is_of_class, 1).astype(np.float32)

    found = class_curves(scores, is_of_class, points=5)

    gaps = scores[is_of_class][:, None] - scores[~is_of_class][None]
    assert found["area"] == pytest.approx(((gaps > 0) + 0.5 * (gaps == 0)).mean())
    assert len(found["thresholds"]) == len(found["precision"]) == 5
    assert found["thresholds"] == sorted(found["thresholds"], reverse=True)
    assert found["recall"][-1] == 1.0


def test_nothing_has_no_curve():
    found = class_curves(np.zeros(0, np.float32), np.zeros(0, bool), points=10)

    assert (found["thresholds"], found["average_precision"], found["area"]) == ([], None, None)


def test_the_share_among_the_best_leaves_unknown_labels_out():
    labels = np.array([0, 1, -1, 2])
    best = np.array([[0, 1], [2, 0], [0, 1], [1, 2]])

    assert top_share(labels, best) == pytest.approx(2 / 3)
    assert top_share(np.array([-1]), np.array([[0, 1]])) is None
