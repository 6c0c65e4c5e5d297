"""Style sheets and scripts: compressed when they were built, kept for a year, without what only documents need."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import ziggurat.web
from ziggurat.web.static_files import is_built

STATIC = Path(ziggurat.web.__file__).parent / "static"
FOR_DOCUMENTS = ("content-security-policy", "x-frame-options", "referrer-policy", "cross-origin-opener-policy")
needs_scripts = pytest.mark.skipif(
    not is_built(), reason="the scripts of the pages are not built: there is no Node here"
)


def test_a_style_sheet_is_kept_a_year_without_document_headers(visit: Any) -> None:
    answer = visit.get("/static/studio.css?v=0123456789ab")
    assert answer.text == (STATIC / "studio.css").read_text(encoding="utf-8")
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert not [name for name in (*FOR_DOCUMENTS, "etag", "last-modified") if name in answer.headers]


def test_a_page_carries_them_all(visit: Any) -> None:
    answer = visit.get("/about")
    assert not [name for name in FOR_DOCUMENTS if name not in answer.headers]


def test_without_a_version_it_is_asked_for_again_each_time(visit: Any) -> None:
    answer = visit.get("/static/studio.css")
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["etag"]


@needs_scripts
@pytest.mark.parametrize(
    ("accepted", "encoding", "ending"),
    [
        ("gzip, deflate, br, zstd", "br", ".br"),
        ("gzip", "gzip", ".gz"),
        ("br;q=0, gzip", "gzip", ".gz"),
        ("identity", "", ""),
    ],
)
def test_a_script_comes_as_it_was_compressed_when_it_was_built(
    visit: Any, accepted: str, encoding: str, ending: str
) -> None:
    answer = visit.get("/static/vendor/studio.js?v=0123456789ab", headers={"Accept-Encoding": accepted})
    assert answer.status_code == 200
    assert answer.headers.get("content-encoding", "") == encoding
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert int(answer.headers["content-length"]) == (STATIC / "vendor" / f"studio.js{ending}").stat().st_size
    if encoding != "br":  # the client of the tests cannot unpack that
        assert answer.content == (STATIC / "vendor" / "studio.js").read_bytes()


@needs_scripts
def test_a_style_sheet_comes_small_under_its_digest(visit: Any) -> None:
    address = re.search(r'href="(/static/studio\.css\?v=[0-9a-f]{12})"', visit.get("/about").text)
    assert address is not None
    small = visit.get(address[1], headers={"Accept-Encoding": "gzip"})
    assert small.headers["content-encoding"] == "gzip"
    assert small.headers["content-type"] == "text/css; charset=utf-8"
    assert "--action" in small.text
    assert len(small.text) < 0.95 * len((STATIC / "studio.css").read_text(encoding="utf-8"))
    changed = visit.get("/static/studio.css?v=000000000000", headers={"Accept-Encoding": "gzip"})
    assert changed.text == (STATIC / "studio.css").read_text(encoding="utf-8")


@needs_scripts
def test_a_worker_brings_its_own_policy_and_other_scripts_none(visit: Any) -> None:
    worker = visit.get("/static/vendor/graph-worker.js?v=0123456789ab")
    assert worker.headers["content-security-policy"].startswith("default-src 'self'")
    assert "content-security-policy" not in visit.get("/static/vendor/studio.js?v=0123456789ab").headers


@pytest.mark.parametrize("path", ["vendor/../../pages.py", "vendor/%2e%2e/%2e%2e/pages.py", "nothing.css"])
def test_nothing_outside_of_the_folder_is_served(visit: Any, path: str) -> None:
    assert visit.get(f"/static/{path}", headers={"Accept-Encoding": "br, gzip"}).status_code == 404


@pytest.mark.parametrize(("kept", "written"), [("dark", ' data-theme="dark"'), ("light", ' data-theme="light"')])
def test_the_theme_that_a_browser_keeps_is_written_into_the_page(visit: Any, kept: str, written: str) -> None:
    visit.cookies.set("ziggurat_theme", kept)
    assert f'<html lang="en"{written}>' in visit.get("/about").text


@pytest.mark.parametrize("kept", ["", "auto", '"><script>'])
def test_any_other_theme_is_that_of_the_system(visit: Any, kept: str) -> None:
    page = visit.get("/about", headers={"Cookie": f"ziggurat_theme={kept}"}).text
    assert '<html lang="en">' in page
