"""Images whose values are above the bits of training: each prediction says that they become white."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from ziggurat.cli.models import prediction_text
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.records.schema import Schema
from ziggurat.tasks import TaskContext, task
from ziggurat.worker.commands.prediction import predict_inputs
from ziggurat.worker.inference.handlers import PredictRequest, evaluate, predict
from ziggurat.worker.source import FilePath

SAID = "Its values reach 40000, above the 12 bits of the training images: they become white."


def png(highest: int) -> bytes:
    values = np.linspace(0, highest, 16).round().astype(np.uint16).reshape(4, 4)
    return cv2.imencode(".png", values)[1].tobytes()


class Network:
    """Gives every image the same scores."""

    def predict(self, x: np.ndarray) -> dict[str, np.ndarray]:
        return {"probabilities": np.tile(np.float32([0.25, 0.75]), (len(x), 1))}

    def evaluate(self, x: np.ndarray, _labels: np.ndarray) -> dict[str, np.ndarray]:
        return {"cost": np.zeros(len(x), np.float32)}


@pytest.fixture
def model() -> Any:
    schema = Schema(kind="image-classification", class_names=("dark", "light"))
    preprocessing = Preprocessing(size=(4, 4), channels=1, bits=12)
    context = TaskContext(task("classification"), schema, preprocessing)
    job = SimpleNamespace(context=context, task=context.task, images=preprocessing, class_names=schema.class_names)
    return SimpleNamespace(job=job, network=Network())


def test_predictions_for_files_say_it(model: Any, tmp_path: Path) -> None:
    for name, highest in (("a.png", 4095), ("b.png", 40_000)):
        (tmp_path / name).write_bytes(png(highest))
    files: list[tuple[str, Any]] = [(name, FilePath(str(tmp_path / name))) for name in ("a.png", "b.png")]
    files.append(("video frame", png(40_000)))
    read, _outputs, failures = predict_inputs(model.job, model.network, files)
    assert not failures
    assert [dict(each.note) for each in read] == [{}, {"note": SAID}, {"note": SAID}]


def test_predictions_of_the_studio_say_it(model: Any) -> None:
    asked = PredictRequest([("a.png", png(4095)), ("b.png", png(40_000))])
    predict(model, [asked])
    assert [each.get("note") for each in asked.predictions] == [None, SAID]


def test_evaluation_of_sent_images_says_it(model: Any) -> None:
    found = evaluate(model, {"pictures": [["a.png", png(4095)], ["b.png", png(40_000)]], "labels": [0, 1]})
    assert found["notes"] == [{"file": "b.png", "note": SAID}]


@pytest.mark.parametrize("said", [{"classes": [{"class": "dark", "probability": 0.5}]}, {"values": []}])
def test_the_shell_shows_it_in_a_line_of_its_own(said: dict[str, Any]) -> None:
    first, second = prediction_text({"file": "b.png", **said, "note": SAID}).split("\n")
    assert first.startswith("b.png")
    assert SAID not in first
    assert second == f"  Note: {SAID}"


def test_eight_bits_and_arrays_have_nothing_to_say() -> None:
    eight = cv2.imencode(".png", np.full((4, 4), 255, np.uint8))[1].tobytes()
    preprocessing = Preprocessing(size=(4, 4), channels=1, bits=12)
    assert preprocessing.input_note(eight) == ""
    assert preprocessing.input_note(np.zeros((4, 4, 1), np.uint8)) == ""
    assert Preprocessing(size=(4, 4), channels=1).input_note(png(65535)) == ""
