"""The page on which a model is tried, over a real studio: what it says is what the API says of the same images."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from starlette.testclient import TestClient

from tests.unit.web.html_page import html_of
from ziggurat.app import create_studio


def shares(answer: Any) -> list[tuple[str, float]]:
    """Return class and percent of each bar of a prediction."""
    bars = html_of(answer).all(".said li")
    return [(bar.one(".name").text, float(bar.one(".share").text.split()[0])) for bar in bars]


@pytest.fixture(scope="module")
def browser(studio: Any) -> Iterator[TestClient]:
    """Return what asks as a browser does; what is asked for is not followed."""
    headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    app = create_studio(studio)
    client = TestClient(
        app, "http://127.0.0.1:5000", headers=headers, client=("127.0.0.1", 4000), follow_redirects=False
    )
    yield client
    client.close()


@pytest.fixture(scope="module")
def picture(source: Path) -> Path:
    return sorted((source / "light").iterdir())[3]


def words(text: str) -> str:
    """Return what a person reads."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def problems(text: str) -> list[str]:
    """Return what is wrong with fields."""
    return re.findall(r'<p class="problem"[^>]*>(.*?)</p>', text)


def test_one_picture_is_answered_as_the_api_does(
    browser: TestClient, client: Any, made: dict[str, str], picture: Path
) -> None:
    place = f"/models/{made['strong']}/test"
    assert html_of(browser.get(place)).has("#test-one .empty")
    answer = browser.post(f"{place}/one", data={"top": "2"}, files={"picture": (picture.name, picture.read_bytes())})

    wanted = client.models.predict(made["strong"], [picture], top=2)["predictions"][0]["classes"]
    assert answer.status_code == 200
    assert shares(answer) == [(each["class"], pytest.approx(100 * each["probability"], abs=0.06)) for each in wanted]
    pictures = re.findall(rf'src="({place}/[^"]+)"', answer.text)
    assert len(pictures) == 2
    for address in pictures:
        found = browser.get(address)
        assert (found.status_code, found.headers["content-type"]) == (200, "image/png")
        assert cv2.imdecode(np.frombuffer(found.content, np.uint8), cv2.IMREAD_COLOR) is not None
    assert browser.get(f"{place}/pictures/nothing/0").status_code == 404


def test_the_last_picture_is_asked_about_again_with_its_layers(
    browser: TestClient, client: Any, made: dict[str, str], picture: Path
) -> None:
    place = f"/models/{made['strong']}/test"
    first = browser.post(f"{place}/one", data={"path": str(picture)})
    (kept,) = re.findall(r'name="kept" value="([^"]+)"', first.text)
    headers = {"HX-Request": "true", "HX-Target": "section#test-one"}
    answer = browser.post(f"{place}/one", data={"kept": kept, "look": "layers"}, headers=headers)

    found = client.models.activations(made["strong"], picture)
    assert answer.status_code == 200
    assert "<html" not in answer.text
    assert f"{found['parameters']:,} parameters in total" in words(answer.text)
    assert answer.text.count('<li class="layer">') == len(found["activations"]) + len(found["weights"])
    for each in found["weights"]:
        assert f"<h4>{each['name']}</h4>" in answer.text
        assert f"<dd>{' × '.join(map(str, each['shape']))}</dd>" in answer.text
    for address in re.findall(rf'src="({place}/pictures/[^"]+)"', answer.text):
        assert browser.get(address).status_code == 200


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ({}, "Choose an image, or enter a path or URL (received: "),
        ({"kept": "gone"}, "one that is not kept any more"),
        ({"path": "/etc/passwd"}, "is in no folder that is allowed in this studio"),
        (
            {"path": "", "top": "0", "kept": "x"},
            "<code>0</code> is not a whole number from 1 to 100, as <code>top</code> must be.",
        ),
        ({"device": "../gpu"}, "<code>device</code> is <code>../gpu</code>; it must be <code>cpu</code> or a number."),
        ({"checkpoint": "nope", "path": "PICTURE"}, "There is no checkpoint <code>nope</code>"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_stays(
    browser: TestClient, made: dict[str, str], picture: Path, form: dict[str, str], wrong: str
) -> None:
    sent = {name: str(picture) if text == "PICTURE" else text for name, text in form.items()}
    answer = browser.post(f"/models/{made['weak']}/test/one", data=sent)

    assert answer.status_code in (400, 404)
    assert wrong in answer.text
    if sent.get("path"):
        assert f'value="{sent["path"]}"' in answer.text


def test_a_file_that_is_no_picture_is_named(browser: TestClient, made: dict[str, str]) -> None:
    answer = browser.post(f"/models/{made['weak']}/test/one", files={"picture": ("notes.txt", b"not an image")})

    assert answer.status_code == 422
    assert "notes.txt" in words(answer.text)


def test_several_pictures_are_answered_at_once(browser: TestClient, made: dict[str, str], source: Path) -> None:
    chosen = [*sorted((source / "dark").iterdir())[:2], *sorted((source / "light").iterdir())[:1]]
    files = [("pictures", (path.name, path.read_bytes())) for path in chosen] + [("pictures", ("bad.png", b"x"))]
    answer = browser.post(f"/models/{made['strong']}/test/few", files=files)

    assert [each.text for each in html_of(answer).all(".few .file")] == [path.name for path in chosen]
    assert [each.text for each in html_of(answer).all(".note.warning li code")] == ["bad.png"]
    none = browser.post(f"/models/{made['strong']}/test/few", data={"few-checkpoint": ""})
    assert none.status_code == 400
    assert problems(none.text) == ["0 images are sent; 1 to 100 are predicted at once."]


def test_a_short_video_is_predicted_frame_by_frame(
    browser: TestClient, client: Any, made: dict[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "clip.avi"
    video = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 10, (32, 32))
    for number in range(20):
        video.write(np.full((32, 32, 3), 240 if number >= 10 else 15, np.uint8))
    video.release()
    files = [("pictures", ("clip.avi", path.read_bytes(), "video/x-msvideo"))]
    answer = browser.post(f"/models/{made['strong']}/test/few", files=files)
    names = [f"clip.avi 0:0{second}" for second in ("0.00", "0.50", "1.00", "1.50")]
    assert [each.text for each in html_of(answer).all(".few .file")] == names

    found = client.models.predict(made["strong"], [path])["predictions"]
    assert [each["file"].rpartition("/")[2] for each in found] == names
    assert [each["classes"][0]["class"] for each in found] == ["dark", "dark", "light", "light"]

    broken = [("pictures", ("clip.mp4", b"#EXTM3U", "video/mp4"))]
    refused = browser.post(f"/models/{made['strong']}/test/few", files=broken)
    assert refused.status_code == 422
    assert "clip.mp4" in words(refused.text)
    assert "it is no MPEG-4" in words(refused.text)


def test_an_archive_with_its_list_becomes_a_job_with_a_truth(
    browser: TestClient, client: Any, made: dict[str, str], source: Path
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name in ("dark", "light"):
            path = sorted((source / name).iterdir())[0]
            file.writestr(f"set/{name}.png", path.read_bytes())
        file.writestr("set/list.txt", "dark.png dark\nlight.png light\n")
    form = {"source": "", "top": "2", "limit": ""}
    answer = browser.post(
        f"/models/{made['strong']}/test/many", data=form, files={"files": ("set.zip", archive.getvalue())}
    )

    assert answer.status_code == 303, problems(answer.text)
    job_id = answer.headers["location"].rpartition("/")[2]
    client.wait(job_id, every_s=0.1)
    summary = client.evaluations.summary(job_id)
    assert (summary["count"], summary["skipped"]) == (2, 0)
    assert sum(map(sum, summary["confusion"])) == 2
    text = browser.get(f"/evaluations/{job_id}?show=hardest").text
    assert f"{100 * summary['accuracy']:.1f}" in html_of(text).one(".metrics .large").text
    (row, *_) = re.findall(rf'src="(/api/v1/evaluations/{job_id}/pictures/[^"]+)"', text)
    assert browser.get(row.replace("&amp;", "&")).status_code == 200


@pytest.mark.parametrize(
    ("form", "wrong"),
    [
        ({"source": ""}, "Send files, or name a folder, an archive or a list (received: nothing)."),
        ({"source": "/etc"}, "<code>/etc</code> is in no folder that is allowed in this studio"),
        (
            {"source": "SOURCE", "top": "6"},
            "<code>6</code> is not a whole number from 1 to 5, as <code>top</code> must be.",
        ),
        ({"source": "SOURCE", "limit": "-1"}, "<code>-1</code> is not a whole number from 0 to"),
        (
            {"source": "SOURCE", "image_folder": "/etc"},
            "<code>/etc</code> is in no folder that is allowed in this studio",
        ),
    ],
)
def test_a_job_that_cannot_be_is_not_made(
    browser: TestClient, made: dict[str, str], source: Path, form: dict[str, str], wrong: str
) -> None:
    sent = {name: str(source) if text == "SOURCE" else text for name, text in form.items()}
    answer = browser.post(f"/models/{made['weak']}/test/many", data=sent)

    assert answer.status_code == 400
    (said,) = problems(answer.text)
    assert said.startswith(wrong)
    assert f'value="{sent["source"]}"' in answer.text


def test_a_split_is_measured_and_its_openings_are_said(
    browser: TestClient, client: Any, made: dict[str, str], evaluated: dict[str, str]
) -> None:
    place = f"/models/{made['weak']}/test"
    text = browser.get(f"{place}?tab=splits").text
    openings = client.datasets.describe(made["dataset"])["test_openings"]
    times = "once" if openings == 1 else f"{openings} times"
    assert f"Opened {times} so far." in text
    assert f'href="/evaluations/{evaluated["weak"]}"' in text
    accuracy = client.evaluations.summary(evaluated["weak"])["accuracy"]
    assert re.search(rf'{100 * accuracy:.1f}\s% <span class="soft">Accuracy</span>', text)

    answer = browser.post(f"{place}/split", data={"split": "val", "checkpoint": "latest"})

    job = client.wait(answer.headers["location"].rpartition("/")[2], every_s=0.1)
    assert (job["kind"], job["spec"]["split"], job["spec"]["checkpoint"]) == ("evaluate", "val", "latest")
    refused = browser.post(f"{place}/split", data={"split": "all"})
    assert refused.status_code == 400
    assert "is not a split: these are <code>train</code>, <code>val</code> and <code>test</code>." in refused.text


def test_a_job_of_another_kind_is_sent_on(browser: TestClient, made: dict[str, str]) -> None:
    answer = browser.get(f"/models/{made['dataset']}/test")

    assert answer.headers["location"] == f"/jobs/{made['dataset']}"
