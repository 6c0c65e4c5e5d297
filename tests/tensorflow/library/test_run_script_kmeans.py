"""``tf.contrib.factorization.KMeans`` of TensorFlow 1 scripts clusters as its definition says."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.compat.tf1.names import script_tensorflow
from ziggurat.compat.tf1.report import Report
from ziggurat.errors import UsageError

ROWS = np.random.default_rng(3).normal(size=(60, 2)).astype(np.float32)
ROWS += np.repeat([[0, 6], [6, 0], [-6, -6]], 20, axis=0).astype(np.float32)
FIRST = ROWS[[0, 20, 40]]


def steps(count, rows=ROWS, **options):
    """Return numbers of the nearest, distances and centers after some steps."""
    with tf.Graph().as_default():
        kmeans = script_tensorflow(Report("s.py")).contrib.factorization.KMeans
        x = tf.placeholder(tf.float32, [None, 2])
        _, nearest, distances, is_ready, centers, initialize, train = kmeans(
            inputs=x, num_clusters=3, **options
        ).training_graph()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert not session.run(is_ready)
            session.run(initialize, {x: rows})
            assert session.run(is_ready)
            for _ in range(count):
                session.run(train, {x: rows})
            return session.run([nearest[0], distances[0], centers], {x: rows})


def test_whole_passes_give_the_means_of_the_clusters():
    nearest, distances, centers = steps(3, initial_clusters=FIRST)
    np.testing.assert_array_equal(nearest, np.repeat([0, 1, 2], 20))
    np.testing.assert_allclose(centers, ROWS.reshape(3, 20, 2).mean(1), rtol=1e-5)
    np.testing.assert_allclose(distances, ((ROWS - centers[nearest]) ** 2).sum(1), rtol=1e-3, atol=1e-4)


def test_mini_batches_weigh_all_rows_that_were_seen():
    _, _, centers = steps(2, initial_clusters=FIRST, use_mini_batch=True)
    np.testing.assert_allclose(centers, ROWS.reshape(3, 20, 2).mean(1), rtol=1e-5)


def test_the_cosine_distance_ignores_lengths():
    nearest, distances, _ = steps(
        3, ROWS * np.linspace(1, 9, 60)[:, None], distance_metric="cosine", use_mini_batch=True
    )
    assert distances.min() >= -1e-6
    assert distances.max() < 0.5
    assert len(set(nearest)) == 3


def test_centers_begin_at_rows_and_other_choices_are_refused():
    _, distances, centers = steps(0)
    assert all((np.abs(ROWS - center).sum(1) < 1e-6).any() for center in centers)
    assert (distances < 1e-6).sum() == 3
    with pytest.raises(UsageError, match="`KMeans` does not choose first centers by `kmeans_plus_plus` here"):
        steps(0, initial_clusters="kmeans_plus_plus")
    with pytest.raises(tf.errors.InvalidArgumentError, match="fewer rows than clusters"):
        steps(0, ROWS[:2])
