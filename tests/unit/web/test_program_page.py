"""The page that submits a program, and the page of its job."""

import io
import zipfile
from pathlib import Path

import pytest

from tests.unit.web.html_page import html_of
from ziggurat.entities import Share
from ziggurat.events import AttemptEnded, AttemptStarted, ErrorRaised, ScalarLogged
from ziggurat.layout import JobFolder
from ziggurat.store import Store
from ziggurat.workspace.new_jobs import JobRequest

SCRIPT = "import sys\nprint(sys.argv)\n"


def only_job(studio):
    (job,) = studio.jobs.queue()
    return job


def test_the_form_is_offered_on_the_runs_page(visit):
    assert 'href="/programs/new"' in visit.get("/").text
    page = visit.get("/programs/new")
    assert page.status_code == 200
    for name in ("file", "text", "arguments", "script", "gpus", "memory_gb", "priority", "name"):
        assert f'name="{name}"' in page.text


def test_an_uploaded_script_is_submitted(visit, studio):
    fields = {"origin": "file", "arguments": "--name 'a b' --x", "gpus": "", "tags": "one, two"}
    answer = visit.post("/programs/new", data=fields, files={"file": ("train.py", SCRIPT)})
    job = only_job(studio)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/jobs/{job.id}"
    assert (job.kind, job.name, job.tags) == ("program", "train", ("one", "two"))
    assert job.spec["arguments"] == ["--name", "a b", "--x"]


def test_a_script_from_the_editor_is_submitted(visit, studio):
    visit.post("/programs/new", data={"origin": "text", "text": SCRIPT.replace("\n", "\r\n"), "name": "mine"})
    job = only_job(studio)
    assert (job.name, studio.programs.text(job.id)) == ("mine", SCRIPT)


@pytest.mark.parametrize(
    ("fields", "file", "said"),
    [
        ({"origin": "file"}, None, "No program is given: send a Python script"),
        ({"origin": "file"}, ("empty.py", ""), "is empty"),
        ({"origin": "file"}, ("notes.txt", "hello"), "Choose a file that ends in"),
        ({"origin": "file"}, ("x.py", "x = 1\ny = ="), "x.py, line 2: Syntax error"),
        ({"origin": "file"}, ("x.zip", "no archive"), "cannot be read as a zip file"),
        ({"origin": "text", "text": "def f(:"}, None, "Go to line 1"),
        ({"origin": "text", "text": SCRIPT, "arguments": "'open"}, None, "No closing quotation"),
        ({"origin": "text", "text": SCRIPT, "gpus": "many"}, None, "whole number from 0 to 64"),
        ({"origin": "text", "text": SCRIPT, "memory_gb": "1,5"}, None, "Memory is a number of gigabytes"),
        ({"origin": "text", "text": SCRIPT, "priority": "x"}, None, "A priority must be a whole number"),
    ],
)
def test_what_is_wrong_is_said_in_the_form(visit, studio, fields, file, said):
    answer = visit.post("/programs/new", data=fields, files={"file": file or ("", "")})
    assert answer.status_code == 422
    assert said in answer.text
    assert "The program was not submitted." in answer.text
    assert studio.jobs.queue() == []


def test_an_archive_without_a_script_names_the_choice(visit, studio):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("a.py", "x = 1")
        archive.writestr("b.py", "x = 1")
    sent = {"file": ("p.zip", target.getvalue())}
    answer = visit.post("/programs/new", data={"origin": "file"}, files=sent)
    assert answer.status_code == 422
    assert "Which of the 2 Python files to run is not known" in answer.text
    source = answer.text.partition('name="source" value="')[2].partition('"')[0]
    assert source.endswith("p.zip")  # it need not be sent again
    visit.post("/programs/new", data={"origin": "file", "source": source, "script": "b.py"}, files={"file": ("", "")})
    assert only_job(studio).spec["script"] == "b.py"


def test_a_place_that_is_no_upload_is_not_taken(visit, studio, tmp_path):
    (tmp_path / "secret.py").write_text("x = 1")
    fields = {"origin": "file", "source": str(tmp_path / "secret.py")}
    assert visit.post("/programs/new", data=fields).status_code == 422
    assert studio.jobs.queue() == []


def test_the_page_of_a_program_shows_it(visit, studio):
    fields = {"origin": "text", "text": "x = '<b>'\n", "arguments": "--epochs 3", "name": "mine"}
    visit.post("/programs/new", data=fields)
    job = only_job(studio)
    page = visit.get(f"/jobs/{job.id}?tab=program").text
    assert "x = &#39;&lt;b&gt;&#39;" in page
    assert "python program.py --epochs 3" in page
    assert f"/programs/new?clone={job.id}" in page
    assert visit.get(f"/models/{job.id}").headers["location"] == f"/jobs/{job.id}"
    for tab in ("overview", "checkpoints", "log", "configuration", "system"):
        assert visit.get(f"/jobs/{job.id}?tab={tab}").status_code == 200
    assert "Predictions" not in page


def test_a_program_counts_steps_where_it_has_no_epochs(visit, studio):
    visit.post("/programs/new", data={"origin": "text", "text": SCRIPT, "name": "mine"})
    job = only_job(studio)
    points = [ScalarLogged(time=11.0, tag="val/accuracy", value=0.1 * step, step=step, epoch=0) for step in (1, 2, 3)]
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job.id, ("queued",), "running", started=10.0)
        assert store.events.take(job.id, 0, 1, points)
        assert store.jobs.move(job.id, ("running",), "done", ended=12.0)

    page = html_of(visit.get(f"/jobs/{job.id}"))

    assert page.one("#job-best-value dd").text == "30.0 % step 3"
    assert page.one(".job-status progress")["class"] == "done"
    assert not page.has("#rate-title"), "it has no learning rate"
    best = html_of(visit.get("/")).one(f"#row-{job.id} .c-best")
    assert best.one(".at").text == "step 3"


def test_a_program_with_curves_shows_values_and_start(visit, studio):
    visit.post("/programs/new", data={"origin": "text", "text": SCRIPT, "arguments": "--name 'a b'"})
    job = only_job(studio)
    with Store.open(studio.root / "studio.db") as store:
        store.jobs.move(job.id, ("queued",), "running", started=1.0)
        curves = {"train/loss": [2.0, 0.5, 0.75], "val_accuracy": [0.5, 0.9, 0.8], "temperature": [3.0, 1.0, 2.0]}
        points = [
            ScalarLogged(time=2.0 + step, tag=tag, value=value, step=10 * step, epoch=0)
            for tag, values in {**curves, "lr": [float("nan")]}.items()
            for step, value in enumerate(values)
        ]
        store.events.take(job.id, 0, 1, points)
    page = html_of(visit.get(f"/jobs/{job.id}"))

    cells = [each.text for each in page.all(".logged-values td")]
    rows = {each.text: cells[3 * at : 3 * at + 3] for at, each in enumerate(page.all(".logged-values tbody th"))}
    assert rows == {
        "train/loss": ["2", "0.5", "0.75"],
        "val_accuracy": ["50.0 %", "90.0 %", "80.0 %"],
        "temperature": ["3", "–", "2"],  # nobody knows whether high or low is good
        "lr": ["NaN", "–", "NaN"],
    }
    assert [each["title"] for each in page.all(".logged-values td[title]")] == ["step 10", "step 10"]
    assert page.one("#started-command").text == "python program.py --name 'a b'"
    assert "From" not in page.one("#job-started").text, "a browser does not say where a file was"
    facts = page.one("#job-started dl").text.split()
    assert facts == ["Code", "1", "file", "Capture", "off", "Seed", "0", "GPUs", "none"]

    live = visit.part(f"/jobs/{job.id}", "job-live").text
    assert 'id="job-values"' in live
    assert "temperature" in live


def test_a_program_says_its_folder_and_commit(visit, studio):
    spec = {"script": "train.py", "origin": "/home/ann/digits, commit 4f1c2a9d0b1e, clean"}
    job = studio.programs.create(JobRequest(spec=spec), text=SCRIPT)
    started = html_of(visit.get(f"/jobs/{job.id}")).one("#job-started")
    assert spec["origin"] in started.text


def test_the_processes_of_several_nodes_have_logs_of_their_own(visit, studio):
    visit.post("/programs/new", data={"origin": "text", "text": SCRIPT, "nodes": "2"})
    job = only_job(studio)
    assert (job.spec["nodes"], job.needs.nodes) == (2, 2)
    shares = (Share("a", (), (0,)), Share("b", (), (1,)))
    with Store.open(studio.root / "studio.db") as store:
        store.jobs.move(job.id, ("queued",), "running", placement=shares)
    folder = JobFolder(Path(job.folder)).of_rank(1)
    folder.path.mkdir(parents=True)
    folder.log.write_text("rank 1 says so")
    page = visit.get(f"/jobs/{job.id}?tab=log").text
    assert "This is the log of rank 0, on node a." in page
    assert f'<a href="/jobs/{job.id}/log?rank=1">rank 1</a> on b.' in page
    assert visit.get(f"/jobs/{job.id}/log?rank=1").text == "rank 1 says so"
    assert "<dt>Nodes</dt><dd>a, b</dd>" in visit.get(f"/jobs/{job.id}?tab=program").text


def test_a_clone_opens_with_everything(visit, studio):
    fields = {"origin": "text", "text": SCRIPT, "arguments": "--name 'a b'", "name": "mine", "memory_gb": "1.5"}
    visit.post("/programs/new", data=fields)
    page = visit.get(f"/programs/new?clone={only_job(studio).id}").text
    for shown in ("print(sys.argv)", "--name &#39;a b&#39;", 'value="mine"', 'value="1.5"', "A clone of"):
        assert shown in page


def test_the_clone_of_a_failed_program_shows_error_and_line(visit, studio):
    visit.post("/programs/new", data={"origin": "text", "text": "x = 1\ny = x / 0\n"})
    job = only_job(studio)
    error = {"rule": "ZeroDivisionError: division by zero", "details": {"file": job.spec["script"], "line": 2}}
    end = AttemptEnded(time=14.0, outcome="failed", exit_code=1, reason="it failed", global_step=0, epoch=0)
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job.id, ("queued",), "running", started=10.0, health="alive")
        assert store.events.take(job.id, 0, 1, [ErrorRaised(time=14.0, error=error, traceback="Traceback: …"), end])
        assert store.jobs.move(job.id, ("running",), "failed", reason="it failed", ended=14.0)
    note = html_of(visit.get(f"/programs/new?clone={job.id}&line=2")).one("#network-problem")
    assert note["data-line"] == "2"
    assert "Line 2: ZeroDivisionError: division by zero" in note.text


def test_a_failed_program_says_its_error_once(visit, studio):
    visit.post("/programs/new", data={"origin": "text", "text": "x = 1\ny = x / 0\n"})
    job = only_job(studio)
    error = {
        "rule": "ZeroDivisionError: division by zero.",
        "advice": "Correct the program in a clone; the whole traceback is in log.txt of the job.",
        "details": {"file": job.spec["script"], "line": 2},
    }
    reason = "ZeroDivisionError: division by zero. Correct the program in a clone."
    end = AttemptEnded(time=14.0, outcome="failed", exit_code=1, reason=reason, global_step=0, epoch=0)
    begin = AttemptStarted(time=10.0, attempt=1, pid=7, host="here", backend="", release="1")
    with Store.open(studio.root / "studio.db") as store:
        assert store.jobs.move(job.id, ("queued",), "running", started=10.0, health="alive")
        said = [begin, ErrorRaised(time=14.0, error=error, traceback="Traceback: …"), end]
        assert store.events.take(job.id, 0, 1, said)
        assert store.jobs.move(job.id, ("running",), "failed", reason=reason, ended=14.0)
    page = html_of(visit.get(f"/jobs/{job.id}"))
    assert page.one("#failure-title").text == "ZeroDivisionError: division by zero."
    assert page.one(".job-failure .advice").text == "Correct the program in a clone.", "the traceback is below"
    assert page.has("#job-trace")
    failed = [each.text for each in page.all("#job-events .event-text") if each.text.startswith("Failed")]
    assert failed == ["Failed"]


def test_a_script_is_checked_while_it_is_typed(visit):
    part = visit.post("/programs/new/check", data={"text": "x = 1\ny ="}, headers={"HX-Request": "true"}).text
    assert 'data-goto-line="2"' in part
    assert "data-goto-line" not in visit.post("/programs/new/check", data={"text": "x = 1"}).text


def test_viewers_do_not_submit(visit_as):
    visit = visit_as("viewer")
    assert visit.get("/programs/new").status_code == 403
    assert visit.post("/programs/new", data={"origin": "text", "text": SCRIPT}).status_code == 403


def test_the_list_shows_no_image_of_a_run_without_data(visit, studio):
    visit.post("/programs/new", data={"origin": "text", "text": "x = 1\n", "name": "mine"})
    row = html_of(visit.get("/")).one(f"#row-{only_job(studio).id}")
    assert row.one(".c-source").text == "–"
    assert not row.has(".c-source svg")
