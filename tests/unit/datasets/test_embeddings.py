"""Shows what follows from features: components, neighbors, near duplicates, label errors; and own features."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.unit.datasets.small_task_datasets import COLUMNS, row, text
from ziggurat.datasets.embeddings.label_candidates import confident_joint, label_candidates
from ziggurat.datasets.embeddings.neighbors import near_pairs, nearest, nearest_of_each
from ziggurat.datasets.embeddings.own_features import (
    features_of_pixels,
    features_of_rows,
    features_of_texts,
    small_pixels,
)
from ziggurat.datasets.embeddings.projections import (
    check_tsne,
    fitting_perplexity,
    principal_components,
    tsne,
    unit_rows,
)
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.records.schema import Schema


def groups(count: int = 40, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Return features of three groups of equal size, far from each other, and the group of each."""
    rng = np.random.default_rng(0)
    numbers = np.arange(3 * count) % 3
    centers = 20 * np.eye(3, width)
    return (centers[numbers] + rng.normal(size=(3 * count, width))).astype(np.float32), numbers


def nothing(_done: int, _total: int) -> None:
    pass


# ---- projections


def test_components_are_those_of_an_svd() -> None:
    features, _ = groups()
    scores, shares = principal_components(features, 2)
    centered = features - features.mean(axis=0)
    left, values, _ = np.linalg.svd(centered, full_matrices=False)
    assert np.allclose(np.abs(scores), np.abs(left[:, :2] * values[:2]), atol=1e-2)
    assert np.allclose(shares, (values**2 / (values**2).sum())[:2], atol=1e-4)
    wide = np.hstack([features, *np.random.default_rng(1).normal(size=(30, 120, 6)).astype(np.float32)])
    scores, _ = principal_components(wide, 2)  # fewer samples than features
    left, values, _ = np.linalg.svd(wide - wide.mean(axis=0), full_matrices=False)
    assert np.allclose(np.abs(scores), np.abs(left[:, :2] * values[:2]), atol=1e-2)


def test_components_do_not_depend_on_the_sign_of_an_axis() -> None:
    features, _ = groups()
    scores, _ = principal_components(features, 3)
    # The largest weight of each axis is positive: the axis points to where its largest feature grows.
    weights = np.linalg.lstsq(scores, features - features.mean(axis=0), rcond=None)[0]
    assert all(each[np.abs(each).argmax()] > 0 for each in weights)
    assert np.array_equal(scores, principal_components(features, 3)[0])


def test_components_of_few_features_are_fewer() -> None:
    assert principal_components(np.arange(4, dtype=np.float32)[:, None], 50)[0].shape == (4, 1)


def test_features_must_be_finite() -> None:
    with pytest.raises(DataError, match="not finite"):
        principal_components(np.array([[1, np.nan]], np.float32), 1)


def test_unit_rows_keep_zeros() -> None:
    assert np.allclose(unit_rows(np.array([[3, 4], [0, 0]], np.float32)), [[0.6, 0.8], [0, 0]])


def test_perplexity_fits_few_samples() -> None:
    assert [fitting_perplexity(30, count) for count in (1000, 31, 4)] == [30, 10, 1]


def test_tsne_keeps_groups_together_and_repeats() -> None:
    pytest.importorskip("openTSNE")
    features, numbers = groups()
    told: list[tuple[int, int]] = []
    options = {"perplexity": 10.0, "seed": 3, "threads": 1}
    placed = tsne(features, note=lambda done, total: told.append((done, total)), **options)
    near = np.linalg.norm(placed[:, None] - placed[None], axis=2)
    np.fill_diagonal(near, np.inf)
    assert (numbers[near.argmin(axis=1)] == numbers).all()
    assert told[-1] == (750, 750)
    assert np.array_equal(placed, tsne(features, note=nothing, **options))


def test_tsne_ends_when_it_is_told_to() -> None:
    pytest.importorskip("openTSNE")

    def stop(done: int, _total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tsne(groups()[0], perplexity=10, seed=0, threads=1, note=stop)


def test_tsne_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    with pytest.raises(MissingDependencyError, match=r"ziggurat\[maps\]"):
        check_tsne()


# ---- neighbors


def test_the_nearest_are_those_of_the_largest_cosine() -> None:
    features, _ = groups()
    places, cosines = nearest(features, 5, 7)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    expected = unit @ unit[5]
    expected[5] = -2
    order = np.argsort(-expected, kind="stable")[:7]
    assert places.tolist() == order.tolist()
    assert np.allclose(cosines, expected[order], atol=1e-5)
    assert len(nearest(features[:3], 0, 10)[0]) == 2
    assert len(nearest(features[:1], 0, 10)[0]) == 0


def test_each_sample_has_its_nearest() -> None:
    features, _ = groups(200)  # more than one block
    places, cosines = nearest_of_each(features, nothing)
    for place in (0, 255, 256, 599):
        best, cosine = nearest(features, place, 1)
        assert places[place] == best[0]
        assert cosines[place] == pytest.approx(float(cosine[0]), abs=1e-5)
    assert nearest_of_each(features[:1], nothing)[0].tolist() == [-1]


def test_near_duplicates_are_closer_than_neighbors_are() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(50, 32)).astype(np.float32)
    features[49] = features[7] + 0.01 * rng.normal(size=32)
    features[48] = features[3] + 0.05 * rng.normal(size=32)
    found, least = near_pairs(*nearest_of_each(features, nothing))
    assert found.tolist() == [7, 49, 3, 48]  # the closest pair first, pairs together
    assert 0.85 < least < 1


def test_one_sample_has_no_near_duplicate() -> None:
    assert near_pairs(*nearest_of_each(np.ones((1, 2), np.float32), nothing))[0].tolist() == []


# ---- labels


def planted(seed: int = 0, count: int = 600, classes: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return probabilities of samples, their labels, and which of these are wrong: one in ten."""
    rng = np.random.default_rng(seed)
    right = rng.integers(0, classes, count)
    logits = rng.normal(size=(count, classes)) + 4 * np.eye(classes)[right]
    labels = right.copy()
    wrong = rng.choice(count, count // 10, replace=False)
    labels[wrong] = (right[wrong] + rng.integers(1, classes, len(wrong))) % classes
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), labels, wrong


def test_candidates_are_as_many_as_the_joint_expects() -> None:
    # Class 0 is told well, class 1 badly: its mean is 0.4, so three samples of label 0 are taken for class 1.
    ones = np.array([0.1, 0.2, 0.05, 0.15, 0.1, 0.6, 0.45, 0.42, 0.6, 0.6, 0.05])
    labels = np.array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1])
    probabilities = np.stack([1 - ones, ones], axis=1)
    # Of label 0, five are beyond its mean of 0.74, three beyond that of class 1; of label 1, two, and one beyond 0.74.
    assert confident_joint(probabilities, labels).tolist() == [[5, 3], [1, 2]]
    # Two of those three have a more probable label: they are no candidates.
    assert label_candidates(probabilities, labels).tolist() == [10, 5]


def test_rows_of_the_joint_are_the_samples_of_a_label() -> None:
    probabilities, labels, wrong = planted()
    joint = confident_joint(probabilities, labels)
    assert np.allclose(joint.sum(axis=1), np.bincount(labels))
    assert joint.sum() - joint.trace() == pytest.approx(len(wrong), rel=0.25)
    unsure = np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])  # the last one reaches no mean
    assert confident_joint(unsure, np.array([0, 1, 1])).tolist() == [[1, 0], [0, 2]]


@pytest.mark.parametrize("seed", range(4))
def test_candidates_find_most_planted_errors(seed: int) -> None:
    probabilities, labels, wrong = planted(seed)
    hits = np.isin(label_candidates(probabilities, labels), wrong)
    assert hits.sum() > 0.92 * len(wrong)
    assert hits.mean() > 0.95


@pytest.mark.parametrize("seed", range(4))
def test_candidates_follow_samples_and_classes(seed: int) -> None:
    probabilities, labels, _ = planted(seed)
    candidates = label_candidates(probabilities, labels)
    own = probabilities[np.arange(len(labels)), labels]
    assert (own[candidates] < probabilities[candidates].max(axis=1)).all()
    assert (np.diff(own[candidates]) >= 0).all()
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(len(labels)), rng.permutation(probabilities.shape[1])
    # Neither the order of the samples nor that of the classes matters.
    assert order[label_candidates(probabilities[order], labels[order])].tolist() == candidates.tolist()
    renamed = np.argsort(names)[labels]
    assert label_candidates(probabilities[:, names], renamed).tolist() == candidates.tolist()


def test_right_labels_have_no_candidates() -> None:
    labels = np.arange(30) % 3
    assert label_candidates(0.7 * np.eye(3)[labels] + 0.1, labels).tolist() == []
    assert label_candidates(np.full((30, 3), 1 / 3), labels).tolist() == []


def test_candidates_need_a_class_with_samples() -> None:
    probabilities = np.array([[0.2, 0.1, 0.7], [0.1, 0.2, 0.7]])
    assert label_candidates(probabilities, np.array([0, 1])).tolist() == []
    assert label_candidates(np.empty((0, 2)), np.empty(0, np.int64)).tolist() == []


# ---- features without a network


def test_texts_of_one_kind_are_beside_each_other() -> None:
    found = features_of_texts([text(number) for number in range(40)])
    places, _ = nearest_of_each(found, nothing)
    assert (places % 2 == np.arange(40) % 2).all()
    assert np.isfinite(features_of_texts(["", "", "one word"])).all()


def test_columns_are_standardized_and_categories_are_zero_or_one() -> None:
    schema = Schema(kind="table", columns=COLUMNS, target="kind", class_names=("cheap", "dear"))
    rows = [row(number) for number in range(60)]
    found = features_of_rows(schema, rows)
    assert np.allclose(found[:, 0].mean(), 0, atol=1e-5)
    assert np.allclose(found[:, 0].std(), 1, atol=0.02)
    categories = found[:, -4:]  # missing, red, green, blue
    assert set(np.unique(categories)) <= {0, 1}
    assert (categories.sum(axis=1) == 1).all()
    # The target is no feature: rows that differ in it alone are equal.
    other = [*rows[:-1], [*rows[-1][:-1], "dear"]]
    assert np.array_equal(features_of_rows(schema, other), found)


def test_small_images_keep_their_pixels() -> None:
    gray = np.arange(28 * 28, dtype=np.uint8).reshape(28, 28, 1)
    assert small_pixels(gray).tolist() == gray.reshape(-1).tolist()
    assert small_pixels(np.zeros((300, 200, 3), np.uint8)).shape == (20 * 20 * 3,)
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 255, 784).astype(np.uint8) for _ in range(5)]
    assert features_of_pixels(rows).shape == (5, 5)
    assert features_of_pixels([*rows, rng.integers(0, 255, 400).astype(np.uint8)]).shape == (6, 6)
