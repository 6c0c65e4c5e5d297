"""A linear head for fixed features: what it fits, what it chooses, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from ziggurat.engine import linear_head
from ziggurat.engine.linear_head import fit_linear_head, held_out_probabilities
from ziggurat.errors import DataError

pytest.importorskip("scipy", reason="a head is fitted by SciPy")


def _samples(count: int = 240, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(5)
    labels = np.arange(count) % 3
    features = random.normal(size=(count, 8)) * noise
    features[np.arange(count), labels] += 2.5
    return (features * 40 + 7).astype(np.float32), labels


def test_a_head_agrees_with_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is the reference")
    monkeypatch.setattr(linear_head, "STRENGTHS", (0.01,))
    features, labels = _samples()
    head = fit_linear_head(features, labels, 3, seed=1)
    standard = (features - features.mean(axis=0)) / features.std(axis=0)
    reference = linear_model.LogisticRegression(C=1 / (0.01 * len(labels)), tol=1e-8, max_iter=2000)
    expected = reference.fit(standard, labels).predict_proba(standard)
    np.testing.assert_allclose(head.probabilities(features), expected, atol=2e-3)


def test_the_strength_loses_least_on_samples_left_out() -> None:
    features, labels = _samples(60, noise=3.0)
    head = fit_linear_head(features, labels, 3, seed=1)
    assert head.strength == min(head.scores, key=lambda each: head.scores[each])
    again = fit_linear_head(features, labels, 3, seed=1)
    np.testing.assert_array_equal(again.weights, head.weights)


def test_a_class_without_samples_gets_a_low_probability() -> None:
    features, labels = _samples()
    assert fit_linear_head(features, labels, 5, seed=1).probabilities(features)[:, 3:].max() < 0.1


def test_sample_weights_count_as_copies_of_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_head, "STRENGTHS", (0.1,))
    features, labels = _samples(90, noise=2.0)
    weights = np.where(labels == 0, 3.0, 1.0)
    weighted = fit_linear_head(features, labels, 3, seed=1, sample_weights=weights)
    plain = fit_linear_head(features, labels, 3, seed=1)
    assert (weighted.probabilities(features)[:, 0] > plain.probabilities(features)[:, 0]).mean() > 0.9


def test_a_wrong_label_is_not_learned_by_its_judge() -> None:
    features, labels = _samples()
    labels[0] = (labels[0] + 1) % 3
    found = held_out_probabilities(features, labels, 3, seed=1)
    assert found[0, labels[0]] < 0.5
    assert (found.argmax(axis=1) == labels).mean() > 0.9


def test_progress_is_told_up_to_the_last_fit() -> None:
    features, labels = _samples(30)
    told: list[tuple[int, int]] = []
    fit_linear_head(features, labels, 3, seed=1, note=lambda done, total: told.append((done, total)))
    assert told[0] == (1, 26)
    assert told[-1] == (26, 26)


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda features, labels: labels.__imul__(0), "one class"),
        (lambda features, labels: features.__setitem__((0, 3), np.nan), "not finite"),
    ],
)
def test_what_teaches_nothing_is_refused(spoil, text: str) -> None:
    features, labels = _samples(30)
    spoil(features, labels)
    with pytest.raises(DataError, match=text):
        fit_linear_head(features, labels, 3, seed=1)
