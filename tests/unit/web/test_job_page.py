"""The page of a job: what it shows in each state, its forms, and what they say where they are refused."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.checkpoint_samples import write_checkpoint
from tests.unit.web.html_page import html_of
from ziggurat.cli.job import nodes_text
from ziggurat.entities import JobFilter, NewJob, ResourceRequest, Share, WorkerRef
from ziggurat.events import (
    ArithmeticRecorded,
    AttemptEnded,
    AttemptStarted,
    CheckpointSaved,
    DivergenceNoticed,
    ErrorRaised,
    HyperparameterChanged,
    Message,
    Progress,
    ScalarLogged,
)
from ziggurat.store import Store
from ziggurat.web.pages.job.view import actions_of, wait_advice
from ziggurat.workspace.studio import Studio

_NETWORK = "import one\n\n\nclass UserModel:\n    def inference(self):\n        return self.y\n"


@pytest.fixture
def store(studio: Studio) -> Iterator[Store]:
    """Return the store of the studio, to say what a worker would have said."""
    with Store.open(studio.root / "studio.db") as opened:
        yield opened


@pytest.fixture
def begun(studio: Studio, store: Store, train: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes a training that a worker is at, at step 20 of 40."""

    def make(*events: Any, **fields: Any) -> Any:
        job = train(**fields)
        assert store.jobs.move(job.id, ("queued",), "running", started=10.0, health="alive")
        said = [
            AttemptStarted(
                time=10.0, attempt=1, pid=7, host="here", backend="null", release="1", max_epoch=2, steps_per_epoch=20
            ),
            ScalarLogged(time=11.0, tag="cost", value=2.0, step=10, epoch=1),
            ScalarLogged(time=12.0, tag="cost", value=float("nan"), step=20, epoch=1),
            ScalarLogged(time=12.0, tag="learning_rate", value=0.01, step=20, epoch=1),
            Progress(
                time=12.0, epoch=1, global_step=20, total_steps=40, remaining_s=60, steps_per_s=10, data_wait_share=0.4
            ),
            *events,
        ]
        assert store.events.take(job.id, 0, 1, said)
        return studio.jobs.get(job.id)

    return make


def _text(answer: Any) -> str:
    """Return what a person reads of a page."""
    without = re.sub(r"<[^>]*>", " ", answer.text)
    return re.sub(r"[\s\u202f]+", " ", html.unescape(without))


def test_a_job_that_waits_says_so_and_what_can_be_done(visit, train):
    job = train(spec={"name": "<b>lenet</b>", "learning_rate": 0.5}, tags=["try"], notes="Look\nagain")

    page = visit.get(f"/models/{job.id}")

    assert page.status_code == 200
    assert '<h1 id="job-name">&lt;b&gt;lenet&lt;/b&gt;</h1>' in page.text
    assert html_of(page).one("#job-chip").text == "queued"
    assert html_of(page).has("#job-why")
    assert html_of(page).has("#rate-fields[disabled]")
    assert html_of(page).one(".curve-waiting").text.startswith("Waiting for")
    assert [each.name for each in actions_of(job)] == ["stop", "pause"]
    assert f'data-topics="devices,job:{job.id},jobs,queue"' in page.text
    text = _text(visit.get(f"/models/{job.id}?tab=configuration"))
    for part in ("mlp with NumPy", "Look again", "try"):
        assert part in text
    assert re.search(r"learning_rate 0\.5 0\.01", text), "what differs from the default"
    assert f"tensorboard --logdir {job.folder}/tb/ " in _text(visit.get(f"/models/{job.id}?tab=system"))


def test_a_queued_job_says_what_devices_it_waits_for(visit, train, store):
    job = train()
    for needs, said in (
        (ResourceRequest(devices=4, nodes=2, slot="device"), "Devices waits for 4 GPUs on each of 2 nodes "),
        (ResourceRequest(devices=1, slot="device"), "Devices waits for 1 GPU "),
        (ResourceRequest(nodes=2), "Devices CPU only, 2 nodes "),
    ):
        store.jobs.note(job.id, needs=needs)
        assert said in _text(visit.get(f"/models/{job.id}?tab=system"))


def test_the_nodes_of_a_job_are_on_its_page_and_in_its_text(visit, train, store):
    job = train()
    fields = {"worker": WorkerRef(executor="ray", node="b", attempt=1, opaque={"pid": 7}), "host": "b"}
    shares = (Share("b", (0, 1), (0, 1)), Share("c", (2, 3), (2, 3)))
    assert store.jobs.move(job.id, ("queued",), "running", devices=(0, 1), placement=shares, **fields)
    assert "Devices b: GPU 0, 1 c: GPU 2, 3 " in _text(visit.get(f"/models/{job.id}?tab=system"))
    assert nodes_text(visit.get(f"/api/v1/jobs/{job.id}").json()) == "b: GPU 0, 1; c: GPU 2, 3"
    store.jobs.note(job.id, devices=(), placement=(Share("b"),))
    assert "Devices CPU only Host b " in _text(visit.get(f"/models/{job.id}?tab=system"))
    assert nodes_text(visit.get(f"/api/v1/jobs/{job.id}").json()) == "b"
    store.jobs.note(job.id, worker=WorkerRef(executor="local", node="here", attempt=1))
    assert nodes_text(visit.get(f"/api/v1/jobs/{job.id}").json()) == ""


def test_any_job_is_found_by_its_id_alone(visit, train, pets):
    job = train()

    assert visit.get(f"/jobs/{job.id}").headers["location"] == f"/models/{job.id}"
    assert visit.get(f"/jobs/{pets}").headers["location"] == f"/datasets/{pets}"
    assert visit.get(f"/models/{pets}").headers["location"] == f"/jobs/{pets}"
    missing = visit.get("/jobs/20200101-000000-abcd")
    assert missing.status_code == 404
    assert "20200101-000000-abcd" in missing.text


def test_a_job_of_a_kind_without_a_page_is_shown_in_general(visit, studio, store, train):
    from_training = train()
    path = Path(from_training.folder).parent / "20260101-000000-00ee"
    path.mkdir()
    store.jobs.add(_export_of(path))

    page = visit.get("/jobs/20260101-000000-00ee")

    assert page.status_code == 200
    assert html_of(page).one("h1").text
    assert 'data-island="curves"' not in page.text


def _export_of(path: Path) -> Any:
    return NewJob(id=path.name, kind="export", name="onnx", folder=str(path), spec={"kind": "export"}, created=1.0)


def test_a_running_job_shows_progress_rate_and_data_advice(visit, begun):
    job = begun(
        Message(time=12.0, level="warning", text="One <i>file</i> is bad.", step=20),
        Message(time=12.0, level="info", text="nothing to see", step=20),
        CheckpointSaved(time=12.0, name="step-00000020", step=20, epoch=1, reason="epoch", size_bytes=2_000_000),
    )
    (Path(job.folder) / "checkpoints" / "step-00000020").mkdir(parents=True)

    page = visit.get(f"/models/{job.id}")

    text = _text(page)
    for part in ("running", "1 of 2", "20 of 40", "1 min 00 s ends", "40 samples/s", "40 % of step time"):
        assert part in text
    assert html_of(page).one("#job-state .job-advice").text
    assert "Training loss NaN 2 2 2 20" in text, "last, smallest, largest, points, step"
    assert len(html_of(page).all("#job-checkpoints-short tbody tr")) == 1
    log = _text(visit.get(f"/models/{job.id}?tab=log"))
    assert "Warning step 20" in log
    assert "One <i>file</i> is bad." in log
    assert "nothing to see" not in log
    checkpoints = visit.get(f"/models/{job.id}?tab=checkpoints")
    assert "2.0 MB" in _text(checkpoints)
    assert html_of(checkpoints).has("#checkpoints-locked")
    assert f"/models/new?model={job.id}&amp;checkpoint=step-00000020" in checkpoints.text


def test_the_page_has_one_primary_button(visit, begun):
    job = begun(CheckpointSaved(time=12.0, name="step-00000020", step=20, epoch=1, reason="epoch"))
    without = html_of(visit.get(f"/models/{job.id}"))
    assert without.all(".primary") == []

    (Path(job.folder) / "checkpoints" / "step-00000020").mkdir(parents=True)

    page = html_of(visit.get(f"/models/{job.id}"))
    assert [each["id"] for each in page.all(".primary")] == ["job-test"]
    assert page.has("#job-export-menu #job-take-away")


@pytest.mark.parametrize("tab", ["", "predictions", "checkpoints", "log", "configuration", "system", "nothing"])
def test_each_tab_is_a_page_with_its_own_part(visit, begun, tab):
    job = begun()

    page = html_of(visit.get(f"/models/{job.id}?tab={tab}"))

    (current,) = page.all('#job-tabs a[aria-current="page"]')
    assert current["id"] == (f"tab-{tab}" if tab not in ("", "nothing") else "tab-overview")
    assert page.has("#curves") == (current["id"] == "tab-overview")
    assert page.has("#job-log") == (tab == "log")
    assert page.has("#job-state .job-status")


def test_the_live_parts_are_those_of_the_tab(visit, begun):
    job = begun()
    shown = {"HX-Request": "true", "HX-Target": "div#job-live", "HX-Current-URL": f"http://x/models/{job.id}?tab=log"}

    targets = re.findall(r'hx-target="#(job-[a-z-]+)"', visit.get(f"/models/{job.id}", headers=shown).text)

    assert targets[-2:] == ["job-messages", "job-attempts"]
    assert "job-rate-now" not in targets


def test_a_page_whose_training_had_no_point_is_loaded_anew(visit, store, train):
    job = train()
    assert store.jobs.move(job.id, ("queued",), "failed", reason="no network", ended=14.0)

    answer = visit.part(f"/models/{job.id}?curves=1", "job-live")

    assert (answer.status_code, answer.headers["hx-refresh"]) == (204, "true")


def test_charts_know_the_best_checkpoint_and_the_flags(visit, begun):
    job = begun(CheckpointSaved(time=13.0, name="step-00000020", step=20, epoch=1), _BY_HAND)
    write_checkpoint(job.folder, 20, 1, validation_accuracy=0.914)

    data = html_of(visit.get(f"/models/{job.id}")).one("#job-metrics")

    assert json.loads(data["data-best"]) == {"tag": "validation_accuracy", "value": 0.914, "step": 20, "epoch": 1}
    assert [each["step"] for each in json.loads(data["data-marks"])] == [17]


def test_the_rate_has_a_chart_of_plan_and_use(visit, begun):
    job = begun()

    chart = html_of(visit.get(f"/models/{job.id}")).one(".rate-chart")

    assert chart.has(".planned")
    assert chart.has(".used")


@pytest.mark.parametrize(("spec", "said"), [({"ema_decay": 0.99}, 1), ({}, 0)])
def test_checkpoints_say_that_averaged_weights_predict(visit, begun, spec, said):
    job = begun(CheckpointSaved(time=12.0, name="step-00000020", step=20, epoch=1, reason="epoch"), spec=spec)
    (Path(job.folder) / "checkpoints" / "step-00000020").mkdir(parents=True)

    page = visit.get(f"/models/{job.id}?tab=checkpoints")

    assert len(html_of(page).all("#averaged-weights")) == said


def test_the_live_parts_come_alone(visit, begun):
    job = begun()

    answer = visit.part(f"/models/{job.id}", "job-live")

    targets = re.findall(r'<hx-partial hx-target="#(job-[a-z-]+)"', answer.text)
    assert targets == [
        "job-name", "job-chip", "job-actions", "job-state", "job-tabs", "job-values", "job-divergence", "job-checked",
        "job-failure", "job-metrics", "job-rate-now", "job-checkpoints-short",
    ]  # fmt: skip
    for target in targets:
        assert f'id="{target}"' in answer.text
    assert "<html" not in answer.text
    assert visit.part(f"/models/{job.id}", "content").text.startswith("<!doctype html>")


def test_buttons_do_what_they_say_and_come_back_to_the_page(visit, studio, train):
    job = train()

    assert visit.post(f"/jobs/{job.id}/actions/pause").headers["location"] == f"/jobs/{job.id}"
    assert studio.jobs.get(job.id).paused
    page = html_of(visit.get(f"/models/{job.id}"))
    assert page.one("#job-chip").text == "paused"
    assert page.has(f'#job-actions form[action="/jobs/{job.id}/actions/resume"]')
    assert "local" in page.one("#job-why").text
    visit.post(f"/jobs/{job.id}/actions/resume")
    assert studio.jobs.get(job.id).state == "queued"
    live = visit.post(f"/jobs/{job.id}/actions/stop", headers={"HX-Request": "true", "HX-Target": "form#job-stop-form"})
    assert live.status_code == 200
    assert 'hx-target="#job-state"' in live.text
    assert "local" in html_of(live).one("#job-why").text
    assert [each.action for each in studio.people.audit().entries][:3] == ["job.stop", "job.resume", "job.pause"]


def test_a_button_that_came_too_late_says_what_is_possible(visit, train):
    job = train()

    page = visit.post(f"/jobs/{job.id}/actions/retry")

    assert page.status_code == 409
    assert "Only a job that is failed can be retried (" in _text(page)
    assert "<h1" in page.text
    part = visit.post(f"/jobs/{job.id}/actions/retry", headers={"HX-Request": "true", "HX-Target": "form#x"})
    assert part.status_code == 409
    assert 'hx-target="#job-said"' in part.text
    assert "Only a job that is failed can be retried (" in part.text


def test_name_notes_tags_and_project_are_changed(visit, studio, train):
    job = train(notes="old")
    place = f"/jobs/{job.id}/change"

    assert visit.post(place, data={"name": " new name "}).status_code == 303
    visit.post(place, data={"notes": "A note.", "tags": "one, two,, one", "project": "faces"})

    changed = studio.jobs.get(job.id)
    assert (changed.name, changed.notes, changed.tags, changed.project) == (
        "new name",
        "A note.",
        ("one", "two"),
        "faces",
    )


def test_a_wrong_name_is_said_at_its_field_and_stays_typed(visit, studio, train):
    job = train()
    long_name = "x" * 201

    page = visit.post(f"/jobs/{job.id}/change", data={"name": long_name})

    assert page.status_code == 422
    problem = html_of(page).one("#name-problem")
    assert problem.text == "A name has 1 to 200 characters."
    assert not html_of(page).has("#job-said .note"), "it is said once"
    assert f'value="{long_name}"' in page.text
    assert studio.jobs.get(job.id).name == "tiny"


@pytest.mark.parametrize(
    ("field", "text"), [("notes", "x" * 100_001), ("tags", "good, " + "x" * 201), ("project", "x" * 201)]
)
def test_what_is_too_long_is_said_at_its_field(visit, studio, train, field, text):
    job = train()
    sent = {"notes": "", "tags": "", "project": "", field: text}

    page = html_of(visit.post(f"/jobs/{job.id}/change?tab=configuration", data=sent))

    assert page.one(f"#{field}")["aria-invalid"] == "true"
    assert "at most" in page.one(f"#{field}-problem").text
    assert "open" in page.one("#job-edit").attributes
    assert not page.has("#job-said .note")
    assert studio.jobs.get(job.id).project == ""


def test_a_form_comes_back_to_the_tab_on_which_it_stands(visit, train):
    job = train()
    form = html_of(visit.get(f"/models/{job.id}?tab=configuration")).one("form.job-edit")

    answer = visit.post(form["action"], data={"notes": "a note"})

    assert answer.headers["location"] == f"/jobs/{job.id}?tab=configuration"
    assert visit.get(answer.headers["location"]).headers["location"] == f"/models/{job.id}?tab=configuration"


def test_a_text_is_cleared_by_an_empty_field(visit, studio, train):
    job = train(notes="old", tags=("one",), project="faces")

    visit.post(f"/jobs/{job.id}/change", data={"notes": "", "tags": "", "project": ""})

    changed = studio.jobs.get(job.id)
    assert (changed.notes, changed.tags, changed.project, changed.name) == ("", (), "", "tiny")


def _failed(begun: Callable[..., Any], store: Store, studio: Studio, error: dict[str, Any]) -> Any:
    spec = {"backend": "tensorflow", "network": {"source": "file", "path": "mine.py", "text": _NETWORK}}
    end = AttemptEnded(time=14.0, outcome="failed", exit_code=5, reason="it failed", global_step=20, epoch=1)
    job = begun(ErrorRaised(time=14.0, error=error, traceback="Traceback: <all>"), end, spec=spec)
    assert store.jobs.move(job.id, ("running",), "failed", reason="it failed", ended=14.0)
    return studio.jobs.get(job.id)


def test_a_failure_shows_the_cause_the_users_line_and_the_trace(visit, store, studio, begun):
    error = {
        "error": "network_code", "message": "whole", "rule": "The network failed: <no y>.",
        "received": "mine.py, line 6", "advice": "Mend it.", "details": {"file": "mine.py", "line": 6},
    }  # fmt: skip
    job = _failed(begun, store, studio, error)

    page = visit.get(f"/models/{job.id}")

    text = _text(page)
    failure = html_of(page).one("#job-failure")
    assert failure.one("h2").text == "The network failed: <no y>."
    assert failure.one("h3").text == "mine.py, line 6"
    assert '<span class="line wrong"><span class="where">→   6</span>        return self.y' in page.text
    assert '<span class="where">    2</span>' in page.text
    assert f"/models/new?clone={job.id}&amp;line=6" in page.text
    assert failure.one("details#job-trace pre").text == "Traceback: <all>"
    assert "open" not in failure.one("#job-trace").attributes
    assert "Retry" in text
    note = html_of(visit.get(f"/models/new?clone={job.id}&line=6")).one("#network-problem")
    assert (note["data-line"], note["data-message"]) == ("6", "The network failed: <no y>."), "the clone marks the line"


def test_a_failure_before_the_first_point_leaves_nothing_empty(visit, store, train):
    job = train()
    assert store.jobs.move(job.id, ("queued",), "failed", reason="The dataset is gone.", ended=14.0)

    page = html_of(visit.get(f"/models/{job.id}"))

    assert page.one("#job-failure h2").text == "The dataset is gone."
    for empty in ("#curves", "#curve-tools", ".rate-chart", "#rate-form", "#job-metrics-table", "#tensorboard-title"):
        assert not page.has(empty)
    assert not page.has("#job-checkpoints-short .card-head")


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"file": "elsewhere.py", "line": 6},
        {"file": "mine.py", "line": 99},
        {"file": "mine.py", "line": None},
        "odd",
    ],
)
def test_a_failure_elsewhere_shows_no_lines(visit, store, studio, begun, details):
    job = _failed(begun, store, studio, {"error": "x", "message": "m", "rule": "It broke.", "details": details})

    page = visit.get(f"/models/{job.id}")

    assert page.status_code == 200
    assert "It broke." in page.text
    assert 'class="line' not in page.text


def test_the_best_checkpoint_is_marked_and_one_is_deleted(visit, store, studio, begun):
    saved = [
        CheckpointSaved(
            time=13.0,
            name=f"step-{step:08}",
            step=step,
            epoch=1,
            reason="epoch",
            scalars={"validation_accuracy": value},
        )
        for step, value in ((5, 0.5), (10, 0.9), (20, 0.7))
    ]
    job = begun(*saved)
    for each in saved:
        write_checkpoint(job.folder, each.step, each.epoch, validation_accuracy=each.scalars["validation_accuracy"])
    store.jobs.move(job.id, ("running",), "stopped", ended=14.0)
    page = visit.get(f"/models/{job.id}?tab=checkpoints").text
    rows = dict(re.findall(r'<tr id="(step-\d+)"[^>]*>(.*?)</tr>', page, re.S))

    assert list(rows) == ["step-00000020", "step-00000010", "step-00000005"], "the newest first"
    assert [name for name, row in rows.items() if 'title="validation accuracy 90.0\u202f%"' in row] == ["step-00000010"]
    assert "step 10, epoch 1 (validation accuracy 90.0 %)" in html_of(page).one("#job-checkpoints").text
    assert visit.post(f"/jobs/{job.id}/checkpoints/step-00000005/delete").status_code == 303
    assert [each.name for each in studio.jobs.checkpoints(job.id)] == ["step-00000010", "step-00000020"]
    again = visit.post(f"/jobs/{job.id}/checkpoints/step-00000005/delete")
    assert again.status_code == 404
    assert "There is no checkpoint" in _text(again)


def test_deleting_says_what_depends_on_the_job(visit, studio, train):
    job = train()
    other = train(model=job.id, spec={"name": "needs it"})

    asked = visit.get(f"/jobs/{job.id}/delete")
    assert html_of(asked).one(f'a[href="/models/{other.id}"]').text == "needs it"
    dialog = html_of(visit.part(f"/jobs/{job.id}/delete", "job-dialog"))
    assert dialog.has('dialog[data-island="dialog"] #delete-now')
    refused = visit.post(f"/jobs/{job.id}/delete")
    assert refused.status_code == 409
    assert "What other jobs use is kept" in _text(refused)

    deleted = visit.post(f"/jobs/{other.id}/delete")
    assert "needs it" in html_of(visit.get(deleted.headers["location"])).one("#home-said").text
    assert visit.post(f"/jobs/{job.id}/delete").status_code == 303
    assert studio.jobs.page(JobFilter()).total == 0
    assert html_of(visit.part(f"/models/{job.id}", "job-live")).has('#job-said [role="alert"]')


def test_the_log_is_a_text_and_its_end_comes_only_when_it_is_new(visit, train):
    job = train()
    log = Path(job.folder) / "log.txt"
    log.write_text("<script>one</script>\n")

    whole = visit.get(f"/jobs/{job.id}/log")
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.text == "<script>one</script>\n"
    page = visit.get(f"/models/{job.id}?tab=log")
    assert "&lt;script&gt;one&lt;/script&gt;" in page.text
    seen = re.search(r"/log\?seen=([0-9a-f]+)", page.text)
    assert seen is not None
    place = f"/jobs/{job.id}/log?seen={seen[1]}"
    assert visit.part(place, "job-log").status_code == 204
    log.write_text("two\n")
    assert "two\n</pre>" in visit.part(place, "job-log").text


def test_a_long_log_is_shown_part_by_part(visit, train):
    job = train()
    lines = "".join(f"line {number:07d}\n" for number in range(50_000))  # 650 kB
    (Path(job.folder) / "log.txt").write_text(lines)

    page = visit.get(f"/models/{job.id}?tab=log")
    assert "line 0049999" in page.text
    assert "line 0000000" not in page.text
    (earlier,) = re.findall(r'id="job-log-earlier" href="([^"]+)"', page.text)
    shown = []
    while earlier:
        part = visit.get(html.unescape(earlier))
        assert len(part.text) < 300_000
        shown[:0] = re.findall(r"line \d{7}", part.text)
        links = re.findall(r'href="([^"]+)">Earlier<', part.text)
        earlier = links[0] if links else ""
    tail = re.findall(r"line \d{7}", page.text)
    assert [*shown, *tail] == lines.split("\n")[:-1]
    assert "Newest" in visit.get(f"/jobs/{job.id}/log/part?before=1000").text
    assert visit.get(f"/jobs/{job.id}/log").text == lines


def test_curves_are_taken_away_as_csv(visit, begun):
    job = begun(spec={"name": "größer / 1"})

    answer = visit.get(f"/jobs/{job.id}/curves.csv")

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="gr-er-1-curves.csv"' in answer.headers["content-disposition"]
    assert answer.text.splitlines() == [
        "tag,step,epoch,time,value",
        "cost,10,1,11.0,2.0",
        "cost,20,1,12.0,nan",
        "learning_rate,20,1,12.0,0.01",
    ]
    assert visit.get(f"/jobs/{job.id}/curves.csv?tag=cost").text.count("\r\n") == 3


def test_who_may_only_look_gets_no_forms(visit_as, train):
    job = train()
    viewer = visit_as("viewer")

    page = viewer.get(f"/models/{job.id}")

    assert page.status_code == 200
    assert 'action="/jobs/' not in page.text
    assert viewer.post(f"/jobs/{job.id}/actions/stop").status_code == 403


@pytest.mark.parametrize(
    ("share", "start"),
    [(None, ""), (0.05, "Data loading keeps up"), (0.2, "Data loading is a little"), (0.9, "Data loading limits")],
)
def test_waiting_for_data_has_a_sentence(share, start):
    assert wait_advice(share).startswith(start)
    assert (wait_advice(share) == "") == (share is None)


def test_the_whole_spec_is_on_the_page(visit, train):
    job = train()

    shown = re.search(
        r'<pre id="spec-text" tabindex="0">(.*?)</pre>', visit.get(f"/models/{job.id}?tab=configuration").text, re.S
    )

    assert shown is not None
    assert json.loads(html.unescape(shown[1])) == json.loads(json.dumps(job.spec))


# ---- divergence and marks

_DIVERGED = DivergenceNoticed(
    time=12.0, state="diverged", tag="validation_cost", value=948.0, step=18, epoch=9, best=1.21, best_step=16,
    best_epoch=8, noticed_step=20,
)  # fmt: skip
_BY_HAND = HyperparameterChanged(time=11.5, name="learning_rate", value=5.0, previous=0.01, step=17, source="person")


def test_divergence_is_said_with_the_way_back(visit, begun):
    saved = [CheckpointSaved(time=13.0, name=f"step-{step:08}", step=step, epoch=step // 2) for step in (16, 18, 20)]
    job = begun(*saved, _DIVERGED)
    for each in saved:
        write_checkpoint(job.folder, each.step, each.epoch)
    page = visit.get(f"/models/{job.id}").text

    banner = re.search(r'id="job-diverged".*?</section>', page, re.S)[0]
    assert _DIVERGED_TEXT.removesuffix(".") in _words(banner)
    way = html_of(visit.get(f"/models/{job.id}")).one("#job-from-sound")["href"]
    form = html_of(visit.get(way))
    assert form.one("#previous_checkpoint option[selected]")["value"] == "step-00000016", "the newest one before it"
    assert form.one("#learning_rate")["value"] == "0.001", "with a lower rate"
    assert "diverged" in visit.get("/").text


def test_divergence_without_a_checkpoint_before_says_so(visit, begun):
    job = begun(_DIVERGED)

    assert html_of(visit.get(f"/models/{job.id}")).has("#job-no-sound-checkpoint")


_NOT_FINITE = {
    "error": "not_finite",
    "message": "The loss became NaN at step 4 (epoch 1).",
    "rule": "No.",
    "details": {"step": 4, "epoch": 1, "tag": "cost", "non_finite": "NaN", "learning_rate": 1000.0},
}


@pytest.fixture
def diverged(begun, store):
    """Return a training that failed, for its loss became NaN."""
    end = AttemptEnded(time=13.0, outcome="failed", exit_code=6, reason="The loss became NaN.", global_step=4)
    error = ErrorRaised(time=13.0, error=_NOT_FINITE, traceback="one\ntwo", step=4)
    job = begun(error, end, spec={"learning_rate": 1000.0})
    assert store.jobs.move(job.id, ("running",), "failed", ended=13.0, reason=end.reason)
    return job


def test_a_diverged_run_has_one_main_action(visit, studio, diverged):
    page = html_of(visit.get(f"/models/{diverged.id}"))

    assert page.one("#job-diverged h2").text == "Diverged: the loss became NaN at step 4, learning rate 1000"
    assert page.one("#job-chip").text == "diverged"
    assert [each.text for each in page.all(".primary")] == ["Clone with learning rate 0.01"]
    assert page.has("#job-more-menu #job-retry"), "to train the same again leads to the same"
    assert not page.has("#failure-title"), "it is said once"
    assert page.has("#job-trace")
    text = visit.get(f"/models/{diverged.id}").text
    assert text.index('id="job-trace"') > text.index('id="curves"'), "what was learned comes first"
    assert page.one("#job-clone")["class"] == "button", "it is the only action on a phone"
    events = [each.text for each in page.all("#job-events .event-text")]
    assert "Failed" not in events, "the divergence says why it ended"

    form = html_of(visit.get(page.one("#job-clone-slower")["href"]))
    assert form.one("#learning_rate")["value"] == "0.01"
    assert form.one("#epochs")["value"] == str(studio.jobs.get(diverged.id).spec["epochs"])


def _record_of_last_batches(job, **batch):
    """Write what a worker writes when its loss became NaN."""

    def step(number, cost, finite=True):
        images = {"shape": [4, 8, 8, 1], "dtype": "float32", "finite": finite, "least": 0.0, "largest": 255.0}
        labels = {"shape": [4], "dtype": "int64", "finite": True, "least": 0, "largest": 11}
        arrays = {"batch/0": images, "batch/1": labels}
        return {"file": "", "step": number, "epoch": 1, "keys": [], "values": {"cost": cost}, "arrays": arrays}

    folder = Path(job.folder, "black_box")
    folder.mkdir()
    steps = [step(2, 2.5), step(3, 4e35), step(4, "NaN", finite=False)]
    (folder / "black_box.json").write_text(json.dumps({"step": 4, "tag": "cost", "steps": steps, "batch": batch}))


def _rows(page, selector):
    return [re.sub(r"\s+", " ", each.text) for each in page.all(selector)]


def test_a_diverged_run_shows_its_last_steps(visit, diverged):
    _record_of_last_batches(diverged, split="train", rows=[7, 1204, 3, 5], inputs="image-classification", classes=10)
    page = html_of(visit.get(f"/models/{diverged.id}"))

    assert _rows(page, ".last-steps thead th") == ["Step", "Loss", "Learning rate"]
    assert [each.text for each in page.all(".last-steps td")] == ["2.5", "–", "4e35", "–", "NaN", "1000"]
    assert page.one(".last-steps .is-bad th").text == "4"
    assert _rows(page, "#job-last-loss dd") == ["4e35 step 3"]
    assert "7, 1,204, 3, 5" in page.one("#job-last-batch").text, "its data is no dataset"
    assert _rows(page, "#job-checked li") == [
        "Problem: Learning rate 1000, typical 0.01",
        "Problem: Images of the last batch not finite, 0 to 255",
        "Problem: Labels of the last batch 0 to 11, 10 classes",
        "Passed: Batches before it 2, finite",
        "Passed: Precision float32",
        "Unknown: Gradient clipping off",
    ]
    assert page.one("#job-find-rate")["href"] == f"/models/new?clone={diverged.id}#test-batch"


def test_samples_of_the_last_batch_lead_to_their_pages(visit, store, begun, pets):
    error = ErrorRaised(time=13.0, error=_NOT_FINITE, traceback="", step=4)
    job = begun(error, spec={"learning_rate": 1000.0}, dataset=pets)
    assert store.jobs.move(job.id, ("running",), "failed", ended=13.0, reason="The loss became NaN.")
    _record_of_last_batches(job, split="train", rows=[7, 0, 3, 5], inputs="image-classification", classes=2)
    page = html_of(visit.get(f"/models/{job.id}"))

    ways = [each["href"] for each in page.all(".last-batch a")]
    assert ways == [f"/datasets/{pets}/samples/train/{row}" for row in (7, 0, 3, 5)]
    assert all(visit.get(way).status_code == 200 for way in ways)
    image = page.all(".last-batch img")[0]["src"]
    assert visit.get(image).headers["content-type"].startswith("image/")
    assert "step 4, 4 images" in page.one("#job-last-batch").text


def _damaged(least, classes):
    array = {"shape": [4], "dtype": "int64", "finite": True, "least": least, "largest": 3}
    step = {"step": 4, "epoch": 1, "values": {"cost": 2.5}, "arrays": {"batch/1": array}}
    return json.dumps({"steps": [step], "batch": {"classes": classes}})


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"steps": [{}]}', '{"steps": 1}', _damaged("low", 10), _damaged(0, "ten")]
)
def test_a_diverged_run_of_before_has_no_last_batch(visit, diverged, text):
    folder = Path(diverged.folder, "black_box")
    folder.mkdir()
    (folder / "black_box.json").write_text(text)
    page = html_of(visit.get(f"/models/{diverged.id}"))

    assert not page.has("#last-batch-title")
    assert _rows(page, "#job-checked li")[0] == "Problem: Learning rate 1000, typical 0.01"
    assert not any("batch" in each for each in _rows(page, "#job-checked li")), "nothing that was not checked"


def test_a_run_whose_loss_rose_shows_the_logged_values(visit, begun):
    points = [
        ScalarLogged(time=11.0, tag="validation_cost", value=value, step=step, epoch=step // 2)
        for step, value in ((14, 1.3), (16, 1.21), (18, 948.0), (20, 950.0), (22, 1.0))
    ]
    page = html_of(visit.get(f"/models/{begun(*points, _DIVERGED).id}"))

    assert _rows(page, ".last-steps thead th") == ["Step", "Validation loss", "Loss", "Learning rate"]
    steps = [row.text.split()[:2] for row in page.all(".last-steps tr")[1:]]
    assert steps == [["10", "–"], ["14", "1.3"], ["16", "1.21"], ["18", "948"], ["20", "950"]]
    assert page.one(".last-steps .is-bad th").text == "18"


@pytest.mark.parametrize("text", ["outcome = diverged", "state = diverged", "state != failed and outcome=diverged"])
def test_diverged_runs_are_found(visit, begun, store, diverged, text):
    other = begun(spec={"name": "another"})
    assert store.jobs.move(other.id, ("running",), "done", ended=13.0)
    page = visit.get("/", params={"q": text})

    assert page.status_code == 200
    assert f'"/models/{other.id}"' not in page.text
    assert (f'"/models/{diverged.id}"' in page.text) is ("!=" not in text)


def test_interventions_and_attempts_are_marks_in_a_table(visit, begun, studio, store):
    job = begun(_BY_HAND, _DIVERGED, AttemptEnded(time=13.0, outcome="stopped", exit_code=75, reason="paused by ann"))
    again = AttemptStarted(time=20.0, attempt=2, pid=8, host="here", backend="null", release="1", global_step=20)
    store.events.take(job.id, 1, 2, [again])

    marks = [(mark.kind, mark.step, mark.text) for mark in studio.jobs.marks(job.id)]
    assert marks == [
        ("intervention", 17, "Learning rate set by hand: 0.01 to 5"),
        ("divergence", 18, _DIVERGED_TEXT),
        ("attempt", 20, "Attempt 2 after: paused by ann"),
    ]
    page = html_of(visit.get(f"/models/{job.id}"))
    flags = [each.text for each in page.all("#job-events .event-mark") if "role" in each.attributes]
    assert sorted(flags) == ["1", "2", "3"]
    drawn = json.loads(page.one("#job-metrics")["data-marks"])
    assert [each["step"] for each in drawn] == [step for _, step, _ in marks]


_OTHER = "Same state and data, other arithmetic: threads 1 → 2."


def _recorded(**fields: Any) -> ArithmeticRecorded:
    return ArithmeticRecorded(time=20.0, values={"threads": 2, "numpy": "2.1"}, **fields)


def test_other_arithmetic_of_a_resume_is_said_everywhere(visit, begun, studio, store):
    job = begun(_recorded(), AttemptEnded(time=13.0, outcome="stopped", exit_code=75, reason="paused by ann"))
    again = AttemptStarted(time=20.0, attempt=2, pid=8, host="here", backend="null", release="1", global_step=20)
    changed = {"threads": [1, 2]}
    recorded = _recorded(checkpoint="step-00000020", verdict="other", changed=changed, text=_OTHER)
    store.events.take(job.id, 1, 2, [again, recorded])

    log = visit.get(f"/models/{job.id}?tab=log")
    assert _OTHER in _text(log)
    folded = html_of(log).all("#job-attempts details")[0]
    assert ("open" in folded.attributes, [each.text for each in folded.all("dt")]) == (False, ["NumPy", "Threads"])
    answer = visit.get(f"/api/v1/jobs/{job.id}/attempts").json()
    assert [(each["arithmetic"] or {}).get("text") for each in answer] == ["", _OTHER]
    (resumed,) = [each for each in studio.jobs.timeline(job.id) if each.kind == "resumed"]
    assert resumed.detail == f"after: paused by ann; {_OTHER}"


@pytest.mark.parametrize(
    ("events", "said"),
    [([], "need not be exact: arithmetic not recorded"), ([_recorded()], "exact with the same arithmetic")],
)
def test_only_a_job_with_a_record_is_said_to_resume_exactly(visit, begun, studio, store, events, said):
    job = begun(*events, AttemptEnded(time=13.0, outcome="stopped", exit_code=75, reason="paused by ann"))
    assert store.jobs.move(job.id, ("running",), "stopped")
    page = html_of(visit.get(f"/models/{job.id}"))
    assert said in page.one("#job-resume-form button")["title"]
    text = _text(visit.get(f"/models/{job.id}?tab=log"))
    assert ("Arithmetic not recorded." in text) == (not events)


_DIVERGED_TEXT = "Diverged: the validation loss rose to 948 at epoch 9 (best 1.21 at epoch 8)."


def test_a_best_value_without_its_checkpoint_is_noted(visit, begun):
    curve = [(20, 1, 0.2329), (40, 2, 0.14), (60, 3, 0.1575)]
    points = [
        ScalarLogged(time=14.0, tag="validation_accuracy", value=value, step=step, epoch=epoch)
        for step, epoch, value in [(0, 0, 0.9), *curve]
    ]
    job = begun(*points, CheckpointSaved(time=15.0, name="step-00000060", step=60, epoch=3))
    write_checkpoint(job.folder, 60, 3, validation_accuracy=0.1575)

    assert "23.3 % at epoch 1" in _words(visit.get(f"/models/{job.id}").text)


def _words(content: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", content))).strip()
