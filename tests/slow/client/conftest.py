"""What the tests of the client share: a real server on this machine over a real studio."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
import uvicorn

from tests.waiting import wait_until
from ziggurat.api.app import create_app
from ziggurat.client import Client
from ziggurat.server.serving import StudioServer
from ziggurat.settings import Settings
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.bootstrap import open_studio


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with open_studio(Settings(workspace=tmp_path_factory.mktemp("client") / "workspace")) as opened:
        yield opened


@pytest.fixture(scope="session")
def address(studio: Studio) -> Iterator[str]:
    app = create_app(studio)
    server = StudioServer(uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address) as opened:
        yield opened


@pytest.fixture(scope="session")
def pets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with twelve images of two classes."""

    source = tmp_path_factory.mktemp("sources") / "pets"
    for number in range(12):
        name = source / ("cat", "dog")[number % 2] / f"{number}.png"
        name.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(name), np.full((12, 12, 3), 20 * number, np.uint8))
    return source


@pytest.fixture(scope="session")
def done(address: str, pets: Path) -> tuple[str, str]:
    """Return the ids of a dataset and of a training on it, both done."""
    with Client(address) as client:
        source = client.datasets.upload(pets)
        dataset = client.datasets.create({"source": source, "name": "pets", "workers": 0})
        (job,) = client.train(
            {"network": "mlp", "name": "on pets", "epochs": 2, "batch_size": 4, "seed": 3}, dataset=dataset["id"]
        )
        states = [each["state"] for each in client.follow(job["id"])]
        assert states[0] == "queued"
        assert states[-1] == "done", client.log(job["id"])
    return dataset["id"], job["id"]
