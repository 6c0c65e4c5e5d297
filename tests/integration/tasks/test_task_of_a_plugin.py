"""A task of a separately installed package is trained, evaluated and predicted for: one module and one entry point."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

PLUGIN = '''
import numpy as np

from ziggurat.tasks import ArraySpec, Metric, PrimaryMetric, Task


class MeanMiss(Metric):
    def __init__(self):
        self.total, self.samples = 0.0, 0

    def update(self, outputs, targets):
        self.total += float(np.abs(outputs["output"] - targets["y"]).sum())
        self.samples += len(targets["y"])

    def compute(self):
        return {"mean_miss": self.total / self.samples} if self.samples else {}

    def state(self):
        return {"sums": np.array([self.total, self.samples])}

    def merge(self, state):
        self.total += float(state["sums"][0])
        self.samples += int(state["sums"][1])


class CountObjects(Task):
    """Number of objects, from any number of boxes."""

    name = "count-objects"
    title = "counting of objects"
    primary_metric = PrimaryMetric("mean_miss", "min", "mean miss")

    def accepts(self, schema):
        return "" if schema.kind == "detection" else f"Counting needs boxes; this dataset is of kind {schema.kind}."

    def fit(self, schema, labels):
        return {"most": max(len(label) for label in labels)}

    def target(self, context):
        return ArraySpec((1,), "float32")

    def encode(self, context, label, key):
        return np.array([len(label)], np.float32)

    def metrics(self, context):
        return [MeanMiss()]

    def result_arrays(self, context, samples, top):
        return {"predicted": np.zeros(samples, np.float32), "score": np.zeros(samples, np.float32)}

    def results(self, context, outputs, targets):
        found = outputs["output"][:, 0]
        return {"predicted": found, "score": -np.abs(found - targets["y"][:, 0])}

    def decode(self, context, outputs, *, top=5):
        return {"objects": float(outputs["output"][0]), "most": context.statistics["most"]}


TASK = CountObjects()
'''


@pytest.fixture
def shell(tmp_path: Path) -> Any:
    """Return a function that runs a command of Ziggurat beside the installed package, and returns its output."""
    site = tmp_path / "site"
    information = site / "counting-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[ziggurat.tasks]\ncount-objects = counting:TASK\n")
    (site / "counting.py").write_text(PLUGIN)
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}

    def run(*arguments: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "ziggurat", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300)
        assert done.returncode == code, done.stderr
        return done.stdout if not code else done.stderr

    return run


def make_objects(folder: Path) -> None:
    """Write images with one to four bright squares and their boxes, in YOLO's form."""
    random = np.random.default_rng(2)
    for number in range(40):
        split = "train" if number < 30 else "val"
        pixels, lines = np.zeros((16, 16, 3), np.uint8), []
        for place in random.permutation(4)[: 1 + number % 4]:
            row, column = 8 * (place // 2), 8 * (place % 2)
            pixels[row + 2 : row + 6, column + 2 : column + 6] = 255
            lines.append(f"0 {(column + 4) / 16} {(row + 4) / 16} 0.25 0.25")
        for part in ("images", "labels"):
            (folder / part / split).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / "images" / split / f"{number:02}.png")
        (folder / "labels" / split / f"{number:02}.txt").write_text("\n".join(lines) + "\n")
    (folder / "data.yaml").write_text("path: .\ntrain: images/train\nval: images/val\nnames:\n  0: square\n")


def test_a_task_of_another_package_is_used_everywhere(tmp_path: Path, shell: Any) -> None:
    make_objects(tmp_path / "objects")
    shell("dataset", "create", str(tmp_path / "objects"), "--out", "set")
    refused = shell("train", "--data", "set", "--network", "mlp", "--batch-size", "9", "--out", "no", code=3)
    assert "The network `mlp` must fit the data." in refused

    options = ["--task", "count-objects", "--backend", "null", "--epochs", "80", "--batch-size", "10"]
    shell(
        "train",
        "--data",
        "set",
        "--network",
        "mlp",
        "--learning-rate",
        "0.01",
        "--set",
        "schedule.policy=fixed",
        *options,
        "--out",
        "job",
    )
    found = json.loads(shell("evaluate", "job", "--json"))
    predicted = json.loads(shell("predict", "job", "objects/images/val/33.png", "--json"))

    assert found["task"] == "count-objects"
    assert found["mean_miss"] < 0.5
    assert predicted["predictions"][0]["objects"] == pytest.approx(2, abs=0.7)
    assert predicted["predictions"][0]["most"] == 4
    assert "validation_mean_miss" in (tmp_path / "job" / "events.jsonl").read_text()
    assert json.loads((tmp_path / "job" / "task.json").read_text())["task"] == "count-objects"


def test_data_that_it_does_not_accept_is_refused_with_its_reason(tmp_path: Path, shell: Any) -> None:
    said = shell("train", "--data", "digits", "--network", "mlp", "--task", "count-objects", "--out", "no", code=4)
    assert "Counting needs boxes; this dataset is of kind image-classification." in said
    assert not (tmp_path / "no").exists()
