"""Routes of programs: submission, checks before a job is made, files, clones, rights."""

import io
import zipfile
from pathlib import Path

import pytest

from ziggurat.layout import JobFolder

SCRIPT = "import sys\nprint(sys.argv)\n"


def submit(ask, **body):
    return ask("POST", "/api/v1/programs", json=body)


def test_a_text_becomes_a_job(ask, studio):
    spec = {"script": "train.py", "arguments": ["--x", "1 2"], "gpus": 0, "memory_gb": 2}
    answer = submit(ask, text=SCRIPT, spec=spec, tags=["one"], priority=3)
    assert answer.status_code == 201
    job = answer.json()
    assert (job["kind"], job["name"], job["network"], job["state"]) == ("program", "train", "train.py", "queued")
    assert job["spec"]["arguments"] == ["--x", "1 2"]
    assert job["needs"]["memory_bytes"] == 2_000_000_000
    assert (job["tags"], job["priority"]) == (["one"], 3)
    folder = JobFolder(Path(studio.jobs.get(job["id"]).folder))
    assert (folder.program / "train.py").read_text() == SCRIPT
    assert ask("GET", f"/api/v1/programs/{job['id']}/files").json() == [{"name": "train.py", "size_bytes": len(SCRIPT)}]
    assert ask("GET", f"/api/v1/programs/{job['id']}/text").json() == {"text": SCRIPT}
    assert ask("GET", "/api/v1/jobs?kind=program").json()["total"] == 1


def test_an_uploaded_archive_becomes_a_job(ask):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("project/main.py", "import tools")
        archive.writestr("project/tools.py", "x = 1")
    upload = ask("POST", "/api/v1/uploads?name=project.zip", content=target.getvalue()).json()
    job = submit(ask, source=upload["source"]).json()
    assert job["spec"]["script"] == "main.py"
    files = ask("GET", f"/api/v1/programs/{job['id']}/files").json()
    assert [each["name"] for each in files] == ["main.py", "tools.py"]
    assert ask("GET", f"/api/v1/programs/{job['id']}/text?name=tools.py").json() == {"text": "x = 1"}


@pytest.mark.parametrize(
    ("body", "status", "rule"),
    [
        ({}, 422, "No program is given: send a Python script"),
        ({"text": "x ="}, 422, "program.py, line 1: Syntax error: invalid syntax."),
        ({"text": " "}, 422, "`program.py` is empty."),
        ({"text": SCRIPT, "source": "/tmp/x"}, 400, "The program is given both as text and by its place"),
        ({"source": "/etc"}, 400, "`/etc` is in no folder that is allowed in this studio"),
        ({"text": SCRIPT, "spec": {"script": "../x.py"}}, 422, "`script` must be a Python file below the folder"),
        ({"text": SCRIPT, "spec": {"argument": []}}, 422, "`argument` is not a field of this spec."),
        (
            {"text": SCRIPT, "spec": {"kind": "train"}},
            422,
            "The spec is of kind train, and a program has one of kind program",
        ),
        ({"parent": "20200101-000000-abcd"}, 404, "There is no"),
    ],
)
def test_what_cannot_run_makes_no_job(ask, body, status, rule):
    answer = submit(ask, **body)
    assert answer.json()["rule"].startswith(rule)
    assert answer.status_code == status
    assert ask("GET", "/api/v1/jobs").json()["total"] == 0


def test_a_clone_has_the_files_of_its_parent(ask):
    first = submit(ask, text=SCRIPT, spec={"script": "train.py"}).json()
    request = ask("GET", f"/api/v1/jobs/{first['id']}/request").json()
    again = submit(ask, spec={**request["spec"], "arguments": ["--more"]}, parent=first["id"]).json()
    assert (again["parent"], again["spec"]["arguments"]) == (first["id"], ["--more"])
    assert ask("GET", f"/api/v1/programs/{again['id']}/text").json() == {"text": SCRIPT}
    changed = submit(ask, text="print(1)", parent=first["id"]).json()
    assert changed["spec"]["script"] == "train.py"
    assert ask("GET", f"/api/v1/programs/{changed['id']}/text").json() == {"text": "print(1)"}


def test_a_script_is_checked_without_a_job(ask):
    assert ask("POST", "/api/v1/programs/check", json={"text": SCRIPT}).json() == {"findings": []}
    (found,) = ask("POST", "/api/v1/programs/check", json={"text": "x = 1\ny ="}).json()["findings"]
    assert (found["line"], found["level"], found["rule"]) == (2, "error", "Syntax error: invalid syntax.")


def test_looking_is_no_right_to_submit(ask_as):
    for browser in (ask_as("viewer", "read"), ask_as("trainer", "read")):
        assert submit(browser, text=SCRIPT).status_code == 403


def test_files_of_other_jobs_are_no_programs(ask, train):
    job = train()
    assert ask("GET", f"/api/v1/programs/{job['id']}/files").status_code == 409
    program = submit(ask, text=SCRIPT).json()
    wrong = ask("GET", f"/api/v1/programs/{program['id']}/text?name=../spec.json")
    assert wrong.json()["rule"] == "`../spec.json` is not a known file of this program."
