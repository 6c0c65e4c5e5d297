"""Tabs of the new-model page for networks of other tools: errors at their line, conversion, and what is sent."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from tests.caffe_files import LENET
from tests.torch7_files import GRAY as LUA
from tests.torch7_files import t7
from tests.unit.torch7.test_torch7_t7 import saved_lenet
from tests.unit.web.html_page import html_of

GRAY = LENET.replace("kernel_size: 5", "kernel_size: 3")
FORM = {"method": "caffe", "dataset": "digits", "shuffle": "true", "epochs": "1", "caffe_text": GRAY}


def convert(visit: Any, text: str = GRAY, files: Any = None, **fields: str) -> Any:
    """Press Convert, as a browser sends it: with the files."""
    sent = files or {"caffe-weights": ("", b"")}
    return visit.post("/models/new/convert/caffe", data={**FORM, "caffe_text": text, **fields}, files=sent)


def typed(answer: Any, name: str) -> str:
    """Return what stands in a text area."""
    [found] = re.findall(rf'<textarea[^>]* id="{name}"[^>]*>\n?(.*?)</textarea>', answer.text, re.DOTALL)
    return html.unescape(found)


def test_the_tab_is_offered(visit: Any) -> None:
    shown = html_of(visit.get("/models/new"))
    assert shown.one("#method-caffe")["name"] == "method"
    assert shown.one("#convert-caffe")["formenctype"] == "multipart/form-data"


def test_an_error_stands_at_its_line(visit: Any) -> None:
    answer = convert(visit, GRAY.replace("kernel_size: 3", "kernel_size: five", 1))
    assert answer.status_code == 422
    shown = html_of(answer)
    wrong = shown.one("#caffe_text-wrong")
    assert wrong["data-line"] == "18"
    assert wrong.text.startswith("Line 18: kernel_size is 'five', not a whole number.")
    assert "kernel_size: five" in shown.one("#caffe_text").text
    assert "checked" in shown.one("#method-caffe").attributes


def test_a_text_that_was_not_converted_starts_nothing(visit: Any, studio: Any) -> None:
    answer = visit.post("/models/new", data=FORM)
    assert answer.status_code == 422
    assert "The prototxt is not converted yet. Press Convert." in answer.text
    assert not [*studio.jobs.queue()]


def test_an_empty_text_is_asked_for(visit: Any) -> None:
    answer = convert(visit, "")
    assert "There is no prototxt yet." in html_of(answer).one("#caffe_text-wrong").text


def test_an_unknown_tab_is_not_found(visit: Any) -> None:
    assert visit.post("/models/new/convert/mystery", data=FORM).status_code == 404


@pytest.mark.torch
def test_a_converted_network_is_trained(visit: Any, studio: Any) -> None:
    answer = convert(visit, files={"caffe-network": ("lenet.prototxt", GRAY.encode())}, caffe_text="old")
    assert answer.status_code == 200, html_of(answer).one("#caffe_text-wrong").text
    shown = html_of(answer)
    assert "self.ip2 = nn.Linear(500, classes)" in shown.one("#caffe-converted").text
    assert shown.one("#caffe-report .chip").text == "passed"
    assert shown.one("#batch_size")["value"] == "64"
    seal, code = shown.one("#converted")["value"], typed(answer, "network_text")
    again = html_of(visit.get("/models/new"))
    assert again.one("#converted")["value"] == seal, "the draft has it"
    sent = {**FORM, "caffe_text": GRAY, "network_text": code, "custom_framework": "torch", "converted": seal}
    stale = visit.post("/models/new", data={**sent, "caffe_text": GRAY + "# more"})
    assert "The prototxt has changed since it was converted. Press Convert." in stale.text
    started = visit.post("/models/new", data=sent)
    assert started.status_code == 303, started.text
    [job] = studio.jobs.queue()
    assert job.spec["backend"] == "torch"
    assert job.spec["network"]["text"].strip() == code.strip()


@pytest.mark.torch
def test_a_network_in_lua_is_converted_with_its_weights(visit: Any, studio: Any) -> None:
    pytest.importorskip("lupa")
    saved = t7(saved_lenet()[0])
    text = LUA.replace("fineTuneHook", "unused")
    fields = {
        "method": "torch7",
        "dataset": "digits",
        "shuffle": "true",
        "epochs": "1",
        "torch7_text": text,
        "torch7_input": "1x8x8",
    }
    files = {"torch7-weights": ("snapshot_1_Model.t7", saved)}
    answer = visit.post("/models/new/convert/torch7", data=fields, files=files)
    assert answer.status_code == 200, html_of(answer).one("#torch7_text-wrong").text
    shown = html_of(answer)
    assert shown.one("#torch7-report .chip").text == "passed"
    assert "weights:torch-snapshot-1-model" in shown.one("#torch7-report").text
    assert "checked" in shown.one("#weights-pretrained").attributes
    assert studio.weights.get("torch-snapshot-1-model").title
    wrong = visit.post(
        "/models/new/convert/torch7", data={**fields, "torch7_text": "return nn.Nope()"}, files={"x": ("", b"")}
    )
    assert html_of(wrong).one("#torch7_text-wrong").text.startswith("Line 1: Nope is not a function or module")
