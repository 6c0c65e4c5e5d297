"""Networks that do not work, started as jobs: each ends as what it is, shown at its line, and the server goes on."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.studio.studio_process import StudioProcess
from tests.waiting import wait_until
from ziggurat.workspace.studio.networks import network_text

pytestmark = pytest.mark.tensorflow

LENET = network_text("lenet", "tensorflow")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    studio = StudioProcess(tmp_path_factory.mktemp("studio") / "workspace")
    yield studio.address
    studio.end(15)


def _start(address: str, text: str, **fields: Any) -> str:
    network = {"source": "file", "path": "network.py", "text": text}
    spec = {"kind": "train", "version": 1, "name": "broken", "backend": "tensorflow", "network": network}
    body = {"spec": {**spec, "data": "digits", "epochs": 1, **fields}}
    return httpx.post(address + "api/v1/trainings", json=body, timeout=60).json()["jobs"][0]["id"]


def _job(address: str, job_id: str) -> dict[str, Any]:
    return httpx.get(f"{address}api/v1/jobs/{job_id}", timeout=60).json()


def _log(address: str, job_id: str) -> str:
    return httpx.get(f"{address}api/v1/jobs/{job_id}/log", timeout=60).json()["text"]


def _stacks(address: str, job_id: str) -> str:
    text = _log(address, job_id)
    return text if 'network.py"' in text else ""


def _page(address: str, job_id: str) -> str:
    answer = httpx.get(f"{address}models/{job_id}", headers={"Accept": "text/html"}, timeout=60)
    assert answer.status_code == 200
    return html.unescape(answer.text)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("change", "line", "sentence"),
    [
        (("def inference(self):", "def inference(self:"), 6, "'(' was never closed"),
        (("slim.flatten(", "slim.flaten("), 18, "Did you mean `slim.flatten`"),
        (("[5, 5], padding", "[50, 50], padding"), 14, "conv1"),
        (("        net = self.x", "        import os; os._exit(7)\n        net = self.x"), 0, "exit code 7"),
    ],
    ids=["syntax", "misspelt", "shape", "exit"],
)
def test_it_fails_and_says_where(address: str, change: tuple[str, str], line: int, sentence: str) -> None:
    assert change[0] in LENET
    job_id = _start(address, LENET.replace(*change, 1))
    wait_until(lambda: _job(address, job_id)["state"] == "failed", 200)
    page = _page(address, job_id)
    assert sentence in page + str(_job(address, job_id)["reason"])
    if line:
        assert f"network.py, line {line}" in page
    assert httpx.get(address + "api/v1/counts", timeout=60).status_code == 200


@pytest.mark.nightly
def test_a_loop_at_the_top_of_the_file_fails_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZIGGURAT_BUILD_LIMIT_S", "2")
    studio = StudioProcess(tmp_path / "workspace")
    try:
        job_id = _start(studio.address, f"while True:\n    pass\n\n{LENET}")
        job = wait_until(lambda: (found := _job(studio.address, job_id))["state"] == "failed" and found, 200)
        assert job["reason"].startswith(
            "Building the network did not end within `build_limit_s`, 2 s: it was still at network.py, line "
        )
        assert job["exit_code"] == 5
        assert re.search(r"network.py, line [12]", _page(studio.address, job_id))
    finally:
        studio.end(15)


@pytest.mark.timeout(600)
def test_a_loop_without_an_end_is_seen_and_ended(address: str) -> None:
    endless = LENET.replace("        net = self.x", "        while True:\n            pass\n        net = self.x", 1)
    job_id = _start(address, endless, heartbeat_s=0.2, hung_after_s=1)
    try:
        wait_until(lambda: _job(address, job_id)["health"] == "hung", 200)
        assert httpx.get(address, headers={"Accept": "text/html"}, timeout=60).status_code == 200
        assert "The worker hangs." in _page(address, job_id)
        stacks = wait_until(lambda: _stacks(address, job_id), 120)
        assert re.search(r'network\.py", line (8|9|10) in inference', stacks), stacks
    finally:
        gone = httpx.delete(f"{address}api/v1/jobs/{job_id}?force=true", timeout=60)
    assert gone.status_code == 204
    assert httpx.get(f"{address}api/v1/jobs/{job_id}", timeout=60).status_code == 404
