"""A separately installed task with targets of variable length has pages, REST answers and exports."""

import json
import os
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("tensorflow", reason="the extra `tensorflow` is not installed")

import httpx

from tests.integration.studio.studio_process import StudioProcess, call
from tests.integration.tasks.test_task_of_a_plugin import make_objects
from tests.waiting import PROCESS_S, wait_until
from ziggurat.client import Client

PACKAGE = '''
import numpy as np

from ziggurat.tasks import ArraySpec, Metric, MetricInfo, PrimaryMetric, Task, raw_outputs


class MeanMiss(Metric):
    def __init__(self):
        self.total, self.samples = 0.0, 0

    def update(self, outputs, targets):
        self.total += float(np.abs(outputs["output"][:, 0] - numbers_of(targets["y"])).sum())
        self.samples += len(targets["y"])

    def compute(self):
        return {"mean_miss": self.total / self.samples} if self.samples else {}

    def state(self):
        return {"sums": np.array([self.total, self.samples])}

    def merge(self, state):
        self.total += float(state["sums"][0])
        self.samples += int(state["sums"][1])


def numbers_of(boxes):
    """Return how many of the padded boxes (N, most, 4) are real: those with an area."""
    return (boxes[..., 2] > boxes[..., 0]).sum(axis=1)


class CountBoxes(Task):
    """Number of boxes, learned from the boxes themselves: as many rows as the sample with the most, the rest zero."""

    name = "count-boxes"
    title = "counting of boxes"
    primary_metric = PrimaryMetric("mean_miss", "min", "mean miss")
    metric_info = {"mean_miss": MetricInfo("Mean miss", "boxes", "min")}

    def accepts(self, schema):
        return "" if schema.kind == "detection" else f"Counting needs boxes; this dataset is of kind {schema.kind}."

    def fit(self, schema, labels):
        return {"most": max(len(label) for label in labels)}

    def target(self, context):
        return ArraySpec((context.statistics["most"], 4), "float32")

    def encode(self, context, label, key):
        padded = np.zeros((context.statistics["most"], 4), np.float32)
        some = label[: len(padded)]  # (K, 4): left, top, right, bottom
        padded[: len(some)] = some
        return padded

    def metrics(self, context):
        return [MeanMiss()]

    def result_arrays(self, context, samples, top):
        names = ("predicted", "actual", "score")
        return {name: np.zeros(samples, np.float32) for name in names}

    def results(self, context, outputs, targets):
        found, actual = outputs["output"][:, 0], numbers_of(targets["y"]).astype(np.float32)
        return {"predicted": found, "actual": actual, "score": -np.abs(found - actual)}

    def decode(self, context, outputs, *, top=5):
        return {"objects": float(outputs["output"][0])} if "output" in outputs else raw_outputs(outputs)


COUNT_BOXES = CountBoxes()
'''

NETWORK = """
class UserModel(Tower):
    task = "count-boxes"

    @model_property
    def inference(self):
        return slim.fully_connected(slim.flatten(self.x), 1, activation_fn=None)

    @model_property
    def loss(self):
        actual = tf.reduce_sum(tf.cast(self.y[:, :, 2] > self.y[:, :, 0], tf.float32), axis=1)
        return tf.reduce_mean(tf.square(self.inference[:, 0] - actual))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the installed package and the images."""
    place = tmp_path_factory.mktemp("counting")
    package, information = place / "site" / "counting", place / "site" / "counting-1.0.dist-info"
    (package / "templates").mkdir(parents=True)
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: counting\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[ziggurat.tasks]\ncount-boxes = counting:COUNT_BOXES\n")
    (package / "__init__.py").write_text(PACKAGE)
    (package / "templates" / "answer.html").write_text('<p id="counted">{{ one.said.objects | number(2) }} boxes</p>\n')
    (package / "templates" / "sample.html").write_text(
        '<p class="counted-one">{{ tile.sample["values"].predicted | number(3) }}</p>\n'
    )
    make_objects(place / "objects")
    return place


@pytest.fixture(scope="module")
def studio(place: Path) -> Iterator[StudioProcess]:
    """Return a studio beside which the package is installed."""
    with pytest.MonkeyPatch.context() as patch:
        paths = [str(place / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        assert call(place / "workspace", "settings", "allow", str(place)).returncode == 0
        process = StudioProcess(place / "workspace")
    yield process
    process.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def client(studio: StudioProcess) -> Iterator[Client]:
    with Client(studio.address) as client:
        yield client


@pytest.fixture(scope="module")
def model(client: Client, place: Path) -> str:
    """Return the id of a training of the task that is done."""
    made = client.datasets.create({"source": str(place / "objects"), "name": "objects"})
    assert client.wait(made["id"], timeout_s=120, every_s=0.1)["state"] == "done"
    network = {"source": "file", "path": "network.py", "text": NETWORK}
    spec = {"backend": "tensorflow", "network": network, "epochs": 60, "batch_size": 10}
    spec |= {"optimizer": {"name": "adam"}, "learning_rate": 0.003, "preprocessing": {"mean": "pixel"}}
    (job,) = client.train(spec, dataset=made["id"])
    assert client.wait(job["id"], timeout_s=240, every_s=0.2)["state"] == "done"
    return job["id"]


def page(studio: StudioProcess, path: str) -> str:
    answer = httpx.get(studio.address.rstrip("/") + path, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.text


@pytest.mark.nightly
def test_the_evaluation_has_its_metric_in_rest_and_page(studio: StudioProcess, client: Client, model: str) -> None:
    job = client.evaluations.create(model, split="val")
    assert client.wait(job["id"], timeout_s=120, every_s=0.2)["state"] == "done"

    found = client.evaluations.summary(job["id"])
    assert found["task"] == "count-boxes"
    assert found["metrics"]["mean_miss"] < 0.6

    shown = page(studio, f"/evaluations/{job['id']}")
    assert "Mean miss" in shown
    assert 'class="counted-one"' in shown


def test_a_prediction_is_answered_over_rest_and_its_page(
    studio: StudioProcess, client: Client, model: str, place: Path
) -> None:
    image = place / "objects" / "images" / "val" / "33.png"
    (found,) = client.models.predict(model, [image])["predictions"]
    assert found["objects"] == pytest.approx(2, abs=0.8)
    place_of_form = f"{studio.address.rstrip('/')}/models/{model}/test/one"
    shown = httpx.post(place_of_form, files={"picture": ("33.png", image.read_bytes())}, timeout=60)
    assert shown.status_code == 200
    assert '<p id="counted">' in shown.text


@pytest.mark.nightly
def test_the_export_is_proven_in_its_metric(client: Client, model: str, tmp_path: Path) -> None:
    started = client.models.start_export(model, "savedmodel")

    def done() -> bool:
        (state,) = [each for each in client.models.exports(model) if each["name"] == started["name"]]
        assert state["state"] not in ("failed", "interrupted"), state
        return state["state"] == "done"

    wait_until(done, PROCESS_S)
    archive = client.models.save_export(model, started["name"], tmp_path / "model.zip")
    with zipfile.ZipFile(archive) as files:
        (name,) = [each for each in files.namelist() if each.endswith("parity.json")]
        report: dict[str, Any] = json.loads(files.read(name))
    assert report["metric"] == "mean miss"
    assert report["metric_after"] == pytest.approx(report["metric_before"], abs=1e-4)
