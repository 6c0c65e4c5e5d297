"""The benchmark of pages at a tiny size: every scene has figures of both sides, and the floor loads nothing."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("fastapi", reason="the extra `studio` is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from bench.parts.pages_browser import why_no_browser
from bench.parts.pages_floor import bare

TINY = ("--jobs", "200", "--points", "4000", "--long-points", "500", "--queued", "4", "--samples", "1000")


def test_a_bare_page_has_the_size_and_loads_nothing():
    page = '<html><head><link rel="stylesheet" href="/a.css"><script type="module" src="/b.js"></script></head>'
    page += '<body><main hx-get="/x" data-island="home"><h1>Home</h1><img src="/c.png"></main></body></html>'
    plain = bare(page)
    assert abs(len(plain) - len(page)) <= 4
    assert "<h1>Home</h1>" in plain
    assert not re.search(r"<script|<link|\ssrc=|\shx-|\sdata-island", plain)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.timeout(300)
@pytest.mark.skipif(bool(why_no_browser()), reason=why_no_browser() or "there is a browser")
def test_the_results_have_a_row_for_each_scene(tmp_path):
    """In a process of its own: a browser of another test may be open in this one."""
    words = [
        sys.executable,
        "-m",
        "bench.pages",
        *TINY,
        "--rounds",
        "1",
        "--warm",
        "1",
        "--unrehearsed",
        "--json",
        str(tmp_path / "pages.json"),
    ]
    ended = subprocess.run(words, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    (content,) = json.loads((tmp_path / "pages.json").read_text())["benchmarks"]
    assert content["left_out"] == ""
    names = [page["name"] for page in content["pages"]]
    assert names[0] == "home"
    assert len(set(names)) == 9
    for page in content["pages"]:
        assert page["page_bytes"] > 10_000, page["name"]
        assert ("cold" in page) == (": " not in page["name"])
        for side in ("warm", "floor_warm"):
            assert 0 < page[side]["median_interactive_ms"] <= page[side]["p95_interactive_ms"]
        assert page["warm"]["median_shown_ms"] >= page["warm"]["median_interactive_ms"]
        assert page["floor_warm"]["median_transferred_bytes"] > 0
    assert ended.stdout.count("\n| ") == 1 + len(names)
