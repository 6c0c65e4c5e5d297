"""``tf.contrib.factorization.KMeans``: clustering as a training graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import UsageError

__all__ = ["COSINE_DISTANCE", "KMEANS_PLUS_PLUS_INIT", "RANDOM_INIT", "SQUARED_EUCLIDEAN_DISTANCE", "KMeans"]

SQUARED_EUCLIDEAN_DISTANCE: Final = "squared_euclidean"
COSINE_DISTANCE: Final = "cosine"
RANDOM_INIT: Final = "random"
KMEANS_PLUS_PLUS_INIT: Final = "kmeans_plus_plus"


class KMeans:
    """Makes the graph of k-means clustering, in whole passes or by mini-batches (Sculley, 2010).

    Args:
        inputs: (N, D) float32, or a list of such tensors.
        num_clusters: number of clusters.
        initial_clusters: ``random`` for rows of the inputs, or (``num_clusters``, D) centers.
        distance_metric: ``squared_euclidean`` or ``cosine``.
        use_mini_batch: whether a step moves the centers by the share of its rows among all that were seen; otherwise
            it replaces them by the means of the step.
        random_seed: of the first centers.

    Raises:
        UsageError: for another distance, or first centers that cannot be made.
    """

    def __init__(
        self,
        inputs: Any,
        num_clusters: int,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise UsageError(
                f"`{distance_metric}` is no distance of `KMeans`.",
                advice=f"Use `{SQUARED_EUCLIDEAN_DISTANCE}` or `{COSINE_DISTANCE}`.",
            )
        if isinstance(initial_clusters, str) and initial_clusters != RANDOM_INIT:
            raise UsageError(
                f"`KMeans` does not choose first centers by `{initial_clusters}` here.",
                advice=f"Use `{RANDOM_INIT}`, or give the centers.",
            )
        self._inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
        self._count = num_clusters
        self._first = initial_clusters
        self._is_cosine = distance_metric == COSINE_DISTANCE
        self._by_batches = use_mini_batch
        self._seed = random_seed

    def training_graph(self) -> tuple[list[Any], list[Any], list[Any], Any, Any, Any, Any]:
        """Return distances to all centers, numbers and distances of the nearest, and what initializes and trains.

        Returns:
            (N, ``num_clusters``) distances, (N) int32 and (N) distances, each a list with a tensor for each input; a
            variable that tells whether the centers are initialized; the centers, (``num_clusters``, D); the operation
            that initializes them, and that of a step.
        """
        rows = [self._on_sphere(each) for each in self._inputs]
        together = rows[0] if len(rows) == 1 else tf.concat(rows, 0)
        width = together.shape.as_list()[1]
        centers = tf.Variable(tf.zeros([self._count, width]), name="clusters", trainable=False)
        counts = tf.Variable(tf.zeros([self._count]), name="counts", trainable=False)
        is_ready = tf.Variable(False, name="initialized", trainable=False)
        with tf.control_dependencies([centers.assign(self._first_centers(together)), counts.assign(counts * 0)]):
            initialize = is_ready.assign(True).op
        scores = [self._distances(each, centers) for each in rows]
        nearest = [tf.cast(tf.argmin(each, 1), tf.int32) for each in scores]
        train = self._step(together, nearest[0] if len(nearest) == 1 else tf.concat(nearest, 0), centers, counts)
        return scores, nearest, [tf.reduce_min(each, 1) for each in scores], is_ready, centers, initialize, train

    def _on_sphere(self, rows: Any) -> Any:
        return tf.nn.l2_normalize(rows, 1) if self._is_cosine else rows

    def _first_centers(self, rows: Any) -> Any:
        if not isinstance(self._first, str):
            return self._on_sphere(tf.convert_to_tensor(self._first, tf.float32))
        enough = tf.debugging.assert_greater_equal(
            tf.shape(rows)[0], self._count, message="KMeans has fewer rows than clusters"
        )
        with tf.control_dependencies([enough]):
            order = tf.argsort(tf.random_uniform(tf.shape(rows)[:1], seed=self._seed))
        return tf.gather(rows, order[: self._count])

    def _distances(self, rows: Any, centers: Any) -> Any:
        products = tf.matmul(rows, self._on_sphere(centers), transpose_b=True)
        if self._is_cosine:
            return 1 - products
        squares = tf.reduce_sum(tf.square(rows), 1, keepdims=True) + tf.reduce_sum(tf.square(centers), 1)
        return tf.maximum(squares - 2 * products, 0)

    def _step(self, rows: Any, nearest: Any, centers: Any, counts: Any) -> Any:
        added = tf.math.unsorted_segment_sum(tf.ones_like(rows[:, 0]), nearest, self._count)
        sums = tf.math.unsorted_segment_sum(rows, nearest, self._count)
        kept = counts if self._by_batches else tf.zeros_like(added)
        totals: Sequence[Any] = (kept + added)[:, None]
        moved = (centers * kept[:, None] + sums) / tf.maximum(totals, 1.0)
        updated = tf.where(tf.broadcast_to(added[:, None] > 0, tf.shape(moved)), moved, centers + 0)
        with tf.control_dependencies([updated, totals]):
            return tf.group(centers.assign(updated), counts.assign(kept + added))
