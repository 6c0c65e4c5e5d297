"""The studio as people start and end it: alone in its workspace, and no job suffers from what happens to it."""

import json
import signal

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")
pytest.importorskip("sklearn", reason="the extra `samples` is not installed")

from studio_process import StudioProcess, call, tiny_training

from tests.waiting import PROCESS_S, wait_until
from ziggurat.client import Client
from ziggurat.errors import ZigguratError
from ziggurat.settings import Settings
from ziggurat.workspace import open_folders

FOR_EVER = 100_000


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "workspace"


@pytest.fixture
def up(workspace):
    """Start the studio; every one that was started is ended, and so are its jobs."""
    started = []

    def start(*words):
        started.append(StudioProcess(workspace, *words))
        return started[-1]

    yield start
    for studio in started:
        studio.end(signal.SIGKILL)
    jobs = open_folders(Settings(workspace=workspace)).jobs
    for folder in (workspace / "jobs").glob("*/spec.json"):
        if jobs.get(str(folder.parent)).is_active:
            jobs.stop(str(folder.parent))
            wait_until(lambda folder=folder.parent: not jobs.get(str(folder)).is_active, PROCESS_S)


def under_way(client, job_id):
    """Return the job once it has made some steps."""

    def look():
        job = client.job(job_id)
        return job if job["state"] == "running" and job["global_step"] > 20 else None

    return wait_until(look, PROCESS_S)


def test_15_a_killed_server_loses_no_job_and_no_point(up, workspace):
    first = up()
    with Client(first.address) as client:
        (job,) = client.train(tiny_training(FOR_EVER))
        before = under_way(client, job["id"])
    first.end(signal.SIGKILL)
    assert json.loads((workspace / "server.json").read_text())["address"] == first.address

    second = up()
    with Client(second.address) as client:
        after = client.job(job["id"])
        assert (after["state"], after["pid"], after["attempt"]) == ("running", before["pid"], 1)
        further = wait_until(
            lambda: (now := client.job(job["id"]))["global_step"] > before["global_step"] and now, PROCESS_S
        )
        assert further["pid"] == before["pid"]
        client.stop(job["id"])
        ended = wait_until(lambda: (now := client.job(job["id"]))["state"] == "stopped" and now, PROCESS_S)
        assert [attempt["number"] for attempt in client.attempts(job["id"])] == [1]
        steps = client.curves(job["id"], ["learning_rate"], max_points=10_000)["learning_rate"]["steps"]
        assert steps == sorted(set(steps))
        assert steps[-1] <= ended["global_step"]


@pytest.mark.nightly
def test_15_ending_the_server_leaves_its_jobs_alone(up, workspace):
    studio = up()
    with Client(studio.address) as client:
        (job,) = client.train(tiny_training(FOR_EVER))
        pid = under_way(client, job["id"])["pid"]
    answer = call(workspace, "down", "--json")
    assert json.loads(answer.stdout) == {"address": studio.address, "pid": studio.process.pid}
    code, said = studio.end(signal.SIGTERM)
    assert code == 0
    assert said.endswith("The studio has ended (SIGTERM); 1 job goes on.\n")
    assert not (workspace / "server.json").exists()

    with Client(up().address) as client:
        job = client.job(job["id"])
        assert (job["state"], job["pid"]) == ("running", pid)


@pytest.mark.nightly
def test_up_detached_serves_the_workspace_named_after_it(workspace, tmp_path):
    try:
        answer = call(None, "up", "--workspace", str(workspace), "--detach", "--port", "0", "--no-open", "--json")
        said = json.loads(answer.stdout)
        assert (answer.returncode, said["workspace"], said["login"]) == (0, str(workspace), False)
        with Client(said["address"]) as client:
            assert client.queue() == []
        assert sorted(path.name for path in tmp_path.iterdir()) == ["workspace"]
    finally:
        call(workspace, "down")


def test_up_on_loopback_says_that_no_login_is_needed(workspace):
    try:
        answer = call(workspace, "up", "--detach", "--port", "0", "--no-open")
        assert "No login is needed: only this machine reaches the studio" in answer.stdout
    finally:
        call(workspace, "down")


def test_a_second_server_in_the_workspace_is_told_of_the_first(up, workspace):
    studio = up()
    answer = call(workspace, "up", "--port", "0", "--json")
    error = json.loads(answer.stdout)
    assert (answer.returncode, error["error"]) == (10, "job")
    assert error["details"] == {"pid": studio.process.pid, "address": studio.address}


@pytest.mark.nightly
def test_the_status_of_the_studio(up, workspace):
    studio = up()
    with Client(studio.address) as client:
        (job,) = client.train(tiny_training(1))
        client.wait(job["id"], timeout_s=60, every_s=0.1)
    content = json.loads(call(workspace, "status", "--json").stdout)
    assert content["server"]["address"] == studio.address
    assert content["jobs"] == {"done": 1}
    text = call(workspace, "status").stdout
    assert text.splitlines()[0].startswith(f"studio     {studio.address} (process {studio.process.pid} on ")
    assert "jobs       1 done" in text
    one = call(workspace, "status", job["folder"], "--json")
    assert json.loads(one.stdout)["state"] == "done"


@pytest.mark.nightly
def test_a_list_of_jobs_is_rebuilt_from_the_folders(up, workspace):
    studio = up()
    with Client(studio.address) as client:
        done, _ = [client.train(tiny_training(1), notes="keep", tags=["a"])[0] for _ in range(2)]
        for job in client.jobs():
            client.wait(job["id"], timeout_s=60, every_s=0.1)
        before = client.job(done["id"])
    assert call(workspace, "reindex").returncode == 10  # while the server runs
    studio.end(signal.SIGINT)
    for name in ("studio.db", "studio.db-wal", "studio.db-shm"):
        (workspace / name).unlink(missing_ok=True)
    (workspace / "jobs" / "damaged").mkdir()
    answer = call(workspace, "reindex", "--json")
    report = json.loads(answer.stdout)
    assert answer.returncode == 1
    assert len(report["added"]) == 2
    assert list(report["damaged"]) == [str(workspace / "jobs" / "damaged")]

    with Client(up().address) as client:
        after = client.job(done["id"])
        for name in ("state", "name", "notes", "tags", "created", "global_step", "spec", "scalars", "network"):
            assert after[name] == before[name], name


@pytest.mark.parametrize("words", [("--host", "0.0.0.0"), ("--host", "::")])
def test_nobody_listens_to_the_world_without_a_login(workspace, words):
    answer = call(workspace, "up", "--port", "0", *words)
    assert answer.returncode == 2
    assert "The studio listens beyond this machine only where people must log in (received: " in answer.stderr
    assert "--new-token" in answer.stderr


@pytest.mark.nightly
def test_a_new_token_opens_the_studio_to_its_holder_alone(up):
    studio = up("--host", "0.0.0.0", "--new-token")
    token = studio.said["token"]
    with Client(studio.address, token) as client:
        assert client.version()["ziggurat"]
        code, _ = studio.end(signal.SIGINT)
        assert code == 0
    studio = up()
    with Client(studio.address) as client, pytest.raises(ZigguratError, match="Log in first"):
        client.version()
    with Client(studio.address, token) as client:
        assert client.version()["ziggurat"]
        client.train(tiny_training(1))
    studio.end(signal.SIGKILL)


def test_a_server_in_the_background(workspace):
    started = call(workspace, "up", "--detach", "--port", "0", "--json", "--no-open")
    said = json.loads(started.stdout)
    try:
        with Client(said["address"]) as client:
            assert client.version()["ziggurat"]
    finally:
        ended = call(workspace, "down")
    assert ended.stdout.startswith(f"The studio at {said['address']} has ended.")
    again = call(workspace, "down")
    assert again.returncode == 10
    assert "Start one with: ziggurat up" in again.stderr


def test_a_background_server_that_does_not_start_says_why(workspace):
    answer = call(workspace, "up", "--detach", "--port", "0", "--prefix", "../x")
    assert answer.returncode == 10
    assert "is not a plain path" in answer.stderr


@pytest.mark.nightly
def test_a_framework_that_does_not_work_is_told_with_the_reason(up, tmp_path, monkeypatch):
    broken = tmp_path / "broken" / "tensorflow"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('this processor is too old')\n")
    monkeypatch.setenv("PYTHONPATH", str(broken.parent))
    studio = up()
    line = next(line for line in studio.process.stderr if "support is disabled" in line)
    assert line.startswith("TensorFlow support is disabled. ")
    assert "this processor is too old" in line
    with Client(studio.address) as client:
        (state,) = (each for each in client.machine()["frameworks"] if each["backend"] == "tensorflow")
    assert state["sentence"] == line.strip()
