"""A worker that hangs is ended from every side: by itself after a time, by `Stop now`, by the shell and by REST."""

import os
import signal

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

import httpx
from studio_process import StudioProcess, call, tiny_training

from tests.waiting import PROCESS_S, wait_until
from ziggurat.client import Client

SECRETS = {"AWS_SECRET_ACCESS_KEY": "not for workers", "HF_TOKEN": "not for workers"}


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """A studio that waits long before it uses force, with secrets in its environment."""
    workspace = tmp_path_factory.mktemp("studio") / "workspace"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**SECRETS, "HF_HOME": "/data/hf", "ZIGGURAT_WORKER_ENVIRONMENT": "HF_HOME"}.items():
            patch.setenv(name, value)
        process = StudioProcess(workspace)
    yield process, workspace
    process.end(signal.SIGTERM)


@pytest.fixture
def client(studio):
    with Client(studio[0].address) as made:
        yield made


def begun(client):
    """Return a training that has begun, and the process of its worker."""
    (job,) = client.train(tiny_training(100_000) | {"checkpoints": {"every_epochs": 1}})
    wait_until(lambda: client.job(job["id"])["global_step"] > 40, PROCESS_S)
    return job["id"], client.job(job["id"])["pid"]


def hung(client):
    """Return a training whose worker was asked to stop and does not hear it."""
    job_id, pid = begun(client)
    os.kill(pid, signal.SIGSTOP)  # nothing runs in it, as in a call that never returns
    assert client.stop(job_id)["state"] == "stopping"
    return job_id


def state_of(client, job_id):
    found = client.job(job_id)
    return found["state"], found["reason"]


@pytest.mark.nightly
def test_a_hung_job_says_when_it_ends_and_stops_now(studio, client):
    (process, workspace), job_id = studio, hung(client)
    wait_until(lambda: "stopped by local; will be ended by force at " in client.job(job_id)["reason"], PROCESS_S)
    assert "; will be ended by force at " in call(workspace, "job", "show", job_id).stdout
    page = httpx.get(f"{process.address}models/{job_id}", headers={"Accept": "text/html"}).text
    assert "Stopped by local; will be ended by force at " in page
    assert 'id="job-stop_now"' in page
    own = {"Origin": process.address.rstrip("/")}
    answer = httpx.post(f"{process.address}jobs/{job_id}/actions/stop_now", headers=own)
    assert answer.status_code == 303
    wait_until(lambda: state_of(client, job_id) == ("stopped", "stopped by force by local"), PROCESS_S)
    assert client.checkpoints(job_id)
    client.resume(job_id)
    wait_until(lambda: client.job(job_id)["state"] == "running" and len(client.attempts(job_id)) == 2, PROCESS_S)
    client.stop(job_id, now=True)
    wait_until(lambda: client.job(job_id)["state"] == "stopped", PROCESS_S)


def test_the_shell_stops_a_hung_job_now(studio, client):
    job_id = hung(client)
    assert call(studio[1], "job", "stop", job_id, "--now").returncode == 0
    wait_until(lambda: state_of(client, job_id) == ("stopped", "stopped by force by local"), PROCESS_S)


def test_the_shell_stops_a_hung_folder_now(studio, client):
    job_id = hung(client)
    answer = call(None, "stop", client.job(job_id)["folder"], "--now")
    assert (answer.returncode, answer.stdout) == (0, f"{client.job(job_id)['folder']}: ended by force.\n")
    wait_until(lambda: client.job(job_id)["state"] == "stopped", PROCESS_S)
    assert "by force: its worker ended before it had saved" in client.job(job_id)["reason"]


def test_workers_get_no_secret_of_the_studio(client):
    job_id, pid = begun(client)
    with open(f"/proc/{pid}/environ", "rb") as file:
        names = {variable.partition(b"=")[0].decode() for variable in file.read().split(b"\0")}
    assert names.isdisjoint(SECRETS)
    assert {"PATH", "HF_HOME"} <= names
    client.stop(job_id, now=True)


@pytest.mark.nightly
def test_a_studio_with_a_short_patience_ends_it_by_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("ZIGGURAT_STOP_GRACE_S", "1")
    monkeypatch.setenv("ZIGGURAT_KILL_GRACE_S", "1")
    process = StudioProcess(tmp_path / "workspace")
    try:
        with Client(process.address) as client:
            job_id = hung(client)
            wait_until(lambda: client.job(job_id)["state"] == "stopped", PROCESS_S)
            assert client.job(job_id)["reason"] == (
                "stopped by local, by force: its worker did not end when it was asked to"
            )
    finally:
        process.end(signal.SIGTERM)
