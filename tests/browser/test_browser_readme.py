"""Shows that the README's two commands are what they say: one opens a studio that trains, one is what CI runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]
FIRST_POINT_WITHIN_S = 170


def _commands() -> list[str]:
    block = re.search(r"```bash\n(make .*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    return [line.partition("#")[0].strip() for line in block[1].splitlines()]


@pytest.mark.timeout(600)
def test_there_are_two_and_ci_runs_the_second() -> None:
    demo, test = _commands()
    assert (demo, test) == ("make demo", "make test")
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "for target in setup test test-rest; do" in script
    assert 'make "$target"' in script


@pytest.mark.nightly
def test_the_demo_shows_a_moving_curve(tmp_path: Path) -> None:
    if not (ROOT / ".venv" / ".installed").is_file():
        pytest.skip("needs what `make setup` installs")
    flags = f"--out {tmp_path / 'demo'} --port 0 --no-open"
    process = subprocess.Popen(
        _commands()[0].split(),
        cwd=ROOT,
        env=os.environ | {"DEMO_FLAGS": flags},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    address = ""
    try:
        found = next(filter(None, (re.search(r"(http\S+/)models/(\S+)", line) for line in process.stdout)))
        address, job_id = found[1], found[2]
        assert httpx.get(found[0], headers={"Accept": "text/html"}, timeout=60).status_code == 200
        assert len(_first_points(address, job_id)) >= 2
    finally:
        _end(process, address)


def _first_points(address: str, job_id: str) -> list[Any]:
    def points() -> list[Any] | None:
        job = httpx.get(f"{address}api/v1/jobs/{job_id}", timeout=60).json()
        assert job["state"] in ("queued", "running", "done"), job["error"]
        curves = httpx.get(f"{address}api/v1/jobs/{job_id}/curves", params={"tag": "cost"}, timeout=60)
        if curves.status_code == 200 and curves.json() and len(curves.json()[0]["steps"]) >= 2:
            return curves.json()[0]["steps"]
        return None

    return wait_until(points, FIRST_POINT_WITHIN_S, what="a curve that moves", every_s=0.2)


def _end(process: subprocess.Popen[str], address: str) -> None:
    if address:
        for job in httpx.get(f"{address}api/v1/jobs", timeout=60).json()["jobs"]:  # the model first, then its dataset
            httpx.delete(f"{address}api/v1/jobs/{job['id']}?force=true", timeout=60)
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
