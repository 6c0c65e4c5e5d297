"""Samples of masks, tables and texts that are predicted for after each validation."""

import base64

import cv2
import numpy as np

from tests.unit.evaluations.test_task_results import table_context
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.sources import DataFromList
from ziggurat.dataflow.text_preprocessing import TextPreprocessing
from ziggurat.records.schema import Schema
from ziggurat.tasks import TaskContext, task
from ziggurat.worker.sample_choice import choose_samples
from ziggurat.worker.source import DataSource


def source_of(points, schema):
    return DataSource(splits={"val": DataFromList(points, shuffle=False)}, schema=schema)


def test_masks_are_kept_small_in_the_colors_of_their_classes() -> None:
    schema = Schema(kind="segmentation", class_names=("road", "tree"), colours=((1, 2, 3), (9, 8, 7)))
    mask = np.zeros((200, 300), np.uint8)
    mask[:, 150:] = 1
    mask[:100, :150] = 255
    points = [[np.full((200, 300, 3), 90, np.uint8), mask] for _ in range(30)]
    context = TaskContext(task("segmentation"), schema, Preprocessing(size=(200, 300), channels=3))

    chosen = choose_samples(source_of(points, schema), context)

    assert chosen is not None
    assert len(chosen.samples) == 9
    assert chosen.are_shown_fitted
    assert [each.shape for each in chosen.batch] == [(9, 200, 300, 3), (9, 200, 300, 1)]
    png = base64.b64decode(chosen.samples[0]["label"]["mask"])
    kept = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_UNCHANGED)
    assert max(kept.shape[:2]) <= 96
    assert kept[0, 0].tolist()[3] == 0, "what counts for nothing is clear"
    assert kept[-1, 0].tolist() == [3, 2, 1, 255]
    assert kept[-1, -1].tolist() == [7, 8, 9, 255]
    scores = np.zeros((200, 300, 2), np.float32)
    scores[..., 1] = 1
    said = context.task.sample_prediction(context, {"output": scores})
    assert cv2.imdecode(np.frombuffer(base64.b64decode(said["mask"]), np.uint8), cv2.IMREAD_COLOR)[0, 0].tolist() == [
        7,
        8,
        9,
    ]


def test_rows_of_a_table_are_kept_with_their_values() -> None:
    context = table_context()
    points = [[[float(number), 7.0], float(number)] for number in range(5)]

    chosen = choose_samples(source_of(points, context.schema), context)

    assert chosen is not None
    assert chosen.samples[2] == {
        "split": "val",
        "row": 2,
        "key": "2",
        "label": {"values": [2.0]},
        "content": {"cells": [["size", 2.0]]},
    }
    assert not chosen.are_shown_fitted
    assert chosen.pictures == []
    found = context.task.sample_prediction(context, {"output": np.array([np.nan], np.float32)})
    assert found == {"values": [None]}


def test_texts_are_spread_over_the_classes() -> None:
    schema = Schema(kind="text-classification", class_names=("bad", "good"))
    texts = [f"text number {number}" for number in range(20)]
    context = TaskContext(task("classification"), schema, TextPreprocessing.fit(texts, length=8))

    chosen = choose_samples(source_of([[text, number % 2] for number, text in enumerate(texts)], schema), context)

    assert chosen is not None
    assert [each["label"] for each in chosen.samples] == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert chosen.samples[0]["content"] == {"text": "text number 0"}
    assert [len(part) for part in chosen.batch] == [9, 9]
