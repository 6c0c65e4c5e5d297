"""Previews of sources with two images or several labels in a sample."""

import base64

import cv2
import numpy as np

from ziggurat.records.schema import Schema
from ziggurat.worker.commands.dataset_previews import preview_dataset


def _write(path, value, width=10):
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), np.full((8, width, 3), value, np.uint8))


def test_preview_shows_input_and_target_side_by_side(tmp_path):
    for number in range(4):
        _write(tmp_path / "files" / "noisy" / f"{number}.png", 40)
        _write(tmp_path / "files" / "clean" / f"{number}.png", 200)
    (tmp_path / "empty").mkdir()
    spec = {"kind": "dataset", "version": 1, "source": str(tmp_path / "files"), "format": "image_pairs"}
    numbers = {"samples": 2, "time_limit_s": 60.0, "at_most": 100}
    found = preview_dataset({"spec": spec, "folder": str(tmp_path / "empty"), **numbers})
    sample = found["samples"][0]
    shown = cv2.imdecode(np.frombuffer(base64.b64decode(sample["png"]), np.uint8), cv2.IMREAD_COLOR)
    assert shown.shape == (8, 20, 3)
    assert (int(shown[4, 2, 0]), int(shown[4, 17, 0])) == (40, 200)
    assert (sample["width_px"], sample["height_px"]) == (10, 8)


def test_schema_names_the_classes_that_a_label_has():
    schema = Schema(kind="image-regression", class_names=("blue", "green", "red"))
    assert schema.chosen_names([1, 0, 1]) == ["blue", "red"]
    assert schema.chosen_names([0, 0, 0]) == []
    assert schema.chosen_names([0.5, 0, 1]) is None
    assert Schema(kind="image-regression").chosen_names([1, 0]) is None
