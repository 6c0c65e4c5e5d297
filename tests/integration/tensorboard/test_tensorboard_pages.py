"""The real TensorBoard behind the address of a studio in its own process, asked by a program and by a browser."""

import signal
from pathlib import Path
from urllib.parse import quote

import httpx
import psutil
import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("tensorboard", reason="the extra `tensorboard` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

from bench.parts.chromium import path_of_chromium
from tests.integration.studio.studio_process import StudioProcess, tiny_training
from tests.waiting import PROCESS_S, wait_until
from ziggurat.client import Client
from ziggurat.engine.monitors.tensorboard import file_version, image_event
from ziggurat.protobuf_wire import tfrecord_frame

CHROMIUM = path_of_chromium()
EPOCHS = 3
PICTURE = b'<svg xmlns="http://www.w3.org/2000/svg"><script>document.documentElement.dataset.ran = 1</script></svg>'


class Studio:
    """A studio below a prefix, with a job that is done; its reader has a token."""

    def __init__(self, workspace):
        self.process = StudioProcess(workspace, "--prefix", "/ziggurat", "--new-token")
        self.address = self.process.address.rstrip("/")
        self.headers = {"Authorization": f"Bearer {self.process.said['token']}"}
        with Client(self.address, self.process.said["token"]) as client:
            (job,) = client.train(tiny_training(EPOCHS))
            self.job = client.wait(job["id"], timeout_s=60, every_s=0.1)
        write_picture(Path(self.job["folder"]) / "tb" / "evil")
        self.board = f"{self.address}/jobs/{self.job['id']}/tensorboard"

    def ask(self, path="/", **options):
        return httpx.get(self.board + path, timeout=60, headers={**self.headers, **options.pop("headers", {})})

    def ready(self, path="/"):
        return wait_until(lambda: (got := self.ask(path)).status_code != 503 and got, PROCESS_S)


def write_picture(folder):
    """Write an event file as a network may that does not mean well."""
    folder.mkdir()
    events = (file_version(1.0), image_event(1.0, 1, "picture", (8, 8, 3), PICTURE))
    (folder / "events.out.tfevents.1.evil").write_bytes(b"".join(tfrecord_frame(each) for each in events))


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    made = Studio(tmp_path_factory.mktemp("studio") / "workspace")
    yield made
    helpers = psutil.Process(made.process.process.pid).children(recursive=True)
    code, said = made.process.end(signal.SIGTERM)
    assert code == 0, said
    psutil.wait_procs(helpers, timeout=60)
    assert not [each for each in helpers if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def test_its_page_and_a_scalar_of_the_job_come_through(studio):
    page = studio.ready("/")
    assert page.status_code == 200
    assert "<title>TensorBoard</title>" in page.text
    points = studio.ask("/data/plugin/scalars/scalars?run=.&tag=" + quote("learning_rate", safe="")).json()
    steps = [step for _time, step, _value in points]
    assert steps[-1] == 20 * EPOCHS
    with Client(studio.address, studio.process.said["token"]) as client:
        curve = client.curves(studio.job["id"], ["learning_rate"])["learning_rate"]
    assert [round(value, 5) for _, _, value in points][-1] == round(curve["values"][-1], 5)


def test_nobody_without_a_login_comes_through(studio):
    assert httpx.get(studio.board + "/data/runs").status_code == 401
    page = httpx.get(studio.board + "/", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["location"].partition("?")[0]) == (303, "/ziggurat/login")


def test_what_a_network_wrote_is_no_page(studio):
    studio.ready("/")
    written = wait_until(
        lambda: studio.ask("/data/plugin/images/images?run=evil&tag=picture&sample=0").json(), PROCESS_S
    )
    answer = studio.ask("/data/plugin/images/individualImage?" + written[0]["query"])
    assert answer.content == PICTURE
    assert "html" not in answer.headers["content-type"]
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs Chromium; on Debian: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.mark.nightly
@pytest.mark.browser
def test_a_browser_shows_curves_and_scripts_reach_nothing_else(studio, browser):
    page = browser.new_page(extra_http_headers=studio.headers)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    studio.ready("/")
    page.goto(studio.board)
    with page.expect_response(lambda answer: "/scalars_multirun" in answer.url, timeout=60_000) as drawn:
        page.goto(studio.board + "/#scalars")
    assert (drawn.value.request.method, drawn.value.status) == ("POST", 200)
    page.get_by_text("learning_rate").first.wait_for()
    assert page.url.startswith(studio.board + "/")
    assert not [text for text in said if "Content Security Policy" in text or "Error:" in text], said
    own, other = f"{studio.board}/data/runs", f"{studio.address}/api/v1/version"
    fetch = "async (place) => { try { return (await fetch(place)).status } catch (error) { return String(error) } }"
    assert page.evaluate(fetch, own) == 200
    assert page.evaluate(fetch, other).startswith("TypeError")
    assert page.evaluate("(place) => String(window.open(place))", studio.address + "/") == "null"
    inline = "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
    assert page.evaluate(inline + " document.body.append(s); return String(window.ran) }") == "undefined"
    page.close()
