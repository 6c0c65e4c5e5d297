"""The benchmark of pages measures what it says, on a page that also asks for parts by itself."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import ziggurat.web
from bench.parts.chromium import Chromium, chromium
from bench.parts.pages_browser import Tab
from bench.parts.pages_floor import floor
from bench.parts.pages_report import PagesReport
from bench.parts.pages_scenes import Figures, Scene, measure

SCRIPT = Path(ziggurat.web.__file__).parent / "static/vendor/studio.js"
STRIP = '<p id="strip" hx-get="/strip" hx-trigger="click from:#next" hx-swap="outerHTML">The machine</p>'
NEXT = '<p class="pager">Page 2</p>' + 500 * "<p>A row of the table</p>"
PAGE = f"""<!doctype html><html lang="en"><head><script type="module" src="/studio.js"></script></head><body>
{STRIP}<main><h1>Jobs</h1><div id="results"><p class="pager">Page 1</p></div>
<button id="next" hx-get="/next" hx-target="#results">Next</button></main></body></html>"""


class TinyStudio(http.server.BaseHTTPRequestHandler):
    """Answers for the next page after the strip, which is asked for at the same time."""

    strip_answered = threading.Event()

    def do_GET(self) -> None:
        if self.path == "/":
            self.strip_answered.clear()
        if self.path == "/next":
            self.strip_answered.wait(60)
        known = {
            "/": (PAGE, "text/html"),
            "/datasets": (PAGE, "text/html"),
            "/strip": (STRIP, "text/html"),
            "/next": (NEXT, "text/html"),
        }
        known["/studio.js"] = (SCRIPT.read_text(encoding="utf-8"), "text/javascript")
        content, kind = known.get(self.path, ("", "text/plain"))
        self.send_response(200 if content else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content.encode())))
        self.end_headers()
        self.wfile.write(content.encode())
        if self.path == "/strip":
            self.strip_answered.set()

    def log_message(self, *_values: object) -> None:
        pass


@pytest.fixture(name="opened")
def opened_browser() -> Iterator[Chromium]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def address() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), TinyStudio) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.nightly
def test_the_answer_of_an_act_is_what_changed_the_page(opened: Chromium, address: str) -> None:
    tab = Tab(opened)
    tab.visit(address)
    assert tab.content() == PAGE
    took = tab.act("#next", None, "#results .pager")
    assert tab.content() == NEXT
    assert took.transferred_bytes > len(NEXT)
    tab.close()


@pytest.mark.nightly
def test_pages_and_acts_have_figures_beside_the_floor(opened: Chromium, address: str) -> None:
    page = Scene(name="jobs", path="/")
    act = Scene(name="jobs: next page", path="/", act="#next", changes="#results .pager")
    figures = {scene.name: Figures(name=scene.name) for scene in (page, act)}
    with floor() as beside:
        for scene in (page, act):
            measure(opened, address, beside, scene, figures[scene.name], 1)
    report = PagesReport("Pages", pages=list(figures.values()))
    of_page, of_act = report.as_dict()["pages"]
    assert (of_page["page_bytes"], of_act["page_bytes"]) == (len(PAGE), len(NEXT))
    assert ("cold" in of_page, "cold" in of_act) == (True, False)
    for each, sides in (
        (of_page, ("warm", "floor_warm", "followed", "floor_followed")),
        (of_act, ("warm", "floor_warm")),
    ):
        for side in sides:
            assert 0 < each[side]["median_interactive_ms"] <= each[side]["p95_interactive_ms"]
        assert each["floor_warm"]["median_transferred_bytes"] > 0
    assert report.text().count("\n| ") == 1 + 2
