"""The operating point of an export: predict, predict.py and the server give the same answer for the same image."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exported_model import SIZE, make_task_export, task_context
from tests.unit.serving.conftest import Serve, png
from ziggurat.dataflow.standalone_prediction import Reader, decided_class, load_model
from ziggurat.errors import ChangedExportError
from ziggurat.serving.manifest import check_export
from ziggurat.tasks.base import prediction

# The network of each task, for the image below: probabilities of the second class, or scores of two boxes.
THRESHOLDS: dict[str, tuple[float, ...]] = {
    "classification": (0.1,),
    "multi-label": (0.7, 0.2),
    "detection": (0.5, 0.6),
    "segmentation": (0.8,),
}
PIXELS = np.linspace(0, 255, SIZE[0] * SIZE[1]).reshape(SIZE).astype(np.uint8)


def predicted(folder: Path, name: str, thresholds: tuple[float, ...] = ()) -> dict[str, Any]:
    """Return what predict says of the image; the export and the image are in the folder."""
    context = task_context(name, thresholds)
    export = make_task_export(folder / "export", context)
    (folder / "image.png").write_bytes(png(PIXELS))
    run, inside = load_model(export)
    batch, _ = Reader(export, inside).image((folder / "image.png").read_bytes())
    outputs = {key: value[0] for key, value in run(batch).items()}
    return json.loads(json.dumps(prediction(context, outputs, top=5, original_size=SIZE)))


@pytest.mark.parametrize("name", THRESHOLDS)
def test_every_face_obeys_the_same_thresholds(tmp_path: Path, serve: Serve, name: str) -> None:
    by_default = predicted(tmp_path / "default", name)
    chosen = predicted(tmp_path, name, THRESHOLDS[name])

    file, export = tmp_path / "image.png", tmp_path / "export"
    command = [sys.executable, str(export / "predict.py"), str(file), "--json", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (alone,) = json.loads(done.stdout)["predictions"]
    (served,) = serve(export).post("/predict", files={"image": ("x.png", file.read_bytes())}).json()["predictions"]

    for found in (alone, served):
        assert {key: value for key, value in found.items() if key not in ("file", "picture")} == chosen
    assert chosen != by_default


def test_two_classes_are_decided_by_the_second_one(tmp_path: Path) -> None:
    found = predicted(tmp_path, "classification", (0.1,))

    assert [each["class"] for each in found["classes"]] == ["cat", "dog"]
    assert found["decision"] == {"class": "dog", "number": 1, "threshold": 0.1}


def test_labels_and_boxes_have_a_threshold_for_each_class(tmp_path: Path) -> None:
    labels = predicted(tmp_path / "labels", "multi-label", (0.7, 0.2))["labels"]
    boxes = predicted(tmp_path / "boxes", "detection", (0.5, 0.6))["boxes"]

    assert {each["class"]: each["predicted"] for each in labels} == {"cat": False, "dog": True}
    assert [each["class"] for each in boxes] == ["dog"]  # the cat has 0.4, the dog 0.71


def test_a_mask_grows_with_a_smaller_threshold(tmp_path: Path) -> None:
    found = [predicted(tmp_path / str(each), "segmentation", (each,))["classes"] for each in (0.2, 0.5, 0.8)]
    shares = [{each["class"]: each["share"] for each in classes}["dog"] for classes in found]

    assert shares[0] > shares[1] > shares[2]


@pytest.mark.parametrize(("threshold", "decided"), [(0.5, "owl"), (0.7, None)])
def test_the_best_of_many_classes_may_be_undecided(threshold: float, decided: str | None) -> None:
    found = decided_class(np.array([0.1, 0.3, 0.6], np.float32), [threshold], ("cat", "dog", "owl"))

    assert (found["class"], found["number"] is None) == (decided, decided is None)


def test_a_changed_threshold_is_a_changed_export(tmp_path: Path) -> None:
    export = make_task_export(tmp_path / "export", task_context("multi-label", (0.7, 0.2)))
    assert check_export(export)
    path = export / "task.json"
    path.write_text(path.read_text().replace("0.7", "0.6"))

    with pytest.raises(ChangedExportError):
        check_export(export)
