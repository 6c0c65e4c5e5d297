"""The studio's benchmark at a tiny size: what it makes is what it says, and its results have their shape."""

import json
from collections import Counter

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("fastapi", reason="the extra `studio` is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

from bench.parts.studio_questions import questions
from bench.parts.studio_workspace import Size, fill_store, make_folders
from bench.studio import StudioOptions, run_studio
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


@pytest.mark.slow
def test_the_results_have_a_row_for_each_question(tmp_path):
    options = StudioOptions(size=TINY, rounds=1, times=3, streams=4, round_s=1.0, idle_s=0.5, databases=("SQLite",))
    report = run_studio(options)
    content = json.loads(json.dumps(report.as_dict()))
    (figures,) = content["databases"]
    assert figures["database"] == "SQLite"
    assert [each["question"] for each in figures["answers"]] == [
        each.name for each in questions(TINY.jobs, "long", TINY.long_points, ["ended"] * 5)
    ]
    for each in figures["answers"]:
        assert each["answer_bytes"] > 20, each
        for name in ("quiet_ms", "loaded_ms", "floor_ms"):
            assert 0 < each[name]["median"] <= each[name]["p95"] <= each[name]["max"]
    assert len(figures["notices_shares"]) == len(figures["streams_shares"]) == 1
    assert figures["streams"] == 4
    assert 0 < figures["changes"] * 3 <= figures["notices"]
    assert report.text().count("\n| ") == 1 + len(figures["answers"])
