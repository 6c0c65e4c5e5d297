"""The routes of published models, exports that nobody waits for, and the limits of the studio."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ziggurat.store import Store


@pytest.fixture
def model(studio, train) -> Iterator[str]:
    """Return the id of a training that is done and has a checkpoint."""
    job = train(spec={"name": "net"})
    (Path(job["folder"]) / "checkpoints" / "step-00000004").mkdir(parents=True)
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job["id"], ("queued",), "running", started=10.0)
        assert store.jobs.move(job["id"], ("running",), "done", ended=13.0)
    return job["id"]


def test_a_model_is_published_listed_and_withdrawn(ask, model):
    made = ask("POST", "/api/v1/pretrained", json={"job": model, "name": "net/1", "notes": "good"})
    again = ask("POST", "/api/v1/pretrained", json={"job": model, "name": "net/1"})
    kept = ask("DELETE", f"/api/v1/jobs/{model}")

    assert made.status_code == 201
    assert {name: made.json()[name] for name in ("name", "job", "checkpoint", "notes", "is_whole")} == {
        "name": "net/1",
        "job": model,
        "checkpoint": "step-00000004",
        "notes": "good",
        "is_whole": True,
    }
    assert (again.status_code, kept.status_code) == (400, 409)
    assert kept.json()["details"]["published"] == ["net/1"]
    assert [each["name"] for each in ask("GET", "/api/v1/pretrained").json()] == ["net/1"]
    assert ask("DELETE", "/api/v1/pretrained/net%2F1").status_code == 204
    assert ask("DELETE", "/api/v1/pretrained/net%2F1").status_code == 404
    assert ask("DELETE", f"/api/v1/jobs/{model}").status_code == 204


def test_a_framework_without_formats_exports_nothing(ask, model):
    answer = ask("POST", f"/api/v1/models/{model}/exports", json={"format": "onnx"})

    assert answer.status_code == 409
    assert answer.json()["rule"].startswith("Models of the backend `")
    assert ask("GET", f"/api/v1/models/{model}/exports").json() == []
    assert ask("GET", f"/api/v1/models/{model}/exports/onnx-step-00000004-inside").status_code == 404


def test_limits_are_chosen_and_forgotten(ask):
    before = {each["name"]: each for each in ask("GET", "/api/v1/limits").json()}
    chosen = ask("PUT", "/api/v1/limits", json={"values": {"cpu_slots": 7}})
    wrong = ask("PUT", "/api/v1/limits", json={"values": {"cpu_slots": 0, "dataset_slots": 2}})
    unknown = ask("PUT", "/api/v1/limits", json={"values": {"cpu_slot": 1}})

    assert {each["name"]: each["value"] for each in chosen.json()}["cpu_slots"] == 7
    assert wrong.status_code == 422
    assert wrong.json()["details"]["field"] == "cpu_slots"
    assert "Did you mean `cpu_slots`?" in unknown.json()["advice"]
    forgotten = ask("PUT", "/api/v1/limits", json={"values": {"cpu_slots": None}})
    assert {each["name"]: each for each in forgotten.json()} == before
