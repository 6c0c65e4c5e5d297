"""Predicted masks on the images that they were predicted for."""

from dataclasses import replace

import numpy as np
import pytest

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.standalone_prediction import binary_mask
from ziggurat.records.schema import Schema
from ziggurat.tasks import TaskContext
from ziggurat.tasks.base import prediction, prediction_picture
from ziggurat.tasks.segmentation import SEGMENTATION

SCHEMA = Schema(kind="segmentation", class_names=("left", "right"), colours=((1, 2, 3), (9, 8, 7)))


def context_of(**preprocessing):
    return TaskContext(SEGMENTATION, SCHEMA, Preprocessing(size=(40, 40), channels=3, **preprocessing))


def halves(height=40, width=40, border=20):
    """Return scores whose left part, up to a column, is of the first class."""
    scores = np.zeros((height, width, 2), np.float32)
    scores[:, :border, 0] = scores[:, border:, 1] = 1
    return {"output": scores}


def classes_of(picture):
    """Return the class of each pixel, -1 where it is clear."""
    found = np.where((picture[..., :3] == SCHEMA.colours[0]).all(axis=2), 0, 1)
    return found if picture.shape[2] == 3 else np.where(picture[..., 3] > 0, found, -1)


def test_a_mask_has_the_size_and_shape_of_the_image() -> None:
    picture, is_placed = prediction_picture(context_of(), halves(), (100, 300))

    assert is_placed
    assert picture.shape == (100, 300, 3)
    expected = np.repeat((np.arange(300) >= 150)[None], 100, axis=0)
    assert (classes_of(picture) != expected).mean() < 0.01
    assert prediction(context_of(), halves(), top=5, original_size=(100, 300))["size"] == [100, 300]


def test_the_frame_around_a_filled_image_is_no_part_of_the_mask() -> None:
    picture, _ = prediction_picture(context_of(resize_mode="fill"), halves(), (40, 80))

    assert picture.shape == (40, 80, 3)
    assert np.unique(classes_of(picture)[:, :38]).tolist() == [0]
    assert np.unique(classes_of(picture)[:, 42:]).tolist() == [1]


def test_a_placed_mask_obeys_the_operating_point() -> None:
    chosen = replace(context_of(), thresholds=(0.8,))  # the second class has 0.73 in its half

    picture, _ = prediction_picture(chosen, halves(), (100, 300))

    assert np.unique(classes_of(picture)).tolist() == [0]
    assert [each["class"] for each in prediction(chosen, halves(), top=5, original_size=(9, 9))["classes"]] == ["left"]


def test_a_threshold_has_the_figures_of_the_pixels() -> None:
    random = np.random.default_rng(3)
    outputs = {"output": random.normal(size=(6, 9, 7, 2)).astype(np.float32)}
    target = random.integers(0, 2, (6, 9, 7, 1))
    target[0, :3] = 255  # ignored
    found = {}
    for metric in SEGMENTATION.evaluation_metrics(context_of()):
        metric.update(outputs, {"y": target})
        found |= metric.compute()

    (samples,) = SEGMENTATION.threshold_samples(SEGMENTATION.summary_metrics(found), {})

    best = samples.best()
    for threshold in (0.3, 0.617, best.threshold):
        counted = target[..., 0] != 255
        predicted = binary_mask(outputs["output"], (threshold,))[counted] == 1
        true = target[..., 0][counted] == 1
        figures = samples.at(threshold)
        assert figures.precision == (predicted & true).sum() / predicted.sum()
        assert figures.recall == (predicted & true).sum() / true.sum()
    assert best.f1 == max(samples.at(number / 1000).f1 for number in range(1001))
    assert "threshold_counts" not in SEGMENTATION.summary_metrics(found)["metrics"]


@pytest.mark.parametrize("preprocessing", [{"resize_mode": "crop"}, {"crop": 20}])
def test_what_the_network_did_not_see_is_clear(preprocessing) -> None:
    side = preprocessing.get("crop", 40)
    picture, _ = prediction_picture(context_of(**preprocessing), halves(side, side, side // 2), (40, 80))

    found = classes_of(picture)
    assert found.shape == (40, 80)
    assert found[20, 0] == found[20, 79] == -1
    assert (found[20, 38], found[20, 41]) == (0, 1)


def test_other_outputs_and_inputs_have_no_place() -> None:
    assert prediction_picture(context_of(), {"something": np.zeros(3)}, (40, 80)) == (None, False)
    picture, is_placed = prediction_picture(context_of(), halves(), None)
    assert (picture.shape, is_placed) == ((40, 40, 3), False)
