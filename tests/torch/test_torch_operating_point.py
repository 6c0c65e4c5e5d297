"""Thresholds of trained PyTorch networks: prediction, open network, export and server decide alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from torch_jobs import save_pictures, task_job

from tests.nightly import some_nightly
from tests.unit.datasets.small_task_datasets import picture, shapes, text
from ziggurat.entities.operating_point import OperatingPoint, checkpoint_digest, write_operating_point
from ziggurat.layout import JobFolder
from ziggurat.serving.manifest import check_export
from ziggurat.serving.model import open_model
from ziggurat.worker.commands.exporting import export
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.commands.trained import open_trained_job
from ziggurat.worker.inference.handlers import WarmModel
from ziggurat.worker.inference.process import REQUESTS

TASKS = ("classification of texts", "multi-label", "detection", "segmentation")


def choose(folder: Path, *thresholds: float) -> OperatingPoint:
    """Choose thresholds on the only checkpoint of a job."""
    job = open_trained_job(folder)
    names = job.task.threshold_names(job.class_names)
    values = thresholds if len(thresholds) == len(names) else thresholds * len(names)
    digest = checkpoint_digest(JobFolder(folder), job.checkpoint)
    point = OperatingPoint(names=names, thresholds=values, checkpoint=job.checkpoint, step=0, digest=digest)
    write_operating_point(JobFolder(folder), point)
    return point


def inputs(name: str, folder: Path) -> dict[str, Any]:
    """Return an input of a task, as ``predict`` takes it."""
    if name == "classification of texts":
        return {"texts": [text(200)]}
    image = shapes(200)[:50] if name == "detection" else picture(200)
    return {"images": save_pictures(folder, np.stack([image]))}


def decisions(found: dict[str, Any]) -> Any:
    """Return what a prediction decides, without probabilities, whose last digits differ."""
    if "decision" in found:
        return found["decision"]
    if "labels" in found:
        return {each["class"]: each["predicted"] for each in found["labels"]}
    if "boxes" in found:
        return [each["class"] for each in found["boxes"]]
    return {each["class"]: each["share"] for each in found.get("classes", []) if "share" in each}


def middle(found: dict[str, Any]) -> float:
    """Return a threshold that changes what is predicted."""
    if "labels" in found:
        first, second = (each["probability"] for each in found["labels"])
        return (first + second) / 2
    if "boxes" in found:
        scores = [each["score"] for each in found["boxes"]]
        return float(np.mean([max(scores), min(scores)]))
    return 0.999


@pytest.mark.parametrize("name", some_nightly(TASKS, but=["multi-label"]))
def test_all_faces_decide_alike_at_a_chosen_threshold(tmp_path: Path, name: str) -> None:
    folder = Path(task_job(name, tmp_path, steps=40 if name == "detection" else 4))
    given = inputs(name, tmp_path)
    model = WarmModel(folder)
    (before,) = predict({"folder": str(folder), **given})["predictions"]
    threshold = middle(before)

    choose(folder, threshold)

    answer = predict({"folder": str(folder), **given})
    (chosen,) = answer["predictions"]
    network = model.network
    model.follow()
    asked = given if "texts" in given else {"pictures": [(each, Path(each).read_bytes()) for each in given["images"]]}
    warm = REQUESTS["predict"](model, asked)
    made = export({"folder": str(folder), "format": "onnx", "out": str(tmp_path / "export")})
    served = open_model(tmp_path / "export")
    if "texts" in given:
        batch, image = served.read_value("1", given["texts"][0]), None
    else:
        batch, image = served.read_image("x", Path(given["images"][0]).read_bytes())
    alone = served.described({key: value[0] for key, value in served.run(batch).items()}, 5, image)

    assert decisions(chosen) != decisions(before)
    assert decisions(chosen) == decisions(warm["predictions"][0]) == decisions(alone)
    assert (
        answer["operating_point"]["used"] is warm["operating_point"]["used"] is made["operating_point"]["used"] is True
    )
    assert model.network is network, "it stays open"
    assert check_export(tmp_path / "export").provenance["operating_point"]["used"] is True
    model.close()


def test_another_checkpoint_does_not_obey_and_says_so(tmp_path: Path) -> None:
    folder = Path(task_job("multi-label", tmp_path))
    given = inputs("multi-label", tmp_path)
    before = predict({"folder": str(folder), **given})
    point = choose(folder, 0.99)
    write_operating_point(JobFolder(folder), replace(point, checkpoint="step-00000001"))

    answer = predict({"folder": str(folder), **given})
    made = export({"folder": str(folder), "format": "safetensors", "out": str(tmp_path / "export")})

    assert answer["predictions"] == before["predictions"]
    for found in (answer, made):
        assert found["operating_point"]["used"] is False
        assert "chosen on step-00000001 and is not used for" in found["operating_point"]["problem"]
    assert "chosen on step-00000001" in (tmp_path / "export" / "MODEL_CARD.md").read_text()
    assert "thresholds" not in (tmp_path / "export" / "task.json").read_text()
