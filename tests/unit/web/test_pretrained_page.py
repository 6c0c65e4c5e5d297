"""The page of pretrained weights: what it shows, the upload form, downloads, and the form for a new model."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest

from tests.unit.web.html_page import html_of
from tests.unit.weights.weight_samples import add_entry, weights_file
from tests.unit.weights.weight_server import entry_of, serving
from tests.waiting import wait_until
from ziggurat.store import Store
from ziggurat.workspace.studio.weights_downloads import WeightsDownloads
from ziggurat.workspace.weights import Weights


@pytest.fixture
def small(studio) -> str:
    """Return the name of weights of the workspace."""
    known = {"license": "MIT <b>", "source": "https://example.org/w.pth"}
    shape = {"mean": [0.5], "color": "RGB", "size": [32, 32]}
    add_entry(studio.root, **known, classes=3, preprocessing=shape, added=5.0, added_by="ann")
    return "small"


def test_an_empty_page_leads_on(visit):
    page = visit.get("/pretrained")
    assert page.status_code == 200
    assert "No pretrained weights yet" in page.text
    assert html_of(page).has("#add-weights")
    assert html_of(page).one('#model-tabs a[aria-current="page"]').text == "Pretrained weights"
    assert html_of(visit.get("/models")).one('#model-tabs a[aria-current="page"]').text == "Models"
    for name in ("resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "convnext_tiny", "vit_small"):
        assert html_of(page).has(f"#download-{name}")
    assert "begins with <code>b0353104</code>" in page.text


def test_weights_are_shown_with_all_that_is_known(visit, studio, small, train):
    job = train(spec={"name": "mine", "pretrained": "weights:small"})
    row = html_of(visit.get("/pretrained")).one("#weights-small")
    entry = studio.weights.get(small)

    for text in ("weights:small", "not stated", "3 classes", "RGB, 32 × 32 px, mean 0.5", "MIT <b>", "by ann", "mine"):
        assert text in row.text, text
    assert entry.source_sha256[:8] in row.text
    assert f"/models/{job.id}" in [each["href"] for each in row.all("a")]
    assert "https://example.org/w.pth" in [each["href"] for each in row.all("a")]


def test_a_sent_file_is_added(visit, studio, tmp_path):
    content = weights_file(tmp_path).read_bytes()
    typed = {
        "name": "sent",
        "title": "Sent by hand",
        "network": "resnet18",
        "license": "MIT",
        "sha256": hashlib.sha256(content).hexdigest(),
        "classes": "cat\r\ndog\r\nhen",
        "mean": "0.5",
        "size": "32",
    }
    answer = visit.post("/pretrained/add", data=typed, files={"file": ("a b.safetensors", content)})
    made = studio.weights.get("sent")

    assert answer.status_code == 303, answer.text
    assert "Sent by hand was added: 5 arrays." in visit.get(answer.headers["location"]).text
    assert (made.title, made.classes, made.license) == ("Sent by hand", ("cat", "dog", "hen"), "MIT")
    assert made.preprocessing == {"size": [32, 32], "mean": [0.5]}
    assert not list(studio.uploads.folder.glob("*-*"))
    assert studio.people.audit().entries[0].action == "weights.add"


@pytest.mark.parametrize(
    ("typed", "name", "field"),
    [
        ({}, "", "file"),
        ({}, "a.txt", "file"),
        ({"name": "../up"}, "a.safetensors", "name"),
        ({"network": "resnet19"}, "a.safetensors", "network"),
        ({"sha256": "0" * 64}, "a.safetensors", "sha256"),
        ({"classes": "one"}, "a.safetensors", "classes"),
        ({"mean": "x"}, "a.safetensors", "mean"),
    ],
)
def test_a_rejected_form_keeps_what_was_typed(visit, studio, tmp_path, typed, name, field):
    content = weights_file(tmp_path).read_bytes()
    files = {"file": (name, content)} if name else {"file": ("", b"")}
    answer = visit.post("/pretrained/add", data={"license": "MIT & more", **typed}, files=files)
    page = html_of(answer)

    assert 400 <= answer.status_code < 500
    assert page.one(f"#{field}")["aria-invalid"] == "true"
    assert page.one("#license")["value"] == "MIT & more"
    assert page.has("#problems")
    assert studio.weights.all() == []
    assert not list(studio.uploads.folder.glob("*-*"))


def test_a_damaged_file_is_told_at_its_field(visit, studio):
    answer = visit.post("/pretrained/add", files={"file": ("a.safetensors", b"x" * 50)})
    assert answer.status_code == 409
    assert "is damaged, or is no file in the format safetensors:" in html_of(answer).one("#file-problem").text


def test_weights_are_deleted_unless_a_training_waits(visit, studio, small, train):
    job = train(spec={"name": "mine", "pretrained": "weights:small"})
    kept = visit.post("/pretrained/small/delete")
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job.id, ("queued",), "stopped", ended=13.0)
    gone = visit.post("/pretrained/small/delete")

    assert kept.status_code == 409
    assert "mine" in kept.text
    assert gone.status_code == 303
    assert "small was deleted." in visit.get(gone.headers["location"]).text
    assert studio.weights.all() == []
    assert visit.post("/pretrained/small/delete").status_code == 404


def test_a_viewer_sees_and_changes_nothing(visit_as, studio, small):
    viewer = visit_as("viewer")
    page = html_of(viewer.get("/pretrained"))
    assert page.has("#weights-small")
    for part in ("#add", "#delete-small", "#train-small", "#download-resnet18"):
        assert not page.has(part), part
    for path in ("small/delete", "resnet18/download", "resnet18/cancel", "add"):
        assert viewer.post(f"/pretrained/{path}").status_code == 403, path


def test_weights_that_come_with_ziggurat_are_added_at_once(visit, studio, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    row = html_of(visit.get("/pretrained")).one("#public-convnet-fashion")
    assert row.one("#download-convnet-fashion").text.startswith("Add")
    assert "comes with Ziggurat, no download needed" in row.text
    assert "Sneaker, Bag, Ankle boot" in row.text
    assert not row.has("a")
    assert visit.post("/pretrained/convnet-fashion/download").status_code == 303
    wait_until(lambda: studio.weights.folder.has("convnet-fashion") and not studio.weights_downloads.all())
    page = html_of(visit.get("/pretrained"))

    assert page.one("#public-convnet-fashion")["data-state"] == "added"
    assert "10 classes" in page.one("#weights-convnet-fashion").text
    assert page.has("#train-convnet-fashion")
    assert page.text.index("Small convolutional network") < page.text.index("ResNet-18 on")


def test_a_download_that_fails_is_told_in_the_list(visit, studio, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    assert visit.post("/pretrained/resnet50/download").status_code == 303
    wait_until(lambda: studio.weights_downloads.all() and studio.weights_downloads.all()[0].state == "failed")
    page = html_of(visit.part("/pretrained", "weights-lists"))
    assert "There is no connection to download.pytorch.org" in page.one("#failed-resnet50").text
    assert page.one("#download-resnet50").text.startswith("Try again")
    assert visit.post("/pretrained/resnet50/cancel").status_code == 303
    assert not html_of(visit.get("/pretrained")).has("#failed-resnet50")
    assert visit.post("/pretrained/resnet50/cancel").status_code == 404
    assert visit.post("/pretrained/resnet19/download").status_code in (400, 404, 422)


def test_a_running_download_shows_its_progress(visit, studio, tmp_path):
    with serving() as server:
        content = weights_file(tmp_path, "served.safetensors").read_bytes()
        entries = [entry_of(server, content), entry_of(server, content, name="second")]
        settings = dataclasses.replace(studio.settings, source_hosts="127.0.0.1")
        studio.weights = Weights(settings, studio.tasks, studio.jobs, public=entries)
        studio.weights_downloads = WeightsDownloads(studio.weights, studio.tell_of_weights, studio.clock)
        server.slow.clear()
        for name in ("resnet18", "second"):
            assert visit.post(f"/pretrained/{name}/download").status_code == 303
        wait_until(lambda: studio.weights_downloads.all()[0].received_bytes)
        lists = html_of(visit.part("/pretrained", "weights-lists"))
        row = lists.one("#public-resnet18")

        assert (row["data-state"], lists.one("#public-second")["data-state"]) == ("running", "waiting")
        assert row.one("progress")["max"] == str(len(content))
        assert row.one("progress")["value"] == str(len(content) // 2)
        assert "every 4s" in lists.one("#weights-lists")["hx-trigger"]
        assert visit.post("/pretrained/second/cancel").status_code == 303
        server.slow.set()
        wait_until(lambda: not studio.weights_downloads.all())
    page = html_of(visit.get("/pretrained"))
    assert page.has("#weights-resnet18")
    assert not page.has("#weights-second")
    assert page.one("#public-resnet18")["data-state"] == "added"
    assert "every 4s" not in page.one("#weights-lists")["hx-trigger"]


def test_the_form_for_a_new_model_offers_weights(visit, studio):
    add_entry(studio.root, network="resnet18")
    page = html_of(visit.get("/models/new?weights=small"))
    assert page.has("#weights-pretrained[checked]")
    assert page.has('#pretrained_weights option[value="small"][selected]')
    assert page.has('input[name="standard_network"][value="tensorflow/resnet18"][checked]')
    fields = {"method": "standard", "standard_network": "null/mlp", "dataset": "digits", "weights": "pretrained"}
    empty = html_of(visit.post("/models/new", data={**fields, "epochs": "2"}))
    other = visit.post("/models/new", data={**fields, "epochs": "2", "pretrained_weights": "small"})

    assert "Choose pretrained weights" in empty.one("#pretrained_weights-problem").text
    assert "fit the network that they are of" in html_of(other).one("#pretrained_weights-problem").text
    assert studio.jobs.totals().kinds == {}


def test_a_training_from_the_form_starts_from_weights(visit, studio):
    add_entry(studio.root, "plain", classes=10)
    fields = {"method": "standard", "standard_network": "null/mlp", "dataset": "digits", "epochs": "2"}
    answer = visit.post("/models/new", data={**fields, "weights": "pretrained", "pretrained_weights": "plain"})
    assert answer.status_code == 303, answer.text
    job = studio.jobs.get(answer.headers["location"].rpartition("/")[2].partition("?")[0])
    clone = html_of(visit.get(f"/models/new?clone={job.id}"))

    assert job.spec["pretrained"] == "weights:plain"
    assert clone.has("#weights-pretrained[checked]")
    assert clone.has('#pretrained_weights option[value="plain"][selected]')
    assert clone.one("#pretrained")["value"] == ""
