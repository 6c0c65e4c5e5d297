"""What the tests of pages share: the application with its pages on a real studio whose jobs nobody starts."""

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

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import NewJob
from ziggurat.settings import Settings
from ziggurat.specs import DatasetSpec, save_spec
from ziggurat.web.application import create_studio
from ziggurat.workspace.people import LOCAL
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.new_jobs import JobRequest
from ziggurat.workspace.studio.opening import open_studio


class Visitor:
    """Asks for pages as a browser does; an answer is whole when it is returned. Cookies stay."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.headers = {"Accept": "text/html,application/xhtml+xml", "Sec-Fetch-Site": "same-origin"}
        self.cookies = httpx.Cookies()

    def get(self, path: str, **options: Any) -> httpx.Response:
        """Ask for a page."""
        return self("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        """Send a form."""
        return self("POST", path, **options)

    def part(self, path: str, target: str = "", **options: Any) -> httpx.Response:
        """Ask for a part of a page, as htmx does."""
        return self("GET", path, headers={"HX-Request": "true", "HX-Target": f"div#{target}"}, **options)

    def __call__(self, method: str, path: str, headers: dict[str, str] | None = None, **options: Any) -> httpx.Response:
        return asyncio.run(self._ask(method, path, {**self.headers, **(headers or {})}, options))

    async def _ask(self, method: str, path: str, headers: dict[str, str], options: dict[str, Any]) -> httpx.Response:
        transport = httpx.ASGITransport(self._app, client=("127.0.0.1", 40000))
        base = "http://127.0.0.1:5000"
        async with httpx.AsyncClient(transport=transport, base_url=base, cookies=self.cookies) as client:
            answer = await client.request(method, path, headers=headers, **options)
            self.cookies.update(client.cookies)
            return answer


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
        opened.paths.choose([str(tmp_path)])
        yield opened


@pytest.fixture
def app(studio: Studio) -> Any:
    return create_studio(studio)


@pytest.fixture
def visit(app: Any) -> Visitor:
    """Return somebody at this machine; nobody has an account yet."""
    return Visitor(app)


@pytest.fixture
def visit_as(app: Any, studio: Studio) -> Callable[[str], Visitor]:
    """Return what visits with the account of a new user of a role."""

    def make(role: str) -> Visitor:
        if not studio.people.has_accounts():
            studio.people.create_user("first", None, role="admin", by=LOCAL)  # from now on, nobody comes in without
        studio.people.create_user(role, "correct horse battery", role=role, by=LOCAL)
        visitor = Visitor(app)
        answer = visitor.post("/login", data={"name": role, "password": "correct horse battery"})
        assert answer.status_code == 303, answer.text
        return visitor

    return make


@pytest.fixture
def train(studio: Studio) -> Callable[..., Any]:
    """Return what puts a training of the null backend into the queue, and returns its job."""

    def make(**fields: Any) -> Any:
        spec = {"kind": "train", "version": 1, "name": "tiny", "backend": "null", "network": "mlp", "data": "digits"}
        content = {**spec, "epochs": 2, **fields.pop("spec", {})}
        (job,) = studio.training.create(JobRequest(spec=content, **fields), owner="local")
        return job

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
