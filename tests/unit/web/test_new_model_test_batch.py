"""Test batch on the new-model page: its result and curve as a part of the page, and the values that it fills in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.canceling import run_and_cancel
from tests.unit.web.html_page import html_of
from ziggurat.web.pages.new_model.batch_trial import batch_look, curve_picture

_FORM = {"method": "standard", "standard_network": "null/mlp", "dataset": "digits", "shuffle": "true", "epochs": "2"}
_HTMX = {"HX-Request": "true", "HX-Target": "div#test-batch"}
_RATE: dict[str, Any] = {
    "rates": [1e-4, 1e-3, 1e-2, 1e-1],
    "losses": [2.5, 2.0, 1.0, 9.0],
    "suggested": 0.001,
    "rule": "a tenth of the rate at the smallest smoothed loss",
    "largest_finite": 0.05,
    "largest_is_bound": False,
    "own": {"rate": 0.5, "finite": False, "step": 3},
    "trial_steps": 20,
}
_FOUND: dict[str, Any] = {
    "total_s": 75.0,
    "epoch_s": 2.5,
    "step_s": 0.01,
    "data_wait_share": 0.25,
    "memory_bytes": 900_000_000,
    "device_memory_bytes": None,
    "largest_batch": 128,
    "largest_batch_bytes": 1_000_000_000,
    "batch_size": 64,
    "sizes": {"train": 6000},
    "rate": _RATE,
}


def test_the_result_is_a_part_of_the_page(visit: Any) -> None:
    answer = visit.post("/models/new/test-batch", data=_FORM, headers=_HTMX)

    assert answer.status_code == 200, answer.text
    page = html_of(answer)
    facts = {each.text for each in page.all("#test-batch dl dt")}
    assert {"Whole training", "Peak memory", "Waiting for data", "Suggested rate"} <= facts
    assert page.has("#test-batch svg polyline")
    texts = {each.text for each in page.all("#test-batch svg text.title")}
    assert len(texts) == 2, "both axes have titles"
    assert len(page.all("#rate-curve-table tbody tr")) == 10
    (use,) = page.all('#test-batch button[value^="learning_rate="]')

    filled = visit.post("/models/new/test-batch/use", data={**_FORM, "use": use["value"]})
    assert filled.status_code == 200
    chosen = use["value"].partition("=")[2]
    assert html_of(filled).one("#learning_rate")["value"] == chosen
    assert html_of(filled).has("#preflight .finding")
    assert html_of(visit.get("/models/new")).one("#learning_rate")["value"] == chosen, "the draft has it too"


def test_figures_follow_the_form_or_are_struck_out(visit: Any) -> None:
    assert visit.post("/models/new/test-batch", data=_FORM, headers=_HTMX).status_code == 200

    def figures(**changed: str) -> tuple[dict[str, str], Any]:
        headers = {**_HTMX, "HX-Target": "div#test-batch-facts"}
        page = html_of(visit.post("/models/new/test-batch/figures", data={**_FORM, **changed}, headers=headers))
        titles, values = ([each.text for each in page.all(f"dl {name}")] for name in ("dt", "dd"))
        return dict(zip(titles, values, strict=True)), page

    (few, page), (many, _) = figures(), figures(epochs="100000")
    assert not page.has("s")
    assert not page.has("#test-batch-stale")
    assert few["Peak memory"] == many["Peak memory"]
    assert few["Whole training"] != many["Whole training"]
    estimate = html_of(visit.post("/models/new/quick", data={**_FORM, "epochs": "100000"}, headers=_HTMX))
    assert estimate.one("#estimate .large dd").text == many["Whole training"], "one page says one time"

    _, other = figures(batch_size="32")
    assert len(other.all("s")) == len(other.all("dd"))
    assert other.has("#test-batch-stale")


def test_what_is_wrong_is_said_in_its_place(visit: Any) -> None:
    wrong = visit.post("/models/new/test-batch", data={**_FORM, "epochs": "none"}, headers=_HTMX)
    assert not html_of(wrong).has("#test-batch dl")
    assert html_of(wrong).has("#test-batch .note")
    large = visit.post("/models/new/test-batch", data={**_FORM, "batch_size": "5000"}, headers=_HTMX)
    assert html_of(large).has("#test-batch .note")


def test_a_canceled_test_batch_is_no_error(visit: Any, studio: Any) -> None:
    answers: list[Any] = []
    run_and_cancel(
        lambda: answers.append(visit.post("/models/new/test-batch", data=_FORM, headers=_HTMX)),
        lambda: studio.training.test_batches.cancel("page local"),
    )
    assert html_of(answers[0]).has("#test-batch-canceled")
    assert not html_of(answers[0]).has("#test-batch .note.error")


def test_only_numbers_are_filled_in(visit: Any) -> None:
    for use in ("learning_rate=-1", "learning_rate=x", "epochs=7", "batch_size=1.5", ""):
        page = html_of(visit.post("/models/new/test-batch/use", data={**_FORM, "use": use}))
        assert (page.one("#learning_rate")["value"], page.one("#epochs")["value"]) == ("0.01", "2")
    assert visit.post("/models/new/test-batch/cancel").status_code == 204, "nothing runs"


def test_what_is_shown_of_a_test_batch() -> None:
    look = batch_look(_FOUND)

    assert look["uses"] == [("learning_rate", "0.001", "Use 0.001"), ("batch_size", "128", "Use batch 128")]
    assert "step 3" in look["warning"]
    facts = dict(look["facts"])
    assert (facts["Whole training"], facts["Waiting for data"]) == ("1 min 15 s", "25\u202f% of the time")
    few = batch_look({**_FOUND, "sizes": {"train": 1252}})
    assert len(few["uses"]) == 1, "a batch of 128 would leave nine steps an epoch"
    plain = batch_look({**_FOUND, "rate": None, "largest_batch": 64})
    assert (plain["uses"], plain["curve"]) == ([], None)


def test_the_curve_stays_inside_its_box() -> None:
    picture = curve_picture(_RATE)
    assert picture is not None
    left, top, right, bottom = picture["box"]
    for point in picture["points"].split():
        x, y = map(float, point.split(","))
        assert left <= x <= right
        assert top <= y <= bottom
    assert [name for name, _ in picture["marks"]] == ["suggested"], "the rate of the form lies outside"
    assert len(picture["table"]) == 4
    assert json.dumps(picture)
    assert curve_picture({**_RATE, "rates": [0.1], "losses": [1.0]}) is None
    flat = curve_picture({**_RATE, "losses": [1.0, 1.0, 1.0, 1.0]})
    assert flat is not None
    assert pytest.approx(bottom) == float(flat["points"].split()[0].partition(",")[2])
