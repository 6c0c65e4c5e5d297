"""What the tests of pages share: the application with its pages on a real studio whose jobs nobody starts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.studio_samples import add_pets, make_empty_workspace, studio_in_copy
from ziggurat.app import create_studio
from ziggurat.workspace.accounts import LOCAL
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio


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
    return make_empty_workspace(tmp_path_factory.mktemp("empty"))


@pytest.fixture
def studio(tmp_path: Path, empty_workspace: Path) -> Iterator[Studio]:
    with studio_in_copy(empty_workspace, tmp_path) as opened:
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
        content = {**spec, "epochs": 2, "batch_size": 4, **fields.pop("spec", {})}
        (job,) = studio.training.create(JobRequest(spec=content, **fields), owner="local")
        return job

    return make


@pytest.fixture
def pets(studio: Studio, tmp_path: Path) -> str:
    """Return the id of a dataset of ten colored images of two classes, 8 for training and 2 for validation."""
    return add_pets(studio, tmp_path / "pets")
