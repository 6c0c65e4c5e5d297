"""The helper module ``digits`` gives the values of its formulas (behaviors 70 and 72 of DIGITS)."""

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow import digits
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import UsageError

rng = np.random.default_rng(0)
LOGITS = rng.normal(size=(6, 4)).astype(np.float32)
LABELS = np.array([0, 3, 1, 1, 2, 0])


def value(make: object) -> np.ndarray:
    graph = tf.Graph()
    with graph.as_default(), tf.Session(graph=graph) as session:
        return session.run(make())  # pyright: ignore[reportCallIssue]


def cross_entropies() -> np.ndarray:
    shifted = np.exp(LOGITS)
    return -np.log((shifted / shifted.sum(1, keepdims=True))[np.arange(6), LABELS])


def test_classification_loss() -> None:
    assert value(lambda: digits.classification_loss(LOGITS, LABELS)) == pytest.approx(
        cross_entropies().mean(), rel=1e-5
    )


def test_classification_loss_with_class_weights() -> None:
    weights = np.array([1.0, 2.0, 0.5, 4.0])

    def make() -> object:
        tf.add_to_collection(digits.CLASS_WEIGHTS, tf.constant(weights, tf.float32))
        return digits.classification_loss(LOGITS, LABELS)

    factors = weights[LABELS]
    assert value(make) == pytest.approx((factors * cross_entropies()).sum() / factors.sum(), rel=1e-5)


def test_mse_loss() -> None:
    other = LOGITS[::-1]
    assert value(lambda: digits.mse_loss(LOGITS, other)) == pytest.approx(((LOGITS - other) ** 2).mean(), rel=1e-5)


@pytest.mark.parametrize("name", ["contrastive_loss", "constrastive_loss"])
def test_contrastive_loss_is_caffes(name: str) -> None:
    left, right = rng.normal(size=(2, 5, 3)).astype(np.float32)
    same = np.array([1, 0, 1, 0, 0])
    distance = np.sqrt(((left - right) ** 2).sum(1))
    expected = (same * distance**2 + (1 - same) * np.maximum(2.0 - distance, 0) ** 2).sum() / (2 * 5)
    assert value(lambda: getattr(digits, name)(left, right, same, margin=2.0)) == pytest.approx(expected, rel=1e-5)


def test_contrastive_loss_is_smooth_at_equal_embeddings() -> None:
    def make() -> object:
        point = tf.constant(np.ones((2, 3), np.float32))
        return tf.gradients(digits.contrastive_loss(point, tf.identity(point), tf.constant([0, 1])), point)[0]

    assert np.isfinite(value(make)).all()


def test_accuracies() -> None:
    ranks = (-LOGITS).argsort(1)
    first = (ranks[:, 0] == LABELS).mean()
    among_two = (ranks[:, :2] == LABELS[:, None]).any(1).mean()
    assert value(lambda: digits.classification_accuracy(tf.constant(LOGITS), LABELS)) == pytest.approx(first)
    assert value(lambda: digits.classification_accuracy_top_n(LOGITS, LABELS, 2)) == pytest.approx(among_two)


def test_accuracies_are_named() -> None:
    with tf.Graph().as_default():
        assert digits.classification_accuracy(tf.constant(LOGITS), LABELS).op.name == "accuracy"
        assert digits.classification_accuracy_top_n(LOGITS, LABELS, 3).op.name == "accuracy_top_3"


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("nhwc_to_nchw", (0, 3, 1, 2)),
        ("nchw_to_nhwc", (0, 2, 3, 1)),
        ("hwc_to_chw", (2, 0, 1)),
        ("chw_to_hwc", (1, 2, 0)),
    ],
)
def test_layouts(name: str, order: tuple[int, ...]) -> None:
    array = rng.normal(size=(2, 3, 4, 5)[: len(order)]).astype(np.float32)
    np.testing.assert_array_equal(value(lambda: getattr(digits, name)(array)), array.transpose(order))
    with tf.Graph().as_default(), pytest.raises(UsageError) as caught:
        getattr(digits, name)(np.zeros((2, 2), np.float32))
    assert str(caught.value).startswith(f"`digits.{name}` takes a tensor of rank {len(order)}, (")


@pytest.mark.parametrize("name", ["bgr_to_rgb", "rgb_to_bgr"])
@pytest.mark.parametrize("shape", [(4, 5, 3), (2, 4, 5, 3)])
def test_colours_are_swapped_in_one_picture_and_in_many(name: str, shape: tuple[int, ...]) -> None:
    array = rng.normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(value(lambda: getattr(digits, name)(array)), array[..., ::-1])
