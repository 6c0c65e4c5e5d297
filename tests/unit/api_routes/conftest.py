"""What the tests of routes share: the real studio on an empty workspace, whose jobs nobody starts, and its routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.studio_samples import add_pets, make_empty_workspace, studio_in_copy
from ziggurat.api.app import create_app
from ziggurat.workspace.accounts import LOCAL
from ziggurat.workspace.studio import Studio


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
    return make_empty_workspace(tmp_path_factory.mktemp("empty"))


@pytest.fixture
def studio(tmp_path: Path, empty_workspace: Path) -> Iterator[Studio]:
    with studio_in_copy(empty_workspace, tmp_path) as opened:
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
        spec = {"kind": "train", "version": 1, "network": "mlp", "data": "digits", "epochs": 2, "batch_size": 4}
        answer = ask("POST", "/api/v1/trainings", json={"spec": {**spec, **fields.pop("spec", {})}, **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()["jobs"][0]

    return make


@pytest.fixture
def pets(studio: Studio, tmp_path: Path) -> str:
    """Return the id of a dataset of ten colored images of two classes, 8 for training and 2 for validation."""
    return add_pets(studio, tmp_path / "pets")
