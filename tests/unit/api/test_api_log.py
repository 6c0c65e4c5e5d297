"""The id that a client is told of an unforeseen error leads to its trace in the log of the server."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

SERVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from api_parts import Clock, Site
from tests.unit.studio_samples import CHEAP
from ziggurat.server.serving import serve
from ziggurat.store import Store
from ziggurat.workspace.passwords import LoginLimits
from ziggurat.workspace.accounts import Accounts
from ziggurat.workspace.server_process import address_of, take_port

folder, clock = Path(sys.argv[1]), Clock()
with Store.open(folder / "studio.db", clock=clock) as store:
    site = Site(store, Accounts(store, clock=clock, passwords=CHEAP, limits=LoginLimits(clock)), clock)
    listener = take_port("127.0.0.1", 0)
    serve(site.app(routers=["api_planted_routes:good"]), listener, logs=folder / "logs",
          ready=lambda: print(address_of(listener, "127.0.0.1"), flush=True))
"""


@pytest.fixture
def server(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process, process.stdout.readline().strip()
    process.kill()
    process.communicate()


def test_the_trace_is_found_by_the_id_that_the_client_was_told(server, tmp_path):
    process, address = server
    found = []
    for word in ("hunter2", "rosebud"):
        answer = httpx.get(f"{address}planted/fail/{word}", timeout=30)
        assert (answer.status_code, answer.json()["error"]) == (500, "internal")
        assert "secret" not in answer.text
        found.append(answer.json()["details"]["id"])
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    log = (tmp_path / "logs" / "server.log").read_text()
    for name, word in zip(found, ("hunter2", "rosebud"), strict=True):
        assert log.count(f"Request {name} failed: GET '/planted/fail/{word}'") == 1
        assert f"RuntimeError: the secret is {word}" in log
    assert "Finished server process" in log
    assert json.dumps(found[0]) not in (tmp_path / "logs" / "access.log").read_text()
