"""The parts of the benchmark of pages: its scenes, its report, and a floor that loads nothing."""

import re

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("fastapi", reason="the extra `studio` is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from bench.parts.pages_browser import Visit
from bench.parts.pages_floor import bare
from bench.parts.pages_report import PagesReport
from bench.parts.pages_scenes import Figures, scenes
from bench.parts.studio_workspace import Size, make_folders


def test_a_bare_page_has_the_size_and_loads_nothing():
    page = '<html><head><link rel="stylesheet" href="/a.css"><script type="module" src="/b.js"></script></head>'
    page += '<body><main hx-get="/x" data-island="home"><h1>Home</h1><img src="/c.png"></main></body></html>'
    plain = bare(page)
    assert abs(len(plain) - len(page)) <= 4
    assert "<h1>Home</h1>" in plain
    assert not re.search(r"<script|<link|\ssrc=|\shx-|\sdata-island", plain)


def test_the_scenes_are_pages_of_the_workspace(tmp_path):
    workspace = make_folders(tmp_path / "workspace", Size(jobs=80, points=4000, long_points=500, queued=4))
    looked = scenes(workspace, "the-data-set", 1000)
    assert [scene.name for scene in looked if not scene.act] == [
        "home",
        "job",
        "job with a long curve",
        "explorer, from the middle",
    ]
    assert len({scene.name for scene in looked}) == len(looked) == 9
    assert looked[5].path.removeprefix("/models/") in workspace.jobs
    assert looked[7].path == "/datasets/the-data-set/explore?offset=500"


def test_the_report_has_a_row_for_each_scene():
    page = Figures(name="home", page_bytes=40_000)
    act = Figures(
        name="home: next page", page_bytes=12_000, warm=[Visit(30, 30, 30, 9000)], floor_warm=[Visit(10, 10, 10, 5000)]
    )
    sides = [(page.cold, 300), (page.warm, 200), (page.followed, 90)]
    for side, took_ms in (*sides, (page.floor_cold, 50), (page.floor_warm, 40), (page.floor_followed, 30)):
        side += [Visit(took_ms + more, took_ms + more + 5, took_ms, 1000) for more in (0, 10, 20)]
    report = PagesReport("Pages", ["a note"], [page, act])
    assert report.text().splitlines()[-2:] == [
        "| home | 40 | 310 | 300 | 315 | 1 | 60 | 5.2 | 210 | 220 | 200 | 215 | 1 | 50 | 4.2"
        " | 100 | 110 | 90 | 40 | 2.5 |",
        "| home: next page | 12 | – | – | – | – | – | – | 30 | 30 | 30 | 30 | 9 | 10 | 3.0 | – | – | – | – | – |",
    ]
    report.cpu_ms = {"home": 3.52}
    assert report.text().splitlines()[-1] == "CPU time of the server for one request: home 3.5 ms"
    of_page, of_act = report.as_dict()["pages"]
    assert of_page["warm"]["interactive_ms"] == [200, 210, 220]
    assert sorted(of_act) == ["floor_warm", "name", "page_bytes", "warm"]
