"""What these tests share: a real server with real workers, a dataset of two shades, two trainings on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import uvicorn

from tests.waiting import wait_until
from ziggurat.api.app import create_app
from ziggurat.client import Client
from ziggurat.server.serving import StudioServer
from ziggurat.settings import Settings
from ziggurat.store import Store
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.bootstrap import open_studio

CLASSES = ("dark", "grey", "light")


def write_pictures(folder: Path, each: int, seed: int) -> None:
    """Write noisy images of three shades that overlap, so that a model is sometimes wrong."""
    random = np.random.default_rng(seed)
    for number, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for count in range(each):
            shade = 60 + 60 * number + random.normal(0, 40)
            picture = np.clip(random.normal(shade, 10, (8, 8)), 0, 255).astype(np.uint8)
            cv2.imwrite(str(folder / name / f"{name}-{count:02}.png"), picture)


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    place = tmp_path_factory.mktemp("evaluations")
    (place / "workspace").mkdir()
    with Store.open(place / "workspace" / "studio.db") as store:
        store.settings.set("cpu_slots", 1)
    settings = Settings(workspace=place / "workspace", picture_hosts="127.0.0.1")
    with open_studio(settings) as opened:
        opened.paths.choose([str(place)])
        yield opened


@pytest.fixture(scope="session")
def address(studio: Studio) -> Iterator[str]:
    server = StudioServer(uvicorn.Config(create_app(studio), host="127.0.0.1", port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="session")
def client(address: str) -> Iterator[Client]:
    with Client(address, "") as opened:
        yield opened


@pytest.fixture(scope="session")
def source(studio: Studio) -> Path:
    """Return a folder below a root with the images that the dataset is made of."""
    folder = studio.root.parent / "shades"
    write_pictures(folder, 24, seed=4)
    return folder


@pytest.fixture(scope="session")
def made(client: Client, source: Path) -> dict[str, str]:
    """Return ids: ``dataset``, and two trainings on it, ``weak`` and ``strong``."""
    splits = {"method": "share", "val_share": 0.25, "test_share": 0.25}
    dataset = client.datasets.create({"source": str(source), "name": "shades", "workers": 0, "splits": splits})
    jobs = {}
    for name, epochs in (("weak", 1), ("strong", 25)):
        spec = {"network": "mlp", "name": name, "epochs": epochs, "batch_size": 6, "learning_rate": 0.05, "seed": 3}
        (jobs[name],) = client.train(spec, dataset=dataset["id"])
    ids = {name: client.wait(job["id"], every_s=0.1)["id"] for name, job in jobs.items()}
    return {"dataset": dataset["id"], **ids}


@pytest.fixture(scope="session")
def evaluated(client: Client, made: dict[str, str]) -> dict[str, str]:
    """Return ids of the evaluations of ``weak`` and ``strong`` on the test split."""
    jobs = {name: client.evaluations.create(made[name], split="test") for name in ("weak", "strong")}
    return {name: client.wait(job["id"], every_s=0.1)["id"] for name, job in jobs.items()}


@pytest.fixture(scope="session")
def truth(studio: Studio, client: Client, made: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return of each training what its warm process says of the images of the test split, and their labels.

    That is another process and another way to the images than those of the evaluation.
    """
    page = client.datasets.samples(made["dataset"], split="test", limit=1000)["samples"]
    rows = [sample["row"] for sample in page]
    pictures = [(str(row), client.datasets.picture(made["dataset"], "test", row)) for row in rows]
    found = {}
    for name in ("weak", "strong"):
        said = studio.models.predict(made[name], pictures, top=3)["predictions"]
        probabilities = np.zeros((len(rows), 3))
        for place, each in enumerate(said):
            for one in each["classes"]:
                probabilities[place, one["number"]] = one["probability"]
        found[name] = {
            "rows": rows,
            "keys": [sample["key"] for sample in page],
            "labels": np.array([CLASSES.index(sample["key"].split("/")[0]) for sample in page]),
            "probabilities": probabilities,
        }
    return found
