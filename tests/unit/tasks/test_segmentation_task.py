"""Predicted masks on the images that they were predicted for."""

import numpy as np
import pytest

from ziggurat.dataflow.preprocessing import Preprocessing
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
