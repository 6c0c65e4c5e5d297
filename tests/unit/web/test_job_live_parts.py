"""Parts of a job's page that show what it recorded: machine load, sample predictions, events, early stopping."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.unit.checkpoint_samples import write_checkpoint
from tests.unit.web.html_page import html_of
from ziggurat.entities import INTERVENTION
from ziggurat.entities.json_lines import replace_lines
from ziggurat.events import (
    AttemptEnded,
    AttemptStarted,
    DivergenceNoticed,
    HyperparameterChanged,
    Message,
    ScalarLogged,
)
from ziggurat.layout import JobFolder
from ziggurat.store import Store
from ziggurat.web.pages.job.live_view import LiveView
from ziggurat.workspace.studio import Studio

_PART = {"HX-Request": "true"}


@pytest.fixture
def store(studio: Studio) -> Iterator[Store]:
    """Return the store of the studio, to say what a worker would have said."""
    with Store.open(studio.root / "studio.db") as opened:
        yield opened


@pytest.fixture
def told(studio: Studio, store: Store, train: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes a running training of 4 epochs of 10 steps whose worker said something."""

    def make(*events: Any, **spec: Any) -> Any:
        job = train(spec={"epochs": 4, **spec})
        assert store.jobs.move(job.id, ("queued",), "running", started=10.0, health="alive")
        started = AttemptStarted(
            time=10.0, attempt=1, pid=7, host="here", backend="null", release="1", max_epoch=4, steps_per_epoch=10
        )
        assert store.events.take(job.id, 0, 1, [started, *events])
        return studio.jobs.get(job.id)

    return make


def points(values: list[float], tag: str = "validation_accuracy") -> list[ScalarLogged]:
    return [
        ScalarLogged(time=20.0 + number, tag=tag, value=value, step=10 * number, epoch=number)
        for number, value in enumerate(values)
    ]


def record_load(folder: str, *attempts: tuple[float, int]) -> None:
    gpus = [{"index": 0, "name": "RTX 3060", "memory_bytes": 12e9}]
    lines: list[dict[str, Any]] = [{"time": 1, "machine": {"cores": 8, "memory_bytes": 64e9, "gpus": gpus}}]
    for begin, count in attempts:
        for number in range(count):
            line = {"time": begin + 2 * number, "attempt": begin, "step": number, "job_cpu_percent": 50 + number % 3}
            gpu = {"gpu_0_utilization_percent": 92, "gpu_0_memory_bytes": 5.1e9}
            lines.append({**line, **gpu, "machine_cpu_percent": 60, "images_per_s": 220.0})
    replace_lines(JobFolder(Path(folder)).machine_load, lines, "The load")


def record_samples(folder: str, epochs: int, **head: Any) -> None:
    samples = [{"split": "val", "row": row, "key": f"{row}.png", "label": row % 2} for row in range(3)]
    lines: list[dict[str, Any]] = [
        {"version": 1, "kind": "classification", "class_names": ["cat", "dog"], "samples": samples, **head}
    ]
    for epoch in range(epochs):
        predictions = [{"class": int(row <= epoch), "score": 0.5 + 0.1 * epoch} for row in range(3)]
        lines.append({"step": 10 * epoch, "epoch": epoch, "time": 1.0, "predictions": predictions})
    replace_lines(JobFolder(Path(folder)).sample_predictions, lines, "The predictions")


def part_of(visit: Any, job: Any, name: str) -> Any:
    return html_of(visit.get(f"/jobs/{job.id}/live/{name}", headers=_PART))


def test_load_is_drawn_with_value_unit_and_table(visit, told):
    job = told()
    record_load(job.folder, (100.0, 30))

    section = part_of(visit, job, "machine-load").one("#job-machine-load")

    assert "RTX 3060" in section.one(".card-head").text
    names = [each["id"] for each in section.all("figure")]
    assert names == ["load-gpu-utilization", "load-gpu-memory", "load-throughput", "load-cpu"]
    shown = {figure["id"]: figure.one(".load-now").text for figure in section.all("figure")}
    assert shown["load-gpu-memory"].startswith("5.1 GB of 12.0 GB")
    assert shown["load-throughput"] == "220 samples/s"
    cpu = section.one("#load-cpu")
    assert cpu.has("path.context"), "the machine stands behind the job"
    data = json.loads(cpu.one(".load-chart")["data-chart"])
    assert len(data["times"]) == len(data["x"]) == len(data["lines"][0]["y"]) == 30
    assert len(section.one("table").all("tbody tr")) == 12
    assert section["hx-get"].endswith(f"/jobs/{job.id}/live/machine-load")


def test_strange_names_in_a_record_of_the_load_are_skipped(visit, told):
    job = told()
    lines = [
        {"time": 1.0, "attempt": 1.0, "step": 1, "cpu": 2, "gpu_": 1, "gpu_x_memory_bytes": 1, "images_per_s": 220.0}
    ]
    replace_lines(JobFolder(Path(job.folder)).machine_load, lines, "The load")
    assert [each["id"] for each in part_of(visit, job, "machine-load").all("figure")] == ["load-throughput"]


def test_a_line_ends_where_an_attempt_ends(visit, told):
    job = told()
    record_load(job.folder, (100.0, 5), (500.0, 5))
    line = part_of(visit, job, "machine-load").one("#load-throughput").one("path.load-line")
    assert line["d"].count("M") == 2


def test_a_long_record_is_drawn_with_few_points(visit, told):
    job = told()
    record_load(job.folder, (100.0, 1400))
    chart = part_of(visit, job, "machine-load").one("#load-cpu").one(".load-chart")
    assert len(json.loads(chart["data-chart"])["times"]) <= 240


def test_an_old_job_has_no_empty_parts(visit, told, store, studio):
    job = told()
    assert store.jobs.move(job.id, ("running",), "done", ended=60.0)
    old = studio.jobs.get(job.id)
    for name in ("machine-load", "sample-predictions"):
        section = part_of(visit, old, name).one(f"#job-{name}")
        assert "hidden" in section.attributes
        assert section.text == ""


def test_a_new_job_says_that_it_waits_for_values(visit, told):
    assert part_of(visit, told(), "machine-load").has(".live-wait")


def test_samples_show_class_score_and_when_they_were_right(visit, told):
    job = told()
    record_samples(job.folder, 3)

    section = part_of(visit, job, "sample-predictions").one("#job-sample-predictions")

    tiles = section.all("li")
    assert [tile["class"] for tile in tiles] == ["wrong", "right", "wrong"]
    assert [tile.one(".pred-name").text for tile in tiles] == ["dog", "dog", "dog"]
    assert tiles[0].one(".pred-word").text == "wrong:"
    assert tiles[0].one(".pred-score").text.startswith("70")
    assert [tile.one("path.tick-right")["d"].count("z") for tile in tiles] == [0, 2, 2]
    slider = section.one("#sample-epoch")
    assert (slider["max"], slider["value"]) == ("2", "2")
    assert json.loads(section["data-records"])["epochs"] == ["0", "1", "2"]


def test_images_come_from_the_job_where_no_dataset_has_them(visit, told):
    job = told()
    record_samples(job.folder, 1)
    path = JobFolder(Path(job.folder)).sample_image(1)
    path.parent.mkdir()
    path.write_bytes(b"\x89PNG")

    address = part_of(visit, job, "sample-predictions").all("img")[1]["src"]

    assert address == f"/jobs/{job.id}/sample-predictions/1.png"
    assert visit.get(address).content == b"\x89PNG"
    assert visit.get(address.replace("1.png", "2.png")).status_code == 404


def test_images_come_from_the_dataset_where_it_is_there(visit, studio, train, pets):
    job = train(dataset=pets)
    record_samples(job.folder, 1)
    section = part_of(visit, job, "sample-predictions")
    assert section.all("img")[2]["src"] == f"/datasets/{pets}/pictures/val/2"
    assert section.all("li a")[2]["href"] == f"/datasets/{pets}/samples/val/2"


def test_boxes_are_drawn_over_samples_of_each_validation(visit, told):
    job = told()
    actual = [{"box": [10, 10, 30, 30], "number": 1}, {"box": [40, 40, 60, 60], "number": 0}]
    sample = {"split": "val", "row": 4, "key": "4.png", "label": {"size": [64, 96], "boxes": actual}}
    near = {"box": [11, 10, 31, 30], "number": 1, "score": 0.8}
    wrong = {"box": [70, 10, 90, 30], "number": 0, "score": 0.4}
    both = [near, {**actual[1], "score": 0.6}]
    lines: list[dict[str, Any]] = [
        {"version": 1, "kind": "detection", "class_names": ["cat", "dog"], "samples": [sample]}
    ]
    for epoch, boxes in enumerate(([], [near, wrong], both)):
        lines.append({"step": 10 * epoch, "epoch": epoch, "time": 1.0, "predictions": [{"boxes": boxes}]})
    replace_lines(JobFolder(Path(job.folder)).sample_predictions, lines, "The predictions")

    section = part_of(visit, job, "sample-predictions").one("#job-sample-predictions")

    (tile,) = section.all("li")
    assert tile["class"] == "right"
    assert tile.one(".pred-name").text == "2 of 2 found"
    assert tile.one(".pred-boxes svg")["viewbox"] == "0 0 96 64"
    assert [each["x"] for each in tile.all("rect.actual")] == ["10", "40"]
    assert [each["x"] for each in tile.all("g.predicted rect")] == ["11", "40"]
    told_of = json.loads(section["data-records"])["samples"][0]
    assert told_of["predicted"] == ["0 of 2 found", "1 of 2 found", "2 of 2 found"]
    assert told_of["scores"] == ["", "1 false", ""]
    assert told_of["boxes"][1][1][:4] == [70, 10, 20, 20]


def mask_text(rows):
    """Return a mask as a job keeps it; 0 is clear."""
    numbers = np.array(rows, np.uint8)
    colors = np.stack([numbers * 10, numbers * 20, numbers * 30, np.where(numbers, 255, 0).astype(np.uint8)], axis=2)
    return base64.b64encode(cv2.imencode(".png", colors)[1].tobytes()).decode("ascii")


def test_masks_are_drawn_over_samples_of_each_validation(visit, told):
    job = told()
    sample = {"split": "val", "row": 4, "key": "4.png", "label": {"mask": mask_text([[1, 1], [2, 0]])}}
    lines: list[dict[str, Any]] = [
        {"version": 1, "kind": "segmentation", "class_names": ["a", "b"], "samples": [sample]}
    ]
    for epoch, mask in enumerate(("", "damaged", mask_text([[1, 2], [2, 2]]), mask_text([[1, 1], [2, 1]]))):
        lines.append({"step": 10 * epoch, "epoch": epoch, "time": 1.0, "predictions": [{"mask": mask}]})
    replace_lines(JobFolder(Path(job.folder)).sample_predictions, lines, "The predictions")

    section = part_of(visit, job, "sample-predictions").one("#job-sample-predictions")

    told_of = json.loads(section["data-records"])["samples"][0]
    assert told_of["predicted"] == ["no pixel counts", "no pixel counts", "IoU 50\u202f%", "IoU 100\u202f%"]
    assert told_of["right"] == [None] * 4
    masks = section.all(".mask")
    assert masks[1]["src"] == told_of["masks"][-1] == f"/jobs/{job.id}/sample-predictions/0/30.png"
    assert visit.get(masks[0]["src"]).content == base64.b64decode(sample["label"]["mask"])
    assert visit.get(masks[1]["src"]).content.startswith(b"\x89PNG")
    for name in ("0/0", "0/10", "0/7", "3/actual"):
        assert visit.get(f"/jobs/{job.id}/sample-predictions/{name}.png").status_code == 404


def test_values_stand_beside_the_actual_ones(visit, told):
    job = told()
    sample = {"split": "val", "row": 4, "key": "house 4", "label": {"values": [120.5]}}
    lines: list[dict[str, Any]] = [{"version": 1, "kind": "regression", "class_names": [], "samples": [sample]}]
    lines += [{"step": 10, "epoch": 1, "time": 1.0, "predictions": [{"values": [value]}]} for value in (None, 118.25)]
    replace_lines(JobFolder(Path(job.folder)).sample_predictions, lines, "The predictions")

    section = part_of(visit, job, "sample-predictions").one("#job-sample-predictions")

    assert [each.text for each in section.all("li p")] == ["118", "actual 120"]
    assert json.loads(section["data-records"])["samples"][0]["predicted"] == ["–", "118"]


def test_samples_that_are_no_images_show_their_text_or_row(visit, studio, train, pets):
    job = train(dataset=pets)
    record_samples(job.folder, 1)
    path = JobFolder(Path(job.folder)).sample_predictions
    head, *records = [json.loads(line) for line in path.read_text().splitlines()]
    for sample, content in zip(
        head["samples"], ({"text": "a <b>"}, {"cells": [["age", 7]]}, {"text": "c"}), strict=True
    ):
        sample["content"] = content
    replace_lines(path, [head, *records], "The predictions")

    section = part_of(visit, job, "sample-predictions").one("#job-sample-predictions")

    assert [each.text for each in section.all(".task-text")] == ["a <b>", "c"]
    assert section.one(".task-row").text == "age 7"
    assert not section.all("img, li a")
    assert "3 validation samples" in section.text


def test_a_kind_that_this_page_does_not_know_is_left_out(visit, told):
    job = told()
    record_samples(job.folder, 2, kind="detection")
    assert "hidden" in part_of(visit, job, "sample-predictions").one("#job-sample-predictions").attributes


def test_a_part_without_scripts_is_the_page(visit, told):
    job = told()
    assert visit.get(f"/jobs/{job.id}/live/events").headers["location"] == f"/jobs/{job.id}"
    assert visit.get(f"/jobs/{job.id}/live/nothing", headers=_PART).status_code == 204
    assert visit.get("/jobs/20200101-000000-abcd/live/events", headers=_PART).status_code == 204


def test_events_are_numbered_as_the_flags_on_the_charts(visit, studio, told):
    by_hand = {"name": "learning_rate", "previous": 0.01, "value": 0.005, "source": "person"}
    job = told(
        *points([0.1, 0.5, 0.914, 0.9]),
        HyperparameterChanged(time=31.0, step=15, **by_hand),
        Message(time=33.0, level=INTERVENTION, text="Learning rate follows its schedule again", step=25),
        AttemptStarted(
            time=50.0, attempt=2, pid=8, host="here", backend="null", release="1", max_epoch=4, steps_per_epoch=10,
            global_step=30,
        ),
    )  # fmt: skip
    write_checkpoint(job.folder, 20, 2, validation_accuracy=0.914)

    found = studio.jobs.timeline(job.id)

    assert [(each.number, each.kind, each.step, each.epoch) for each in found if each.number] == [
        (1, "learning_rate", 15, 2),
        (2, "schedule", 25, 3),
        (3, "resumed", 30, 3),
    ]
    assert found[0].kind == "started"
    bests = [each for each in found if each.kind == "best"]
    assert [(each.value, each.epoch) for each in bests] == [(0.5, 1), (0.914, 2)]
    assert "checkpoint kept" in bests[-1].detail
    assert "checkpoint kept" not in bests[0].detail
    shown = part_of(visit, job, "events").all("li")
    assert len(shown) == len(found)
    assert "event-resumed" in shown[0]["class"], "the newest first"
    assert [each.one(".event-mark").text for each in shown if not each.has(".dot")] == ["3", "2", "1"]


def test_a_divergence_stands_where_its_step_is(studio, told):
    noticed = DivergenceNoticed(
        time=32.0, state="diverged", tag="validation_cost", value=9.0, step=20, epoch=2, best=0.4, noticed_step=20
    )
    job = told(*points([0.1, 0.5, 0.4, 0.6]), noticed)

    found = studio.jobs.timeline(job.id)

    assert [(each.kind, each.step) for each in found] == [
        ("started", 0),
        ("best", 10),
        ("divergence", 20),
        ("best", 30),
    ]


def test_who_changed_the_rate_comes_from_the_audit_log(visit, studio, told):
    job = told()
    visit.post(f"/jobs/{job.id}/learning-rate", data={"value": "0.005"})
    changed = HyperparameterChanged(
        time=studio.clock() + 1, name="learning_rate", previous=0.01, value=0.005, source="person", step=15
    )
    with Store.open(studio.root / "studio.db") as store:
        assert store.events.take(job.id, 1, 2, [changed])
    (flag,) = [each for each in studio.jobs.timeline(job.id) if each.number]
    assert flag.by == "local"
    assert flag.value == 0.005


def test_early_stopping_is_told_as_it_stands(studio, store, told):
    rule = {"tag": "validation_accuracy", "patience": 2}
    job = told(*points([0.1, 0.5, 0.4]), early_stopping=rule)
    state = studio.jobs.early_stopping(job.id)
    assert (state.waited, state.patience, state.best, state.best_epoch) == (1, 2, 0.5, 1)
    assert not state.has_ended

    ended = AttemptEnded(time=60.0, outcome="done", exit_code=0, reason="no gain", global_step=30, epoch=3)
    assert store.events.take(job.id, 1, 2, [*points([0.1, 0.5, 0.4, 0.5])[3:], ended])
    assert store.jobs.move(job.id, ("running",), "done", ended=60.0)

    assert studio.jobs.early_stopping(job.id).has_ended
    last = [each for each in studio.jobs.timeline(job.id) if each.number]
    assert [(each.kind, each.step) for each in last] == [("early_stopping", 30)]


@pytest.mark.parametrize(
    ("rule", "best"), [("auto", 0.5), ({"tag": "validation_cost", "patience": 9}, 0.1), (None, None)]
)
def test_early_stopping_by_any_metric(studio, told, rule, best):
    content = {"early_stopping": rule} if rule else {}
    job = told(*points([0.1, 0.5, 0.4]), *points([0.1, 0.5, 0.4], "validation_cost"), **content)
    state = studio.jobs.early_stopping(job.id)
    if rule is None:
        assert state is None
    elif rule == "auto":
        assert (state.tag, state.best, state.waited) == ("validation_accuracy", best, 1)
    else:
        assert (state.best, state.best_epoch) == (0.4, 2), "an untrained network is not judged"


def test_the_view_of_another_kind_of_job_is_empty(studio, pets):
    view = LiveView(studio, studio.jobs.get(pets))
    assert view.charts == ()
    assert view.predictions.samples == ()
    assert view.events == ()
