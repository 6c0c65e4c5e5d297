"""The services of compose.yaml, with their commands and variables, on a server of this machine."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

from tests.image_file import DOCKERFILE, image_environment, last, words
from tests.waiting import PROCESS_S, wait_until

SERVICES = yaml.safe_load(DOCKERFILE.with_name("compose.yaml").read_text())["services"]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def studio_variables(tmp_path, empty_postgresql, monkeypatch):
    """Variables of the studio's container, with addresses and folders of this machine."""
    asked = SERVICES["studio"]["environment"]["ZIGGURAT_DATABASE"]
    assert urlsplit(asked.replace("${DATABASE_PASSWORD:?write it into .env}", "secret")).hostname in SERVICES
    variables = {**image_environment(), "ZIGGURAT_DATABASE": empty_postgresql, "ZIGGURAT_PORT": str(free_port())}
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("ZIGGURAT_WORKSPACE", str(tmp_path / "data"))
    return variables


def test_the_database_answers_its_health_check(empty_postgresql):
    initdb = shutil.which("initdb")
    binaries = [Path(initdb).resolve().parent] if initdb else []
    binaries += Path("/usr/lib/postgresql").glob("*/bin")
    ready = next((path / "pg_isready" for path in binaries if (path / "pg_isready").exists()), None)
    if ready is None:
        pytest.skip("pg_isready is not installed")
    server = urlsplit(empty_postgresql)
    _, command = SERVICES["database"]["healthcheck"]["test"]
    place = f" --host {server.hostname} --port {server.port}"
    for port, code in ((place, 0), (f" --host 127.0.0.1 --port {free_port()}", 2)):
        shell = command.replace("pg_isready", str(ready), 1) + port
        assert subprocess.run(["sh", "-c", shell], capture_output=True, check=False).returncode == code


@pytest.mark.nightly
def test_the_studio_serves_from_the_database(studio_variables):
    port = studio_variables["ZIGGURAT_PORT"]
    ziggurat, *up = words(last("CMD"))
    command = [str(Path(sys.executable).with_name(ziggurat))]
    add = [*command, "user", "add", "ann", "--role", "admin", "--password-stdin"]
    subprocess.run(add, input="correct-horse-battery\n", text=True, check=True, capture_output=True)
    health = [word.replace(":5000/", f":{port}/") for word in words(last("HEALTHCHECK"))]
    health[0] = sys.executable
    with subprocess.Popen([*command, *up], stdout=subprocess.DEVNULL) as studio:
        try:
            wait_until(lambda: subprocess.run(health, capture_output=True, check=False).returncode == 0, PROCESS_S)
            answer = httpx.post(
                f"http://127.0.0.1:{port}/login",
                data={"name": "ann", "password": "correct-horse-battery"},
                headers={"Origin": f"http://127.0.0.1:{port}"},
            )
            assert answer.status_code == 303
        finally:
            studio.terminate()
    assert subprocess.run(health, capture_output=True, check=False).returncode != 0
