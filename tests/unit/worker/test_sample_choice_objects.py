"""Samples of object detection that are predicted for after each validation."""

import numpy as np

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.sources import DataFromList
from ziggurat.records.schema import Schema
from ziggurat.tasks import TaskContext
from ziggurat.tasks.detection import DETECTION
from ziggurat.worker.sample_choice import choose_samples
from ziggurat.worker.source import DataSource

SCHEMA = Schema(kind="detection", class_names=("cat", "dog"))


def source_of(labels):
    image = np.full((20, 40, 3), 90, np.uint8)
    return DataSource(splits={"val": DataFromList([[image, label] for label in labels], shuffle=False)}, schema=SCHEMA)


def context_of(crop=None):
    preprocessing = Preprocessing(size=(40, 40), resize_mode="fill", crop=crop)
    return TaskContext(DETECTION, SCHEMA, preprocessing, {"most": 2})


def test_samples_have_their_boxes_in_px_of_the_input() -> None:
    box = {"class": 1, "box": [10, 5, 30, 15]}

    chosen = choose_samples(source_of([[], [box], []]), context_of())

    assert chosen is not None
    assert chosen.samples == [
        {
            "split": "val",
            "row": 1,
            "key": "1",
            "label": {"size": [40, 40], "boxes": [{"box": [10.0, 15.0, 30.0, 25.0], "number": 1}]},
        }
    ]
    assert [each.shape for each in chosen.batch] == [(1, 40, 40, 3), (1, 1, 3, 16)]
    assert chosen.pictures[0].shape == (40, 40, 3)
    assert chosen.are_shown_fitted


def test_a_crop_moves_boxes_of_samples() -> None:
    chosen = choose_samples(source_of([[{"class": 0, "box": [10, 5, 30, 15]}]]), context_of(crop=30))

    assert chosen is not None
    assert chosen.samples[0]["label"]["boxes"] == [{"box": [5.0, 10.0, 25.0, 20.0], "number": 0}]
    assert chosen.pictures[0].shape == (30, 30, 3)


def test_without_any_object_images_are_shown_all_the_same() -> None:
    chosen = choose_samples(source_of([[]] * 30), context_of())

    assert chosen is not None
    assert len(chosen.samples) == 9
    assert chosen.samples[0]["label"]["boxes"] == []
