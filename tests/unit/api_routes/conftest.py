"""What the tests of routes share: the real studio on an empty workspace, whose jobs nobody starts, and its routes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest

from ziggurat.api.app import create_app
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import NewJob
from ziggurat.settings import Settings
from ziggurat.specs import DatasetSpec, save_spec
from ziggurat.workspace.people import LOCAL
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.opening import open_studio


class Browser:
    """Asks an application as a program at this machine does; each answer is whole when it is returned."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.headers: dict[str, str] = {}

    def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        return asyncio.run(self._ask(method, path, options))

    async def _ask(self, method: str, path: str, options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self._app, client=("127.0.0.1", 40000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
            return await client.request(method, path, headers=self.headers, **options)


@pytest.fixture(scope="session")
def empty_workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a workspace that was opened once; a copy of it is opened sooner than a new one is made."""
    place = tmp_path_factory.mktemp("empty") / "workspace"
    open_studio(Settings(workspace=place), start=False).close()
    return place


@pytest.fixture
def studio(tmp_path: Path, empty_workspace: Path) -> Iterator[Studio]:
    shutil.copytree(empty_workspace, tmp_path / "workspace")
    with open_studio(Settings(workspace=tmp_path / "workspace"), start=False) as opened:
        yield opened


@pytest.fixture
def app(studio: Studio) -> Any:
    return create_app(studio)


@pytest.fixture
def ask(app: Any) -> Browser:
    return Browser(app)


@pytest.fixture
def ask_as(app: Any, studio: Studio) -> Callable[[str, str], Browser]:
    """Return what asks with the token of a new user of a role."""

    def make(role: str, scope: str) -> Browser:
        name = f"{role}-{scope}"
        if not studio.people.has_accounts():
            studio.people.create_user("first", None, role="admin", by=LOCAL)  # from now on, nobody comes in without
        studio.people.create_user(name, None, role=role, by=LOCAL)
        browser = Browser(app)
        browser.headers["Authorization"] = f"Bearer {studio.people.create_token(name, 't', scope=scope, by=LOCAL)[1]}"
        return browser

    return make


@pytest.fixture
def train(ask: Browser) -> Callable[..., dict[str, Any]]:
    """Return what puts a training into the queue."""

    def make(**fields: Any) -> dict[str, Any]:
        spec = {"kind": "train", "version": 1, "network": "mlp", "data": "digits", "epochs": 2}
        answer = ask("POST", "/api/v1/trainings", json={"spec": {**spec, **fields.pop("spec", {})}, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()["jobs"][0]

    return make


@pytest.fixture
def pets(studio: Studio, tmp_path: Path) -> str:
    """Return the id of a data set of ten coloured pictures of two classes, 8 for training and 2 for validation."""
    source = tmp_path / "pets"
    for number in range(10):
        name = source / ("cat", "dog")[number % 2] / f"{number}.png"
        name.parent.mkdir(parents=True, exist_ok=True)
        picture = np.full((20, 30, 3), 25 * number, np.uint8)
        name.write_bytes(cv2.imencode(".png", picture)[1].tobytes())
    folder = studio.root / "datasets" / "20260101-000000-0001"
    spec = DatasetSpec(source=str(source), name="pets")
    asked = CreationRequest(source=str(source), name="pets", rule=SplitRule(val_share=0.2), workers=0)
    create_dataset(asked, folder)
    save_spec(spec, folder / "spec.json")
    new = NewJob(
        id=folder.name, kind="dataset", name="pets", folder=str(folder), spec=spec.model_dump(mode="json"), created=1.0
    )
    return studio.jobs.take_in(new, {}).id
