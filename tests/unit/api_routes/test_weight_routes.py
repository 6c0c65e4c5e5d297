"""Routes of pretrained weights: an upload becomes weights, a training uses them, downloads run in the background."""

from __future__ import annotations

import hashlib

import pytest

from tests.unit.weights.weight_samples import add_entry, weights_file
from tests.waiting import wait_until


@pytest.fixture
def upload(ask, tmp_path):
    """Return what sends a file, and returns its source."""

    def send(path) -> str:
        answer = ask("POST", "/api/v1/uploads", params={"name": path.name}, content=path.read_bytes())
        return answer.json()["source"]

    return send


def test_an_upload_becomes_weights_and_is_removed(ask, upload, tmp_path):
    file = weights_file(tmp_path)
    known = {"network": "resnet18", "license": "MIT", "classes": ["a", "b", "c"], "mean": [0.5], "size": [32, 48]}
    made = ask("POST", "/api/v1/weights", json={"file": upload(file), **known})

    assert made.status_code == 201, made.text
    assert made.json()["reference"] == "weights:small"
    assert made.json()["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert made.json()["preprocessing"] == {"size": [32, 48], "mean": [0.5]}
    assert [each["name"] for each in ask("GET", "/api/v1/weights").json()] == ["small"]
    assert ask("GET", "/api/v1/weights/small").json() == made.json()
    again = ask("POST", "/api/v1/weights", json={"file": upload(file)})
    assert (again.status_code, again.json()["details"]["field"]) == (400, "name")
    assert ask("DELETE", "/api/v1/weights/small").status_code == 204
    assert ask("GET", "/api/v1/weights/small").status_code == 404
    assert ask("DELETE", "/api/v1/weights/small").status_code == 404


def test_bad_requests_give_one_error(ask, upload, tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"x" * 99)
    damaged = ask("POST", "/api/v1/weights", json={"file": upload(tmp_path / "bad.safetensors")})
    outside = ask("POST", "/api/v1/weights", json={"file": "/etc/hostname"})
    unknown = ask("POST", "/api/v1/weights", json={"file": upload(weights_file(tmp_path)), "shape": 1})
    network = ask("POST", "/api/v1/weights", json={"file": upload(weights_file(tmp_path)), "network": "resnet19"})

    assert (damaged.status_code, damaged.json()["error"]) == (409, "checkpoint")
    assert outside.status_code == 400
    assert unknown.status_code == 422
    assert network.status_code in (400, 422)
    assert ask("GET", "/api/v1/weights").json() == []
    for name in ("..%2F..%2Fstudio.db", ".partial-1", "%2e%2e"):
        assert ask("DELETE", f"/api/v1/weights/{name}").status_code in (404, 405), name


def test_weights_follow_no_link_out_of_allowed_folders(ask, tmp_path):
    (tmp_path / "allowed").mkdir()
    (tmp_path / "allowed" / "x.safetensors").symlink_to(weights_file(tmp_path))
    ask("PUT", "/api/v1/roots", json={"roots": [str(tmp_path / "allowed")]})
    answer = ask("POST", "/api/v1/weights", json={"file": str(tmp_path / "allowed")})

    assert answer.status_code == 400
    assert answer.json()["rule"].endswith("is in no folder that is allowed in this studio.")


def test_weights_of_a_waiting_training_are_kept(ask, studio, train):
    add_entry(studio.root)
    job = train(spec={"name": "mine", "pretrained": "weights:small"})
    (user,) = ask("GET", "/api/v1/weights/small").json()["users"]
    kept = ask("DELETE", "/api/v1/weights/small")

    assert user == {"id": job["id"], "name": "mine", "state": "queued"}
    assert (kept.status_code, kept.json()["details"]["jobs"]) == (409, [job["id"]])
    assert ask("DELETE", f"/api/v1/jobs/{job['id']}").status_code == 204
    assert ask("DELETE", "/api/v1/weights/small").status_code == 204


def test_a_training_with_unknown_weights_is_refused(ask):
    spec = {"network": "mlp", "data": "digits", "pretrained": "weights:gone"}
    answer = ask("POST", "/api/v1/trainings", json={"spec": spec})
    assert answer.json()["details"]["problems"][0]["field"] == "pretrained"
    assert ask("GET", "/api/v1/jobs").json()["total"] == 0


def test_who_may_only_look_changes_nothing(ask_as, studio):
    add_entry(studio.root)
    viewer = ask_as("viewer", "write")
    assert [each["name"] for each in viewer("GET", "/api/v1/weights").json()] == ["small"]
    assert viewer("GET", "/api/v1/weights-downloads").status_code == 200
    assert viewer("DELETE", "/api/v1/weights/small").status_code == 403
    assert viewer("POST", "/api/v1/weights-downloads/resnet18").status_code == 403
    assert viewer("POST", "/api/v1/weights", json={"file": "/x"}).status_code == 403
    assert studio.weights.folder.has("small")


def test_a_download_without_a_network_fails_in_words(ask, studio, monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    begun = ask("POST", "/api/v1/weights-downloads/mobilenet_v2")

    def failed():
        listed = {each["name"]: each for each in ask("GET", "/api/v1/weights-downloads").json()}
        found = listed["mobilenet_v2"]["download"]
        return found if found and found["state"] == "failed" else None

    assert begun.status_code == 202
    error = wait_until(failed)["error"]
    assert error["rule"].startswith("There is no connection to download.pytorch.org")
    assert "ziggurat weights add FILE --name mobilenet_v2" in error["advice"]
    assert ask("DELETE", "/api/v1/weights-downloads/mobilenet_v2").status_code == 204
    assert ask("DELETE", "/api/v1/weights-downloads/mobilenet_v2").status_code == 404
    assert ask("POST", "/api/v1/weights-downloads/resnet19").status_code in (400, 404, 422)
    assert studio.weights.all() == []
    assert [each.action for each in studio.people.audit().entries][:2] == ["weights.cancel", "weights.download"]


def test_weights_that_come_with_ziggurat_are_added_offline(ask, studio, monkeypatch):
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    first = ask("GET", "/api/v1/weights-downloads").json()[0]
    begun = ask("POST", "/api/v1/weights-downloads/convnet-fashion")
    wait_until(lambda: studio.weights.folder.has("convnet-fashion") and not studio.weights_downloads.all())
    made = ask("GET", "/api/v1/weights/convnet-fashion").json()

    assert (first["name"], first["url"], first["is_added"]) == ("convnet-fashion", "", False)
    assert first["packaged_file"].startswith("convnet-fashion-mnist-")
    assert begun.status_code == 202
    assert made["classes"][0] == "T-shirt/top"
    assert made["source_sha256"] == first["sha256"]
