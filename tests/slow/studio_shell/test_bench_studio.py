"""The parts of the studio's benchmark: what it makes is what it says, what it asks is answered, its report."""

import json
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("fastapi", reason="the extra `studio` is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

import httpx

from bench.parts.studio_processes import floor, load, serve, workers
from bench.parts.studio_questions import Answers, ask, questions
from bench.parts.studio_report import DatabaseFigures, StudioReport
from bench.parts.studio_workspace import Size, fill_store, make_folders
from ziggurat.entities import JobFilter
from ziggurat.store import Store

TINY = Size(jobs=80, points=4000, long_points=500, queued=4)


def test_the_workspace_holds_what_the_benchmark_says(tmp_path):
    workspace = make_folders(tmp_path / "workspace", TINY)
    events = fill_store(workspace, str(tmp_path / "workspace" / "studio.db"))
    with Store.open(tmp_path / "workspace" / "studio.db") as store:
        counts = store.jobs.counts()
        assert (sum(counts.values()), counts["queued"], counts["running"], counts["stopping"]) == (80, 4, 8, 2)
        assert min(counts.values()) > 0
        page = store.jobs.page(JobFilter(limit=100))
        assert {job.kind for job in page.jobs} == {"train", "dataset", "evaluate", "infer", "export"}
        points = sum(curve.count for job in page.jobs for curve in job.scalars.values())
        assert 0.8 * TINY.points < points < 1.2 * TINY.points
        assert events > points
        long = store.curves.curve(workspace.long[0], "train/loss")
        assert (long.total, long.steps[-1]) == (500, 5000)
        assert [job.id for job in page.jobs if job.is_active][::-1] == list(workspace.active)


def test_the_same_seed_makes_the_same_jobs(tmp_path):
    made = [make_folders(tmp_path / name, TINY) for name in ("one", "two")]
    assert list(made[0].jobs) == list(made[1].jobs)
    states = [Counter(job.state for job in each.jobs.values()) for each in made]
    assert states[0] == states[1]


@pytest.mark.nightly
def test_every_question_is_answered(tmp_path):
    workspace = make_folders(tmp_path / "workspace", TINY)
    fill_store(workspace, str(tmp_path / "workspace" / "studio.db"))
    asked = questions(TINY.jobs, workspace.long[0], TINY.long_points, workspace.ended)
    active = [Path(workspace.jobs[job_id].job.folder) for job_id in workspace.active]
    with workers(active), serve(workspace.folder, None) as server, floor() as bare, httpx.Client(timeout=60) as client:
        for each in asked:
            _, content = ask(client, each.url(server.address), 1)
            assert len(content) > 20, each.name
            client.put(f"{bare}/bytes", content=content).raise_for_status()
            assert ask(client, f"{bare}/bytes", 1)[1] == content
        with load(server.address, workspace.ended[:20], streams=3, per_second=50) as came:
            ask(client, asked[0].url(server.address), 1)
        assert came.streams == 3
        assert server.resident_bytes() > 0


def test_the_report_has_a_row_for_each_question():
    answers = [Answers(name, 2000, [4, 6, 5], [9, 8, 7], [1, 2, 3], [3, 1]) for name in ("jobs", "a curve")]
    shares = {"notices_shares": [0.1, 0.1], "streams_shares": [0.12, 0.14]}
    figures = DatabaseFigures(
        database="SQLite", filled_s=2, answers=answers, streams=4, notices=40, changes=10, **shares
    )
    report = StudioReport("Studio", ["a note"], [figures], {"PostgreSQL": "no server can be started"})
    assert report.text().splitlines()[-3:] == [
        "| jobs | 2.0 | 5.0 | 6.0 | 6.0 | 8.0 | 9.0 | 2.0 | 2.0 | 2.5 |",
        "| a curve | 2.0 | 5.0 | 6.0 | 6.0 | 8.0 | 9.0 | 2.0 | 2.0 | 2.5 |",
        "Left out: PostgreSQL (no server can be started)",
    ]
    assert "40 notices of 10 changes" in report.text()
    (told,) = json.loads(json.dumps(report.as_dict()))["databases"]
    assert [each["question"] for each in told["answers"]] == ["jobs", "a curve"]
    assert told["answers"][0]["quiet_ms"] == {"median": 5, "p95": 6, "max": 6}
