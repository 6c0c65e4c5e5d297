"""What a detector finds, by REST, the Python client and DIGITS's routes; numbers are DIGITS's behaviors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import uvicorn
from torch_jobs import save_pictures, task_job

from tests.unit.datasets.small_task_datasets import shapes
from tests.waiting import wait_until
from ziggurat.api.app import create_app
from ziggurat.client import Client
from ziggurat.server.serving import StudioServer
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio, reindex

JOB = "20260101-000000-0001"
GENERIC = "/models/images/generic"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a studio that has a job which learned to detect shapes."""
    folder = tmp_path_factory.mktemp("doors")
    settings = Settings(workspace=folder / "workspace")
    with open_studio(settings):
        pass
    trained = Path(task_job("detection", folder, steps=40))
    jobs = settings.workspace / "jobs"
    jobs.mkdir(exist_ok=True)
    trained.rename(jobs / JOB)
    reindex(settings)
    with open_studio(settings) as studio:
        config = uvicorn.Config(create_app(studio), host="127.0.0.1", port=0, log_config=None, lifespan="off")
        server = StudioServer(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return two images of another shape than the network's input."""
    cut = np.stack([shapes(200)[:40], shapes(201)[:40]])
    return [Path(each) for each in save_pictures(tmp_path_factory.mktemp("images"), cut)]


@pytest.fixture(scope="module")
def predicted(address: str, images: list[Path]) -> list[dict[str, Any]]:
    """Return what the client got."""
    with Client(address) as client:
        found = client.models.predict(JOB, images)
    assert found["failures"] == []
    return found["predictions"]


def test_the_client_gets_boxes_in_px_of_the_image(predicted: list[dict[str, Any]]) -> None:
    for each in predicted:
        assert each["size"] == [40, 64]
        scores = [box["score"] for box in each["boxes"]]
        assert scores == sorted(scores, reverse=True)
        for box in each["boxes"]:
            left, top, right, bottom = box["box"]
            assert 0 <= left <= right <= 64
            assert 0 <= top <= bottom <= 40
    assert any(each["boxes"] for each in predicted)


def test_rest_gives_what_the_client_gives(address: str, images: list[Path], predicted: list[dict[str, Any]]) -> None:
    files = [("files", (path.name, path.read_bytes())) for path in images]
    answer = httpx.post(f"{address}/api/v1/models/{JOB}/predict", files=files, timeout=60)
    found = answer.raise_for_status().json()["predictions"]
    assert [each["boxes"] for each in found] == [each["boxes"] for each in predicted]


def digits_one(address: str, image: Path) -> dict[str, Any]:
    files = {"image_file": image.read_bytes()}
    answer = httpx.post(f"{address}{GENERIC}/infer_one.json", data={"job_id": JOB}, files=files, timeout=60)
    return answer.raise_for_status().json()["outputs"]


def test_89_rows_of_boxes_for_each_class(address: str, images: list[Path], predicted: list[dict[str, Any]]) -> None:
    for image, expected in zip(images, predicted, strict=True):
        found = digits_one(address, image)
        assert list(found) == ["bbox-list-class0", "bbox-list-class1", "bbox-list-class2"]
        for number, rows in enumerate(found.values()):
            boxes = [each for each in expected["boxes"] if each["number"] == number]
            assert [row[:4] for row in rows] == [each["box"] for each in boxes]
            assert [row[4] for row in rows] == pytest.approx([each["score"] for each in boxes], abs=1e-5)


def test_96_boxes_without_a_confidence_are_no_predictions(address: str, images: list[Path]) -> None:
    rows = [row for each in digits_one(address, images[0]).values() for row in each]
    assert all(len(row) == 5 and row[4] > 0 for row in rows)
