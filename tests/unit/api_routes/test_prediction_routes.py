"""Predictions for rows and texts in JSON, and images as a form, on one route."""

from __future__ import annotations

import base64
from typing import Any

import pytest

PLACE = "/api/v1/models/20260101-000000-0001/predict"


@pytest.fixture
def asked(studio: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what was asked of the models, in turn."""
    found: list[Any] = []

    def answer(job_id: str, *inputs: Any, **options: Any) -> dict[str, Any]:
        found.append((job_id, *inputs, options))
        return {"predictions": [{"file": "1", "picture": b"PNG"}], "failures": []}

    monkeypatch.setattr(studio.models, "predict_values", answer)
    monkeypatch.setattr(studio.models, "predict", answer)
    return found


def test_rows_are_asked_in_json(ask: Any, asked: list[Any]) -> None:
    rows = [{"size": 70.5, "district": "north", "garden": None}, [1, "south", True]]
    answer = ask("POST", PLACE, json={"rows": rows, "top": 3, "checkpoint": "best", "pictures": True})

    assert answer.status_code == 200, answer.text
    options = {"rows": rows, "texts": [], "top": 3, "checkpoint": "best", "device": "", "drawn": True}
    assert asked == [("20260101-000000-0001", options)]
    assert answer.json()["predictions"][0]["picture"] == base64.b64encode(b"PNG").decode()


def test_images_are_still_a_form(ask: Any, asked: list[Any]) -> None:
    answer = ask("POST", PLACE, files=[("files", ("a.png", b"content"))], data={"pictures": "true"})

    assert answer.status_code == 200, answer.text
    assert asked[0][1] == [("a.png", b"content")]
    assert asked[0][2]["drawn"] is True


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"rows": 5}, 422, "rows"),
        ({"rows": ["x"]}, 422, "rows"),
        ({"texts": [1]}, 422, "texts"),
        ({"row": []}, 422, "row"),
        ({"top": 0, "texts": ["x"]}, 422, "top"),
        ({}, 400, "Neither `rows` nor `texts` are given to predict for."),
        ({"rows": [[1]], "texts": ["x"]}, 400, "Both `rows` and `texts` are given"),
        ({"texts": ["x"] * 1001}, 400, "1001 rows or texts are given; at most 1000"),
    ],
)
def test_what_cannot_be_predicted_for_is_said(ask: Any, body: Any, status: int, words: str) -> None:
    answer = ask("POST", PLACE, json=body)
    assert (answer.status_code, words in answer.text) == (status, True), answer.text


def test_broken_json_and_an_empty_form_are_said(ask: Any) -> None:
    assert "A request has images" in ask("POST", PLACE, data={"top": "5"}).text
    ask.headers["Content-Type"] = "application/json"
    assert ask("POST", PLACE, content=b"{").status_code == 422


def test_the_description_has_both_bodies(ask: Any) -> None:
    paths = ask("GET", "/api/v1/openapi.json").json()["paths"]
    content = paths["/api/v1/models/{job_id}/predict"]["post"]["requestBody"]["content"]
    assert {"application/json", "multipart/form-data"} <= set(content)
    assert {"rows", "texts", "pictures"} <= set(content["application/json"]["schema"]["properties"])


def test_samples_are_generated(ask: Any, studio: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place, asked = "/api/v1/models/20260101-000000-0001/generate", []

    def generate(*arguments: Any, **options: Any) -> dict[str, Any]:
        asked.append((arguments, options))
        return {"inputs": {"noise": {"shape": [2], "dtype": "float32"}}, "predictions": [{"picture": b"PNG"}]}

    monkeypatch.setattr(studio.models._inference, "generate", generate)
    monkeypatch.setattr(studio.models, "_trained", lambda job_id: job_id)
    answer = ask("POST", place, json={"count": 2, "seed": 5, "first": {"noise": [0.5]}, "pictures": True})
    assert answer.status_code == 200, answer.text
    assert answer.json()["inputs"]["noise"]["shape"] == [2]
    assert answer.json()["predictions"][0]["picture"] == base64.b64encode(b"PNG").decode()
    given = {"seed": 5, "inputs": {}, "first": {"noise": [0.5]}, "drawn": True}
    assert asked == [(("20260101-000000-0001", None, 2, None), given)]
    for body, words in [({"count": 0}, "count"), ({"seed": -1}, "seed"), ({"first": {"noise": ["a"]}}, "noise")]:
        answer = ask("POST", place, json=body)
        assert (answer.status_code, words in answer.text) == (422, True)
