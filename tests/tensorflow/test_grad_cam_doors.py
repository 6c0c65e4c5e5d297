"""Grad-CAM by every door of one studio: the page, the REST API, the client and the shell say the same."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

from tensorflow_jobs import digit_pictures, save_pictures

from tests.integration.studio.studio_process import StudioProcess
from ziggurat.cli.main import main
from ziggurat.client import Client
from ziggurat.errors import ConfigurationError, DataError, UsageError


@dataclass(frozen=True)
class Place:
    """A studio with a LeNet, a network without a framework, and images.

    Args:
        address: of the studio.
        client: of it.
        lenet: id of a training.
        null: id of a training.
        pictures: files.
    """

    address: str
    client: Client
    lenet: str
    null: str
    pictures: list[Path]

    def post(self, model: str, files: list[Path], **form: Any) -> httpx.Response:
        """Ask the page about one image, as a browser without scripts does."""
        sent = [("picture", (each.name, each.read_bytes())) for each in files]
        headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
        return httpx.post(
            f"{self.address}/models/{model}/test/one", data=form, files=sent or None, headers=headers, timeout=200
        )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("grad-cam")
    process = StudioProcess(folder / "workspace")
    address = process.address.rstrip("/")
    spec = {"data": "digits", "epochs": 1, "steps_per_epoch": 20, "batch_size": 32, "seed": 3}
    pictures = [Path(each) for each in save_pictures(folder, digit_pictures()[0][:2])]
    try:
        with Client(address) as client:
            (lenet,) = client.train({**spec, "name": "lenet", "backend": "tensorflow", "network": "lenet"})
            (null,) = client.train({**spec, "name": "mlp", "backend": "null", "network": "mlp"})
            for job in (lenet, null):
                client.wait(job["id"], every_s=0.2, timeout_s=300)
            yield Place(address, client, lenet["id"], null["id"], pictures)
    finally:
        process.end(15)


def size_of(png: bytes) -> tuple[int, ...]:
    """Return height and width of a PNG file."""
    shown = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR)
    assert shown is not None
    return shown.shape[:2]


@pytest.mark.nightly
def test_the_api_the_client_and_the_shell_say_the_same(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture, asked = place.pictures[0], {"grad_cam": "true", "grad_cam_class": "3", "grad_cam_layer": "pool1"}
    sent = {"files": (picture.name, picture.read_bytes())}
    rest = httpx.post(f"{place.address}/api/v1/models/{place.lenet}/predict", data=asked, files=sent, timeout=200)
    by_client = place.client.models.grad_cam(place.lenet, picture, class_name=3, layer="pool1")
    target = tmp_path / "heat.png"
    shell = ["job", "predict", place.lenet, str(picture), "--server", place.address, "--json"]
    shell += ["--grad-cam", str(target), "--grad-cam-class", "3", "--grad-cam-layer", "pool1"]
    assert main(shell) == 0

    found = rest.json()["grad_cam"]
    assert rest.json()["predictions"][0]["classes"]
    assert found == by_client == json.loads(capsys.readouterr().out)["grad_cam"]
    assert (found["class"], found["number"], found["layer"]) == ("3", 3, "pool1")
    assert found["layers"] == ["conv1", "pool1", "conv2", "pool2"]
    assert np.shape(found["heat"]) == (12, 12)
    assert 0 <= np.min(found["heat"]) <= np.max(found["heat"]) <= 1
    assert target.read_bytes() == base64.b64decode(found["png"])
    assert size_of(target.read_bytes()) == size_of(base64.b64decode(found["heat_png"])) == (280, 280)

    likeliest = place.client.models.predict(place.lenet, [picture], grad_cam=True)
    assert likeliest["grad_cam"]["class"] == likeliest["predictions"][0]["classes"][0]["class"]
    assert likeliest["grad_cam"]["layer"] == "conv2"
    assert "grad_cam" not in place.client.models.predict(place.lenet, [picture])


def test_what_cannot_be_told_is_said_once_and_clearly(place: Place, tmp_path: Path) -> None:
    ask, picture = place.client.models.grad_cam, place.pictures[0]
    with pytest.raises(ConfigurationError, match=r"`ten` is not a known class of this network\. Known: 0, 1, 2"):
        ask(place.lenet, picture, class_name="ten")
    with pytest.raises(ConfigurationError, match="`fc1` is not a known layer with maps"):
        ask(place.lenet, picture, layer="fc1")
    with pytest.raises(UsageError, match=r"TensorFlow or PyTorch backend \(received: a network of the backend null"):
        ask(place.null, picture)
    with pytest.raises(UsageError, match=r"Grad-CAM is of one image \(received: 2 images"):
        place.client.models.predict(place.lenet, place.pictures, grad_cam=True)
    (tmp_path / "notes.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"notes\.png"):
        ask(place.lenet, tmp_path / "notes.png")
    unread = place.client.models.predict(place.lenet, [tmp_path / "notes.png"], grad_cam=True)
    assert (unread["predictions"], len(unread["failures"]), unread["grad_cam"]) == ([], 1, None)
    assert main(["job", "predict", place.lenet, str(picture), "--grad-cam-layer", "conv2"]) == UsageError.exit_code


def test_the_page_shows_it_and_asks_again_without_a_script(place: Place) -> None:
    first = place.post(place.lenet, place.pictures[:1])
    assert "Show Grad-CAM" in first.text
    (kept,) = re.findall(r'name="kept" value="([^"]+)"', first.text)
    (name,) = re.findall(r'<span class="name cut" title="(.*?)"', first.text)[:1]

    shown = place.post(place.lenet, [], kept=kept, look="grad-cam")
    other = place.post(place.lenet, [], kept=kept, look="grad-cam", top="2", grad_cam_class="4", grad_cam_layer="conv1")

    assert (shown.status_code, other.status_code) == (200, 200)
    assert f"<h3>Grad-CAM for {name}</h3>" in shown.text
    assert "at the layer <code>conv2</code>, 8 × 8 places" in shown.text
    assert "<h3>Grad-CAM for 4</h3>" in other.text
    assert "at the layer <code>conv1</code>, 24 × 24 places" in other.text
    chosen = re.findall(r'<option value="([^"]+)" selected>', other.text)
    assert chosen[-2:] == ["4", "conv1"]
    assert re.findall(r'<select id="grad_cam_class".*?</select>', other.text, re.S)[0].count("<option") == 10
    assert 'id="heat-colours"' in other.text
    for address in re.findall(rf'src="(/models/{place.lenet}/test/pictures/[^"]+)"', other.text):
        assert httpx.get(place.address + address).headers["content-type"] == "image/png"


def test_the_page_says_what_it_cannot_tell_beside_what_it_can(place: Place) -> None:
    plain = place.post(place.null, place.pictures[:1])
    assert "Grad-CAM" not in plain.text

    refused = place.post(place.null, place.pictures[:1], look="grad-cam")
    unknown = place.post(place.lenet, place.pictures[:1], look="grad-cam", grad_cam_layer="fc1")

    assert (refused.status_code, unknown.status_code) == (400, 422)
    assert "Grad-CAM needs a network that gives gradients" in refused.text
    assert "is not a known layer with maps" in unknown.text
    for answer in (refused, unknown):
        assert answer.text.count('role="alert"') == 1
        assert '<span class="share">' in answer.text
