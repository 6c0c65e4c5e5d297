"""The way to the graph of a network that is not trained: addresses, waiting, errors, and who comes through."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("fastapi", reason="the extra `studio` is not installed")

from tests.waiting import wait_until
from ziggurat.api.app import create_app
from ziggurat.app import create_studio
from ziggurat.services.tensorboard import TENSORBOARD_COMMAND, TensorBoards
from ziggurat.settings import Settings
from ziggurat.workspace.accounts import LOCAL
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.bootstrap import open_studio
from ziggurat.workspace.studio.network_graphs import GRAPHS_FOLDER, GraphCache, NetworkGraphs

ECHO = (sys.executable, str(Path(__file__).with_name("echo_board.py")))
EMPTY = (sys.executable, str(Path(__file__).with_name("empty_board.py")))
PAGE = {"Accept": "text/html,*/*"}


class Site:
    """A studio that keeps one graph, whose TensorBoard is a stand-in."""

    def __init__(self, studio: Studio, prefix: str, command: tuple[str, ...], environment: dict[str, str]) -> None:
        kept = GraphCache(studio.root / GRAPHS_FOLDER, time.time)
        self.boards = TensorBoards(
            kept.folder,
            {**os.environ, **environment},
            prefix=prefix + "/models/graphs/{job_id}/tensorboard",
            command=command,
            logs=studio.root,
        )
        studio.graphs = NetworkGraphs(kept, studio.networks.describe, self.boards)
        self.kept, self.studio = kept, studio
        self.graph = kept.begin()
        kept.events(self.graph).mkdir()
        (kept.events(self.graph) / "events.out.tfevents.1").write_bytes(b"events")
        assert kept.keep(self.graph)
        self.app = create_app(studio, prefix=prefix)
        self.place = f"/models/graphs/{self.graph}"

    def ask(self, method: str, path: str, app: Any = None, **options: Any) -> httpx.Response:
        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(app or self.app, client=("127.0.0.1", 40000))
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
                return await client.request(method, path, **options)

        return asyncio.run(request())

    def settled(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask until its TensorBoard has started."""
        return wait_until(lambda: (answer := self.ask(method, path, **options)).status_code != 503 and answer, 60)


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def make(prefix: str = "", command: tuple[str, ...] = ECHO, **environment: str) -> Site:
        studio = open_studio(Settings(workspace=tmp_path / "workspace"), start=False)
        made.append(Site(studio, prefix, command, environment))
        return made[-1]

    yield make
    for site in made:
        site.boards.close()
        site.studio.close()


def test_the_way_leads_to_its_tab_and_what_is_asked_there_passes(make_site):
    site = make_site()
    answer = site.settled("GET", site.place, headers=PAGE)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{site.place}/tensorboard/#graphs")
    asked = site.ask("GET", f"{site.place}/tensorboard/data/plugin/graphs/info?a=b", headers={"Cookie": "a=secret"})
    assert asked.json()["path"] == f"{site.place}/tensorboard/data/plugin/graphs/info?a=b"
    assert "cookie" not in asked.json()["headers"]
    page = site.ask("GET", f"{site.place}/tensorboard/?type=text/html")
    policy = page.headers["content-security-policy"]
    assert f"connect-src 127.0.0.1:5000{site.place}/tensorboard/;" in policy
    assert "sandbox allow-scripts allow-same-origin allow-downloads" in policy
    slash = site.ask("GET", f"{site.place}/tensorboard?x=1")
    assert (slash.status_code, slash.headers["location"]) == (308, f"{site.place}/tensorboard/?x=1")


def test_below_a_prefix(make_site):
    site = make_site(prefix="/ziggurat")
    answer = site.settled("GET", "/ziggurat" + site.place)
    assert answer.headers["location"] == f"/ziggurat{site.place}/tensorboard/#graphs"
    asked = site.ask("GET", f"/ziggurat{site.place}/tensorboard/data/runs")
    assert asked.json()["path"] == f"/ziggurat{site.place}/tensorboard/data/runs"


def test_a_page_waits_until_the_graph_was_read_but_not_for_ever(make_site):
    site = make_site(command=EMPTY)
    site.settled("GET", site.place)
    waits = site.ask("GET", f"{site.place}?asked=3", headers=PAGE)
    assert (waits.status_code, waits.headers["retry-after"]) == (503, "2")
    assert f'<meta http-equiv="refresh" content="2; url={site.place}?asked=4">' in waits.text
    assert "TensorBoard is starting" in waits.text
    goes_on = site.ask("GET", f"{site.place}?asked=10", headers=PAGE)
    assert (goes_on.status_code, goes_on.headers["location"]) == (303, f"{site.place}/tensorboard/#graphs")


@pytest.mark.parametrize("name", ["f" * 32, "%2e%2e", "lenet", "a%00b", "%F0%9F%8C%8B", "x" * 3000])
@pytest.mark.parametrize("below", ["", "/tensorboard/", "/tensorboard/data/plugin/graphs/info"])
def test_one_that_is_gone_is_a_page_that_says_what_to_do(make_site, name, below):
    site = make_site()
    answer = site.ask("GET", f"/models/graphs/{name}{below}", create_studio(site.studio), headers=PAGE)
    assert answer.status_code == 404
    assert "<h1" in answer.text
    assert "is not there any more: it is kept for a while only" in answer.text
    assert "Press Visualize on the page for a new model again." in answer.text
    assert site.boards.status() == []


def test_without_tensorboard_it_says_what_to_install(make_site, tmp_path):
    missing = "raise ModuleNotFoundError('No module named tensorboard', name='tensorboard')"
    (tmp_path / "tensorboard.py").write_text(missing)
    site = make_site(command=TENSORBOARD_COMMAND, PYTHONPATH=str(tmp_path))
    answer = site.settled("GET", site.place, app=create_studio(site.studio), headers=PAGE)
    assert answer.status_code == 501
    assert "The package <code>tensorboard</code> is needed for opening TensorBoard" in answer.text
    assert "Install it with: pip install &#39;ziggurat[studio]&#39;." in answer.text


def test_nobody_without_a_login_comes_through_and_a_viewer_does(make_site):
    site = make_site()
    site.studio.people.create_user("first", None, role="admin", by=LOCAL)
    site.studio.people.create_user("looker", None, role="viewer", by=LOCAL)
    token = site.studio.people.create_token("looker", "t", scope="read", by=LOCAL)[1]
    for below in ("", "/tensorboard", "/tensorboard/", "/tensorboard/data/runs"):
        assert site.ask("GET", site.place + below).status_code == 401
    assert site.boards.status() == []
    answer = site.settled("GET", site.place, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 303


def test_one_that_is_removed_ends_its_tensorboard(make_site):
    site = make_site()
    with TensorBoards(site.kept.folder, os.environ, command=ECHO, logs=site.studio.root) as boards:
        kept = GraphCache(site.studio.root / GRAPHS_FOLDER, time.time, before_remove=boards.release)
        boards.proxy_target(site.graph)
        assert [each.job_id for each in boards.status()] == [site.graph]
        kept.drop(site.graph)
        assert boards.status() == []
