"""Metric of detection: its values, tables and state."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.tasks.detection_parts import NAMES, headers, measured_scene, scene, target_batch
from tests.unit.tasks.metric_parts import assert_close, measured, merged
from ziggurat.errors import UsageError
from ziggurat.tasks.detection_boxes import best_detections, original_detections, original_targets
from ziggurat.tasks.detection_metrics import LEAST_SCORE, DetectionMetric

LETTERBOX = {"size": (400, 400), "scale": (0.64, 0.64), "place": (12.0, 0.0)}


def _make():
    return DetectionMetric(NAMES)


def _batch(seed=0, **options):
    """Return outputs and targets of a network whose input is smaller than the images."""
    detections, targets = scene(seed, **options)
    y = target_batch(targets, **LETTERBOX)
    output = np.zeros((*detections.shape[:2], 4 + len(NAMES)), np.float32)
    output[..., :4] = detections[..., :4] * 0.64 + np.array([0, 12, 0, 12])
    np.put_along_axis(output, 4 + detections[..., 5:].astype(int), detections[..., 4:5], axis=2)
    return {"output": output}, {"y": y}


def test_values_are_those_of_the_detections_in_the_original():
    outputs, targets = _batch(1)
    found = measured(_make, outputs, targets)
    detections = original_detections(best_detections(outputs["output"], least_score=LEAST_SCORE), targets["y"])
    wanted = measured_scene(detections, original_targets(targets["y"])).compute()
    assert found == wanted
    assert 0 < found["map"] < found["ap50"] < 1
    assert json.loads(json.dumps(found)) == found


def test_objects_of_the_original_are_compared_not_of_the_input():
    """The size of an object is that in the original: 40 px are medium, though the input has 10."""
    y = target_batch(np.array([[[40, 40, 80, 80, 0, 0]]], np.float32), scale=(0.25, 0.25))
    output = np.array([[[10, 10, 20, 20, 0.9, 0, 0, 0]]], np.float32)
    found = measured(_make, {"output": output}, {"y": y})
    assert (found["map_small"], found["map_medium"], found["map_large"]) == (None, pytest.approx(1), None)


@pytest.mark.parametrize("seed", range(3))
def test_merged_parts_have_the_values_of_one_pass(seed):
    outputs, targets = _batch(seed, images=24)
    outputs["output"][..., 4:] = outputs["output"][..., 4:].round(1)  # many scores are equal
    assert_close(merged(_make, outputs, targets, seed), measured(_make, outputs, targets), 0)


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(6)))
def test_the_order_of_images_does_not_matter(order):
    outputs, targets = _batch(3, images=6)
    outputs["output"][..., 4:] = (outputs["output"][..., 4:] > 0) * 0.5
    moved = measured(_make, {"output": outputs["output"][order]}, {"y": targets["y"][order]})
    assert moved == measured(_make, outputs, targets)


def test_tables_belong_to_the_numbers():
    detections, targets = scene(4, images=60)
    found = measured_scene(detections, targets).compute()
    classes = found["classes"]
    assert [each["class"] for each in classes] == NAMES
    assert np.mean([each["ap"] for each in classes]) == pytest.approx(found["map"], rel=1e-12)
    assert np.mean([each["ap50"] for each in classes]) == pytest.approx(found["ap50"], rel=1e-12)
    is_object = (targets[..., 4] >= 0) & (targets[..., 5] == 0)
    assert sum(each["objects"] for each in classes) == found["counts"]["objects"] == is_object.sum()
    assert found["counts"]["images"] == 60
    assert found["counts"]["crowds"] == (targets[..., 5] == 1).sum() > 0
    assert found["counts"]["ignored"] == (targets[..., 5] == 2).sum() > 0
    assert found["counts"]["detections"] == (detections[..., 4] > 0).sum()
    for curve, each in zip(found["curves"]["classes"], classes, strict=True):
        assert np.mean(curve["precision"]) == pytest.approx(each["ap50"], abs=1e-4)
        assert curve["confidence"] == sorted(curve["confidence"], reverse=True)
    assert len(found["curves"]["recall"]) == 101
    confusion = np.array(found["confusion"])
    assert confusion[:-1].sum(axis=1).tolist() == [each["objects"] for each in classes]
    assert [each["error"] for each in found["errors"]] == [
        *("classification", "localization", "both", "duplicate", "background", "missed"),
    ]
    assert all(each["cost"] >= 0 for each in found["errors"])
    assert [each["class"] for each in found["best_f1"]] == ["all classes", *NAMES]


def test_perfect_detections_have_no_error():
    _, targets = scene(5, images=30, states=(0,))
    detections = np.concatenate([targets[..., :4], np.full((*targets.shape[:2], 1), 0.9), targets[..., 4:5]], axis=2)
    detections[targets[..., 4] < 0] = 0
    found = measured_scene(detections.astype(np.float32), targets).compute()
    assert found["map"] == found["ap50"] == found["recall"] == pytest.approx(1)
    assert all(each["cost"] == pytest.approx(0, abs=1e-12) and not each["count"] for each in found["errors"])
    assert found["best_f1"][0]["f1"] == pytest.approx(1)


def test_a_metric_without_images_is_empty():
    assert _make().compute() == {}
    assert {name: value.shape for name, value in _make().state().items()} == {
        "detections": (0, 6), "detection_counts": (0,), "targets": (0, 6), "target_counts": (0,),
    }  # fmt: skip


def test_images_without_objects_are_counted_only():
    output = np.array([[[10, 10, 20, 20, 0.9, 0, 0, 0]]], np.float32)
    found = measured(_make, {"output": output}, {"y": headers(1)})
    assert found == {"counts": {"images": 1, "objects": 0, "crowds": 0, "ignored": 0, "detections": 1}}


def test_objects_without_detections_are_all_missed():
    _, targets = scene(6, images=10)
    outputs = {"output": np.zeros((10, 7, 8), np.float32)}
    found = measured(_make, outputs, {"y": target_batch(targets)})
    assert (found["map"], found["ap50"], found["recall"], found["counts"]["detections"]) == (0, 0, 0, 0)
    assert found["best_f1"] == []
    assert found["errors"][-1] == {"error": "missed", "count": found["counts"]["objects"], "cost": 0}


def test_a_class_without_objects_has_no_average_precision():
    detections, targets = scene(7, images=20)
    targets[targets[..., 4] == 2] = (0, 0, 0, 0, -1, 0)
    found = measured_scene(detections, targets).compute()
    assert found["classes"][2] == {"class": "bird", "ap": None, "ap50": None, "objects": 0}
    assert np.mean([each["ap"] for each in found["classes"] if each["objects"]]) == pytest.approx(found["map"])
    assert [each["class"] for each in found["curves"]["classes"]] == ["cat", "dog", "fish"]


def test_only_ignored_objects_are_none():
    detections, targets = scene(8, images=10, states=(1, 2))
    assert set(measured_scene(detections, targets).compute()) == {"counts"}


def test_many_classes_have_no_confusion_matrix():
    detections, targets = scene(9, images=10)
    found = measured_scene(detections, targets, [f"class {number}" for number in range(1001)]).compute()
    assert "confusion" not in found
    assert found["map"] > 0


def test_an_output_of_other_classes_is_an_error():
    with pytest.raises(UsageError, match="rows of 7 numbers, not a box and a score for each of 4 classes"):
        _make().update({"output": np.zeros((2, 5, 7), np.float32)}, {"y": headers(2)})


def test_a_state_of_other_classes_is_an_error():
    state = measured_scene(*scene(1)).state()
    with pytest.raises(UsageError, match="class 3 for 2 classes"):
        DetectionMetric(NAMES[:2]).merge(state)


def test_measuring_imports_no_large_packages():
    code = (
        "import sys, numpy as np; from tests.unit.tasks.detection_parts import measured_scene, scene;"
        "measured_scene(*scene(1)).compute();"
        "print([name for name in ('pandas', 'matplotlib', 'scipy', 'torch', 'tensorflow') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"
