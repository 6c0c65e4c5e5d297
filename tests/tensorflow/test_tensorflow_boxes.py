"""Operations on boxes in TensorFlow equal plain loops, and every format holds detections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tests.box_oracle import ROI_CASES, aligned_rois, kept_boxes, random_boxes, random_output, roi_case
from ziggurat.backends.tensorflow import digits
from ziggurat.backends.tensorflow.boxes import best_detections
from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import UsageError
from ziggurat.tasks import detection_boxes

LIMITS = {"least_score": 0.001, "iou": 0.65, "most": 100}


def values(make: Any, *arrays: np.ndarray) -> Any:
    """Return what operations give of arrays whose first axis is open."""
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.placeholder(tf.float32, (None, *each.shape[1:])) for each in arrays]
        return session.run(make(*inputs), dict(zip(inputs, arrays, strict=True)))


@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_nms_keeps_what_plain_loops_keep(count: int) -> None:
    rng = np.random.default_rng(count)
    boxes, scores = random_boxes(rng, count), rng.choice(np.linspace(0, 1, 40), count).astype(np.float32)
    expected = kept_boxes(boxes, scores, 0.4)
    assert values(lambda *given: digits.nms(*given, 0.4), boxes, scores).tolist() == expected
    found = values(lambda *given: digits.nms(*given, 0.4, most=20), boxes, scores)
    assert found.tolist() == [*expected, *([-1] * 20)][:20]


@pytest.mark.parametrize("options", ROI_CASES)
def test_roi_align_gives_what_plain_loops_give(options: dict[str, Any]) -> None:
    x, boxes = roi_case(np.random.default_rng(0))
    found = values(lambda *given: digits.roi_align(*given, (3, 2), **options), x, boxes)
    np.testing.assert_allclose(found, aligned_rois(x, boxes, (3, 2), **options), atol=1e-5)


def test_operations_refuse_other_shapes() -> None:
    with tf.Graph().as_default():
        with pytest.raises(UsageError, match=r"takes boxes \(K, 4\) and scores \(K\).*\(2, 5\) and \(2,\)"):
            digits.nms(tf.zeros((2, 5)), tf.zeros(2))
        with pytest.raises(UsageError, match="Put the number of its image before each box"):
            digits.roi_align(tf.zeros((1, 4, 4, 1)), tf.zeros((2, 4)), 2)


@pytest.mark.parametrize("rows", [336, 12])
def test_detections_are_those_of_numpy(rows: int, tmp_path: Path) -> None:
    output = random_output(np.random.default_rng(0), rows=rows)
    found = values(lambda given: best_detections(given, **LIMITS), output)
    np.testing.assert_array_equal(found, detection_boxes.best_detections(output, **LIMITS))
