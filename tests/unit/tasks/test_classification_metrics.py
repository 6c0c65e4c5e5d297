"""Quality measures of a classifier, each compared with scikit-learn, a table, or a sum by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score
from sklearn.metrics import log_loss as expected_log_loss

from ziggurat.tasks.classification_metrics import (
    NO_QUALITY,
    accuracy_interval,
    calibration_error,
    class_figures,
    confusion_matrix,
    log_loss,
    macro_f1,
    mcnemar_p_value,
    paired_difference_interval,
    quality_measures,
)


@pytest.mark.parametrize(
    ("correct", "count", "wanted"),
    [(335, 372, (0.8659, 0.9270)), (0, 10, (0.0, 0.2775)), (10, 10, (0.7225, 1.0)), (1, 1, (0.2065, 1.0))],
)
def test_accuracy_interval_is_wilsons(correct: int, count: int, wanted: tuple[float, float]) -> None:
    assert accuracy_interval(correct, count) == pytest.approx(wanted, abs=1e-4)
    assert accuracy_interval(0, 0) is None


@pytest.mark.parametrize(
    ("fixed", "broken", "wanted"),
    [(7, 4, 0.548828125), (0, 0, 1.0), (5, 5, 1.0), (10, 0, 2 / 1024), (700, 500, 9.22e-9)],
)
def test_mcnemar_p_value(fixed: int, broken: int, wanted: float) -> None:
    assert mcnemar_p_value(fixed, broken) == pytest.approx(wanted, rel=5e-3)
    assert mcnemar_p_value(broken, fixed) == mcnemar_p_value(fixed, broken)


def test_mcnemar_exact_and_approximate_agree() -> None:
    assert mcnemar_p_value(520, 480) == pytest.approx(mcnemar_p_value(520, 481), abs=0.02)


@pytest.mark.parametrize(
    ("outcomes", "wanted"),
    [
        ((1, 1, 7, 12), (0.026, 0.507)),  # Fagerland, Lydersen and Laake, Statistics in Medicine 33 (2014), 2850
        ((14, 5, 0, 22), (-0.226, -0.011)),  # Altman et al., Statistics with confidence (2000), page 52
    ],
)
def test_paired_difference_interval_is_newcombes(outcomes: tuple[int, ...], wanted: tuple[float, float]) -> None:
    both, first, second, neither = outcomes
    low, high = paired_difference_interval(both, first, second, neither) or (0.0, 0.0)

    assert (low, high) == pytest.approx(wanted, abs=6e-4)
    assert paired_difference_interval(both, second, first, neither) == pytest.approx((-high, -low))


def test_paired_difference_interval_covers_95_percent() -> None:
    random = np.random.default_rng(3)
    chances = np.array([0.55, 0.1, 0.2, 0.15])
    tables = random.multinomial(80, chances, 2000).tolist()

    found = [paired_difference_interval(*table) or (1.0, -1.0) for table in tables]

    covered = np.mean([low <= chances[2] - chances[1] <= high for low, high in found])
    assert 0.935 < covered < 0.975


def test_paired_difference_interval_of_extremes() -> None:
    assert paired_difference_interval(0, 0, 0, 0) is None
    assert paired_difference_interval(10, 0, 0, 0) == pytest.approx((-0.2775, 0.2775), abs=1e-4)
    low, high = paired_difference_interval(0, 0, 5, 0) or (0.0, 0.0)
    assert -1 <= low < 1 == high


def test_calibration_error_weighs_the_gaps_of_the_bins() -> None:
    scores = np.array([0.99, 0.99, 0.5, 0.5, 0.5], np.float32)
    is_right = np.array([True, False, True, False, False])

    assert calibration_error(scores, is_right) == pytest.approx((abs(1 - 1.98) + abs(1 - 1.5)) / 5, abs=1e-6)
    assert calibration_error(np.ones(4, np.float32), np.ones(4, bool)) == 0
    assert calibration_error(np.zeros(0), np.zeros(0, bool)) is None


def test_measures_agree_with_scikit_learn() -> None:
    random = np.random.default_rng(4)
    probabilities = random.dirichlet(np.ones(5), 200).astype(np.float32)
    labels = random.integers(0, 5, 200)
    ranks = np.argsort(-probabilities, axis=1, kind="stable")
    predicted, names = ranks[:, 0], list("abcde")
    per_class = class_figures(confusion_matrix(labels, predicted, 5), names)

    found = quality_measures(
        labels, predicted, probabilities.max(axis=1), probabilities[np.arange(200), labels], ranks[:, :5], per_class
    )

    assert found["macro_f1"] == pytest.approx(f1_score(labels, predicted, average="macro"))
    assert found["log_loss"] == pytest.approx(expected_log_loss(labels, probabilities), rel=1e-5)
    assert found["top3"] == pytest.approx((ranks[:, :3] == labels[:, None]).any(axis=1).mean())
    assert (found["labeled"], found["correct"]) == (200, (labels == predicted).sum())


def test_unlabeled_samples_have_no_measures() -> None:
    nothing = np.full(4, -1)

    assert quality_measures(nothing, nothing, nothing, nothing, nothing[:, None], []) == NO_QUALITY
    assert macro_f1([{"f1": None, "support": 0}]) is None
    assert log_loss(np.zeros(0)) is None


def test_a_score_of_zero_keeps_the_log_loss_finite() -> None:
    assert log_loss(np.array([0.0, np.nan, 1.0], np.float32)) == pytest.approx(2 * 15.9424 / 3, abs=1e-3)
