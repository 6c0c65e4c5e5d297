"""An image that is named by its address, through every door: the page, REST, client, shell, and DIGITS's routes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import httpx
import pytest
from starlette.testclient import TestClient

from tests.unit.studio_shell.picture_server import PictureServer, serving_pictures
from tests.unit.web.html_page import html_of
from ziggurat.app import create_studio
from ziggurat.errors import DataError, UsageError

PRIVATE = "An image is fetched from a public address"
CLASSIFY = "/models/images/classification/classify_one.json"


@pytest.fixture
def server() -> Iterator[PictureServer]:
    with serving_pictures() as running:
        yield running


@pytest.fixture
def browser(studio: Any) -> Iterator[TestClient]:
    headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    with_page = TestClient(create_studio(studio), "http://127.0.0.1:5000", headers=headers, client=("127.0.0.1", 4000))
    yield with_page
    with_page.close()


@pytest.fixture
def said(client: Any, made: dict[str, str], server: PictureServer, tmp_path: Path) -> list[dict[str, Any]]:
    """Return what the model says of the image where it is sent."""
    file = tmp_path / "cat.png"
    file.write_bytes(httpx.get(server.url("/cat.png")).content)
    assert cv2.imread(str(file)) is not None
    server.asked.clear()
    return client.models.predict(made["strong"], [file])["predictions"][0]["classes"]


def test_page(browser: TestClient, made: dict[str, str], server: PictureServer, said: list[dict[str, Any]]) -> None:
    place = f"/models/{made['strong']}/test"
    assert re.search(r'<input id="url" name="url" type="url"', browser.get(place).text)
    assert server.asked == []
    answer = browser.post(f"{place}/one", data={"url": server.url("/cat.png?key=1"), "path": ""})

    assert answer.status_code == 200
    assert html_of(answer).all("#test-one figcaption")[0].text == server.url("/cat.png")
    assert [each.text for each in html_of(answer).all(".said .name")] == [each["class"] for each in said]
    assert f'value="{server.url("/cat.png?key=1")}"' in answer.text
    (kept,) = re.findall(r'name="kept" value="([^"]+)"', answer.text)
    layers = browser.post(f"{place}/one", data={"kept": kept, "look": "layers", "url": ""})
    assert (layers.status_code, len(server.asked)) == (200, 1)


@pytest.mark.parametrize(
    ("host", "path", "status", "wrong"),
    [
        ("localhost", "/cat.png", 400, PRIVATE),
        ("127.0.0.1", "/gone.png", 422, "404 Not Found"),
        ("127.0.0.1", "/page.html", 422, "is no image that can be read"),
    ],
)
def test_page_says_at_its_field_what_is_wrong(
    browser: TestClient, made: dict[str, str], server: PictureServer, host: str, path: str, status: int, wrong: str
) -> None:
    url = server.url(path, host)
    answer = browser.post(f"/models/{made['strong']}/test/one", data={"url": url})

    assert answer.status_code == status
    assert f'value="{url}"' in answer.text
    assert wrong in re.findall(r'<p class="problem" id="url-problem"[^>]*>(.*?)</p>', answer.text)[0]


def test_page_forgets_credentials(browser: TestClient, made: dict[str, str]) -> None:
    answer = browser.post(f"/models/{made['strong']}/test/one", data={"url": "http://anna:hunter2@127.0.0.1/cat.png"})

    assert answer.status_code == 400
    assert "holds no name and no password" in answer.text
    assert "hunter2" not in answer.text


def test_client(client: Any, made: dict[str, str], server: PictureServer, said: list[dict[str, Any]]) -> None:
    (found,) = client.models.predict(made["strong"], url=server.url("/cat.png"))["predictions"]
    assert (found["file"], found["classes"]) == (server.url("/cat.png"), said)

    with pytest.raises(UsageError, match=PRIVATE):
        client.models.predict(made["strong"], url=server.url("/cat.png", "localhost"))
    with pytest.raises(DataError, match="404 Not Found"):
        client.models.predict(made["strong"], url=server.url("/gone.png"))


def test_rest(address: str, made: dict[str, str], server: PictureServer) -> None:
    place, url = f"{address}/api/v1/models/{made['strong']}", server.url("/cat.png")
    assert httpx.post(f"{place}/activations", data={"url": url}).json()["activations"]

    refused = httpx.post(f"{place}/predict", data={"url": "file:///etc/passwd"})
    assert refused.status_code == 400
    assert refused.json()["rule"] == "The address of an image begins with http:// or https://."
    assert {"received", "advice"} <= refused.json().keys()
    assert "a `url`" in httpx.post(f"{place}/predict").json()["rule"]


@pytest.mark.nightly
def test_shell(address: str, made: dict[str, str], server: PictureServer, said: list[dict[str, Any]]) -> None:
    def predict(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ziggurat", "--server", address, "--json", "job", "predict", made["strong"]]
        return subprocess.run([*command, *words], capture_output=True, text=True, timeout=60, check=False)

    found = predict("--url", server.url("/cat.png"))
    assert json.loads(found.stdout)["predictions"][0]["classes"] == said, found.stderr
    assert json.loads(predict().stdout)["rule"] == "No image is named."
    assert predict("--url", server.url("/cat.png", "localhost")).returncode == UsageError.exit_code


@pytest.mark.parametrize("field", ["image_url", "image_path"])
def test_83_digits_takes_an_address(
    address: str, made: dict[str, str], server: PictureServer, said: list[dict[str, Any]], field: str
) -> None:
    form = {"job_id": made["strong"], field: server.url("/cat.png")}
    found = httpx.post(address + CLASSIFY, data=form).json()["predictions"]
    assert found == [[each["class"], round(100 * each["probability"], 2)] for each in said]

    refused = httpx.post(address + CLASSIFY, data={**form, field: server.url("/cat.png", "localhost")})
    assert (refused.status_code, PRIVATE in refused.json()["rule"]) == (400, True)
