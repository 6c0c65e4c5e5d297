"""Servers that a studio starts: state, log, the lines of the page, and their end with the studio."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.exported_model import make_export
from tests.unit.serving.conftest import grey, png
from tests.unit.studio_samples import make_empty_workspace, studio_in_copy
from tests.unit.web.html_page import html_of
from tests.waiting import PROCESS_S, wait_until
from ziggurat.app import create_studio
from ziggurat.entities import NewJob
from ziggurat.errors import JobError
from ziggurat.services.model_servers import ModelServers

NAME = "onnx-step-00000004-inside"
KEY = ("20260101-000000-abcd", NAME)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ModelServers]:
    with ModelServers(os.environ, tmp_path / "logs", most=1) as made:
        yield made


def state_of(servers: ModelServers, wanted: str) -> Any:
    def reached() -> Any:
        found = servers.state(KEY)
        return found if found is not None and found.state == wanted else None

    return wait_until(reached, PROCESS_S, what=f"it is {wanted}")


def served(studio: Any) -> Any:
    """Return how the server of the export is, which there is."""
    found = studio.serving.state(*KEY)
    assert found is not None
    return found


def test_a_server_is_started_asked_and_stopped(tmp_path: Path, servers: ModelServers) -> None:
    folder = make_export(tmp_path / "rows", kind="table")

    first = servers.start(KEY, folder)
    ready = state_of(servers, "ready")
    answer = httpx.post(f"{ready.url}/predict", json={"rows": [[1, 2]]}, timeout=PROCESS_S)

    assert first.state == "loading"
    assert answer.json()["predictions"][0]["classes"], answer.text
    assert (ready.requests, ready.self_test) == (0, 16)
    assert state_of(servers, "ready").requests == 1
    assert "self-test 16 of 16" in ready.log
    assert servers.start(KEY, folder).url == ready.url, "one that runs is left alone"
    with pytest.raises(JobError, match="1 models are served already"):
        servers.start(("other", NAME), folder)
    servers.stop(KEY)
    assert servers.state(KEY) is None
    with pytest.raises(httpx.ConnectError):
        httpx.get(ready.url)


def test_one_that_fails_says_why_and_can_be_started_again(tmp_path: Path, servers: ModelServers) -> None:
    folder = make_export(tmp_path / "rows", kind="table", bias=1.0)

    servers.start(KEY, folder)
    failed = state_of(servers, "failed")
    shutil.rmtree(folder)
    make_export(folder, kind="table")
    servers.start(KEY, folder)

    assert "of the self-test differs by" in failed.log
    assert failed.reason
    assert state_of(servers, "ready").requests == 0


def test_it_ends_with_a_studio_that_is_killed(tmp_path: Path) -> None:
    folder = make_export(tmp_path / "rows", kind="table")
    program = f"""
import os, sys, threading
from pathlib import Path
from ziggurat.services.model_servers import ModelServers
servers = ModelServers(os.environ, Path({str(tmp_path / "logs")!r}))
servers.start(("job", "export"), Path({str(folder)!r}))
while servers.state(("job", "export")).state != "ready":
    threading.Event().wait(0.05)
print("ready", flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as studio:
        assert studio.stdout is not None
        assert studio.stdout.readline() == b"ready\n"
        children = psutil.Process(studio.pid).children(recursive=True)
        studio.send_signal(signal.SIGKILL)
        studio.wait()

    assert children
    wait_until(lambda: not any(each.is_running() for each in children), PROCESS_S, what="they have ended")


def test_the_page_starts_shows_and_stops_it(tmp_path: Path) -> None:
    with studio_in_copy(make_empty_workspace(tmp_path / "empty"), tmp_path) as studio:
        job = studio.root / "jobs" / KEY[0]
        export = make_export(job / "exports" / NAME)
        checkpoint = job / "checkpoints" / "step-00000004"
        checkpoint.mkdir(parents=True)
        (checkpoint / "state.json").write_text("{}")
        record = {"name": NAME, "format": "onnx", "checkpoint": "step-00000004", "preprocessing": "inside"}
        record |= {"state": "done", "created": 1.0, "ended": 2.0, "error": None}
        parity = dict.fromkeys(("largest_difference", "relative_difference", "tolerance", "size_bytes"), 0)
        parity |= {"samples": 5, "holds": True, "accuracy_before": None, "accuracy_after": None}
        parity |= {"latency_before_ms": 1.0, "latency_after_ms": 1.0}
        record["result"] = {"epoch": 1, "size_bytes": 9, "parity": parity, "split": "val", "files": []}
        (job / "exports" / f"{NAME}.json").write_text(json.dumps(record))
        about: dict[str, Any] = {"framework": "tensorflow", "created": 1.0, "spec": {}}
        new = NewJob(id=KEY[0], kind="train", name="animals", folder=str(job), **about)
        studio.datasets.take_in(new, {})
        app, place = create_studio(studio), f"/models/{KEY[0]}/take-away"

        def ask(method: str, path: str, **options: Any) -> httpx.Response:
            async def asked() -> httpx.Response:
                transport = httpx.ASGITransport(app, client=("127.0.0.1", 40000))
                async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
                    return await client.request(method, path, headers={"Sec-Fetch-Site": "same-origin"}, **options)

            return asyncio.run(asked())

        assert ask("GET", f"/api/v1/models/{KEY[0]}/exports/{NAME}/server").json() is None
        started = ask("POST", f"{place}/exports/{NAME}/server", data={"action": "start"})
        assert started.status_code == 303, started.text
        found = served(studio)
        wait_until(lambda: served(studio).state == "ready", PROCESS_S, what="it is ready")
        page = html_of(ask("GET", place))

        assert found.state == "loading"
        assert page.one(f"#server-{NAME}")["data-state"] == "ready"
        assert "self-test 16 of 16" in page.one(f"#server-{NAME}").text
        (tmp_path / "image.png").write_bytes(png(grey(1)))
        for number in (3, 4):
            line = page.one(f"#serve-{NAME}-{number}").text
            command = [sys.executable, "-W", "ignore", "-c", line]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert re.search("cat|dog|owl", done.stdout), done.stderr
        assert str(export) in page.one(f"#serve-{NAME}-1").text
        assert studio.people.audit().entries[0].action == "serving.start"
        assert ask("POST", f"{place}/exports/{NAME}/server", data={"action": "stop"}).status_code == 303
        assert html_of(ask("GET", place)).has(f"#server-start-{NAME}")
        assert studio.serving.start(*KEY).state == "loading"
        url = wait_until(lambda: served(studio).url, PROCESS_S)
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
