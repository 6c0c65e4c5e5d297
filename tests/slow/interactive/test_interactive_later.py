"""Runs of a session without a studio: made in any thread, and found by a studio that is opened later."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ziggurat as zig
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio, reindex


def test_a_studio_finds_a_run_that_a_thread_trained(tmp_path):
    workspace = tmp_path / "workspace"
    zig.connect(workspace)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(zig.train, "digits", "mlp", 1, name="early", progress=False).result()

    settings = Settings(workspace=workspace)
    reindex(settings)
    with open_studio(settings) as studio:
        found = studio.jobs.get(Path(run.id).name)

    assert (found.name, found.state, found.kind) == ("early", "done", "train")
    assert Path(found.folder) == Path(run.id)


def test_a_worker_that_cannot_start_says_why(tmp_path, monkeypatch):
    zig.connect(tmp_path / "workspace")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "ziggurat.py").write_text("raise SystemExit('no such installation')")

    with ThreadPoolExecutor(1) as pool:
        failed = pool.submit(zig.train, "digits", "mlp", 1, progress=False).exception()

    assert "did not start" in str(failed)
    assert "no such installation" in str(failed)
