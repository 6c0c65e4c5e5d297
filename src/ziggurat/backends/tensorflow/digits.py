"""Helper module ``digits`` of network files: losses, accuracies and layouts as DIGITS's guides define them."""

from __future__ import annotations

from typing import Any, Final

from ziggurat.backends.tensorflow.batch_sums import share_of_batch as _share_of_batch
from ziggurat.backends.tensorflow.boxes import nms, roi_align
from ziggurat.backends.tensorflow.detection import anchor_points, boxes_of, detection_loss, generalized_iou
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.backends.tensorflow.tower import model_property
from ziggurat.errors import UsageError

__all__ = [
    "STAGE_INF",
    "STAGE_TRAIN",
    "STAGE_VAL",
    "GraphKeys",
    "anchor_points",
    "bgr_to_rgb",
    "boxes_of",
    "chw_to_hwc",
    "classification_accuracy",
    "classification_accuracy_top_n",
    "classification_loss",
    "constrastive_loss",
    "contrastive_loss",
    "detection_loss",
    "generalized_iou",
    "get_available_gpus",
    "hwc_to_chw",
    "model_property",
    "mse_loss",
    "nchw_to_nhwc",
    "nhwc_to_nchw",
    "nms",
    "pixel_accuracy",
    "rgb_to_bgr",
    "roi_align",
    "segmentation_loss",
]

CLASS_WEIGHTS: Final = "ziggurat/class_weights"
"""Collection that holds the job's class weights, (classes) float, where it has any."""

STAGE_TRAIN: Final = "train"
"""Scope of the operations that train."""
STAGE_VAL: Final = "val"
"""Scope of those that validate."""
STAGE_INF: Final = "inf"
"""Scope of those that predict."""


class GraphKeys:
    """Names of scopes and collections, as in DIGITS; ``MODEL`` is the scope that all variables of a network lie in."""

    TEMPLATE = "model"
    QUEUE_RUNNERS = "queue_runner"
    MODEL = "model"
    LOSS = "loss"
    LOSSES = "losses"
    LOADER = "data"


def classification_loss(pred: Any, y: Any) -> Any:
    """Return the mean softmax cross-entropy in nats; the mean weighted by class where the job has class weights.

    It is 0 where all weights of the batch are 0. That is the mean over N of −log softmax(pred)[y] (Bishop, "Pattern
    recognition and machine learning", 2006, eq. 4.108).

    Args:
        pred: (N, classes) float, logits.
        y: (N) int64, class numbers from 0.

    Returns:
        scalar of the type of ``pred``.
    """
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=pred, labels=y, name="cross_entropy_per_example")
    weights = tf.get_collection(CLASS_WEIGHTS)
    if weights:
        factors = tf.gather(weights[0], y)
        total = tf.reduce_sum(factors * losses)
        return tf.divide(total, _share_of_batch(tf.reduce_sum(factors)), name="cross_entropy")
    return tf.reduce_mean(losses, name="cross_entropy")


def segmentation_loss(pred: Any, y: Any, ignored: int = 255) -> Any:
    """Return the mean softmax cross-entropy over pixels in nats; weighted by class where the job has class weights.

    It is ``classification_loss`` with pixels for samples. A pixel whose label is no class counts for nothing; where no
    pixel counts, the loss is 0.

    Args:
        pred: (N, H, W, classes) float, logits.
        y: (N, H, W, 1) or (N, H, W) integers, class numbers from 0.
        ignored: label that is no class; neither are those below 0, and those from ``classes`` on.

    Returns:
        scalar of the type of ``pred``.
    """
    labels, factors = _pixels(pred, y, ignored)
    weights = tf.get_collection(CLASS_WEIGHTS)
    if weights:
        factors *= tf.gather(weights[0], labels)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=pred, labels=labels)
    factors = tf.cast(factors, losses.dtype)
    total = tf.reduce_sum(factors * losses)
    return tf.divide(total, _share_of_batch(tf.reduce_sum(factors)), name="cross_entropy")


def pixel_accuracy(pred: Any, y: Any, ignored: int = 255) -> Any:
    """Return the share of pixels whose largest logit is that of their class, in [0, 1]; 0 where no pixel counts.

    Args:
        pred: as for ``segmentation_loss``; its operation is ``pixel_accuracy``.
        y: likewise.
        ignored: likewise.

    Returns:
        float32 scalar.
    """
    labels, factors = _pixels(pred, y, ignored)
    right = tf.cast(tf.equal(tf.argmax(pred, -1), labels), tf.float32)
    return tf.div_no_nan(tf.reduce_sum(factors * right), tf.reduce_sum(factors), name="pixel_accuracy")


def _pixels(pred: Any, y: Any, ignored: int) -> tuple[Any, Any]:
    """Return the labels of pixels, (N, H, W) int64, 0 where they are no class; and 1 or 0 for each, float32."""
    labels = tf.cast(tf.reshape(y, tf.shape(pred)[:-1]), tf.int64)
    classes = tf.shape(pred, out_type=tf.int64)[-1]
    known = (labels >= 0) & (labels < classes) & tf.not_equal(labels, ignored)
    return tf.where(known, labels, tf.zeros_like(labels)), tf.cast(known, tf.float32)


def mse_loss(lhs: Any, rhs: Any) -> Any:
    """Return the mean of the squared difference over all elements, samples included.

    Args:
        lhs: float, any shape.
        rhs: of the same shape and type, or one that broadcasts to it.

    Returns:
        scalar of their type, in the squared unit of the elements.
    """
    return tf.reduce_mean(tf.square(tf.subtract(lhs, rhs)), name="mse")


def contrastive_loss(lhs: Any, rhs: Any, y: Any, margin: float = 1.0) -> Any:
    """Return 1/(2N) Σ y·d² + (1 − y)·max(margin − d, 0)², with d the distance of two embeddings.

    Caffe's form of Hadsell, Chopra and LeCun, "Dimensionality reduction by learning an invariant mapping" (CVPR 2006).
    A tiny number under the root keeps the gradient finite where two embeddings are equal.

    Args:
        lhs: (N, D) float, one embedding a row.
        rhs: (N, D) float, its partner.
        y: (N), 1 where the two are of one kind, 0 where not.
        margin: distance from which two of different kinds cost nothing, in the unit of the embeddings.

    Returns:
        float32 scalar.
    """
    same = tf.reshape(tf.cast(y, tf.float32), [-1])
    squared = tf.reduce_sum(tf.square(lhs - rhs), axis=1)
    distance = tf.sqrt(squared + 1e-12)
    apart = tf.square(tf.maximum(margin - distance, 0.0))
    return tf.reduce_mean(same * squared + (1 - same) * apart, name="contrastive") / 2


constrastive_loss = contrastive_loss
"""``contrastive_loss`` as the guides spell it."""


def classification_accuracy(pred: Any, y: Any) -> Any:
    """Return the share of samples whose largest logit is that of their class, in [0, 1]; its operation is ``accuracy``.

    Args:
        pred: (N, classes) float; of equal logits the first counts as the largest.
        y: (N) integers, class numbers from 0.

    Returns:
        float32 scalar.
    """
    right = tf.equal(tf.argmax(pred, 1), tf.cast(y, tf.int64))
    return tf.reduce_mean(tf.cast(right, tf.float32), name="accuracy")


def classification_accuracy_top_n(pred: Any, y: Any, top_n: int) -> Any:
    """Return the share of samples whose class is among the ``top_n`` largest logits; named ``accuracy_top_<n>``.

    Args:
        pred: (N, classes) float32.
        y: (N) int32 or int64, class numbers from 0.
        top_n: how many count.

    Returns:
        float32 scalar in [0, 1].
    """
    among = tf.nn.in_top_k(predictions=pred, targets=y, k=top_n)
    return tf.reduce_mean(tf.cast(among, tf.float32), name=f"accuracy_top_{top_n}")


def nhwc_to_nchw(x: Any) -> Any:
    """Return (N, H, W, C) as (N, C, H, W).

    Args:
        x: (N, H, W, C), any type.

    Raises:
        UsageError: where its rank is not 4.
    """
    return _transposed(x, "nhwc_to_nchw", "(N, H, W, C)", [0, 3, 1, 2])


def nchw_to_nhwc(x: Any) -> Any:
    """Return (N, C, H, W) as (N, H, W, C).

    Args:
        x: (N, C, H, W), any type.

    Raises:
        UsageError: where its rank is not 4.
    """
    return _transposed(x, "nchw_to_nhwc", "(N, C, H, W)", [0, 2, 3, 1])


def hwc_to_chw(x: Any) -> Any:
    """Return (H, W, C) as (C, H, W).

    Args:
        x: (H, W, C), any type.

    Raises:
        UsageError: where its rank is not 3.
    """
    return _transposed(x, "hwc_to_chw", "(H, W, C)", [2, 0, 1])


def chw_to_hwc(x: Any) -> Any:
    """Return (C, H, W) as (H, W, C).

    Args:
        x: (C, H, W), any type.

    Raises:
        UsageError: where its rank is not 3.
    """
    return _transposed(x, "chw_to_hwc", "(C, H, W)", [1, 2, 0])


def bgr_to_rgb(x: Any) -> Any:
    """Return BGR as RGB: the last axis in reverse order.

    Args:
        x: (H, W, 3) or (N, H, W, 3), any type.
    """
    return tf.reverse(x, axis=[-1])


def rgb_to_bgr(x: Any) -> Any:
    """Return RGB as BGR: the last axis in reverse order.

    Args:
        x: (H, W, 3) or (N, H, W, 3), any type.
    """
    return tf.reverse(x, axis=[-1])


def get_available_gpus() -> list[str]:
    """Return the names of the GPUs that TensorFlow sees, such as ``/GPU:0``; an empty list where there is none."""
    return [device.name.replace("physical_device:", "") for device in tf.config.list_physical_devices("GPU")]


def _transposed(x: Any, name: str, form: str, order: list[int]) -> Any:
    tensor = tf.convert_to_tensor(x)
    if tensor.shape.rank != len(order):
        raise UsageError(
            f"`digits.{name}` takes a tensor of rank {len(order)}, {form}.",
            received=f"shape {tensor.shape}",
            advice="Reshape it first.",
        )
    return tf.transpose(tensor, order)
