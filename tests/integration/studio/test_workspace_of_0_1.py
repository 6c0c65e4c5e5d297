"""A workspace that release 0.1.0 made opens, moved or copied, with its jobs, curves, datasets and models usable."""

import json
import shutil
import signal
import tarfile
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

from studio_process import StudioProcess

from tests.waiting import PROCESS_S, wait_until
from ziggurat.client import Client
from ziggurat.entities import JobFilter
from ziggurat.errors import ZigguratError
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio

FIXTURES = Path(__file__).parents[2] / "fixtures"
PLACE = "/tmp/fx/ws"
SHAPES, BOXES, LEAVES = "20261122-080549-40bb", "20261122-080550-91e5", "20261122-080551-7230"
LINEAR, STOPPED, TINY = "20261122-080853-f6be", "20261122-080928-bb48", "20261122-081113-1a4c"
EVALUATION, PREDICTIONS = "20261122-080938-5aca", "20261122-081128-ff89"
STATES = {
    "shapes": "done",
    "boxes": "done",
    "leaves": "done",
    "linear on shapes": "done",
    "misspelt": "failed",
    "stopped": "stopped",
    "tiny on shapes": "done",
    "linear on shapes on val": "done",
    "tiny on shapes on test": "done",
    "tiny on shapes on circle": "done",
}
ANSWERS = {
    LINEAR: {"square": 0.7250345945358276, "circle": 0.15984222292900085, "cross": 0.11512324213981628},
    TINY: {"square": 0.9990122318267822, "circle": 0.0004695200768765062, "cross": 0.0005181602900847793},
}


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """The workspace at a place where it was never opened."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with tarfile.open(FIXTURES / "workspace-0.1.0.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return (tmp_path / "workspace-0.1.0").rename(tmp_path / "workspace")


@pytest.fixture
def up():
    """Start the studio of a workspace; every one is ended."""
    started = []

    def start(workspace):
        started.append(StudioProcess(workspace))
        return started[-1]

    yield start
    for studio in started:
        studio.end(signal.SIGTERM)


def files_of(folder):
    """Return path → content of every file in a folder."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def probabilities(answer):
    (found,) = answer["predictions"]
    return {each["class"]: each["probability"] for each in found["classes"]}


def test_workspace_of_0_1_is_whole_over_the_studio(workspace):
    with open_studio(Settings(workspace=workspace), start=False) as studio:
        (remark,) = studio.remarks
        assert PLACE in remark, "it says from where the workspace came"
        jobs = studio.jobs.page(JobFilter(limit=100)).jobs
        assert {job.name: job.state for job in jobs} == STATES
        assert {Path(job.folder).parent.parent for job in jobs} == {workspace}
        assert PLACE + "/" not in json.dumps([job.spec for job in jobs])
        assert studio.curves.curve(TINY, "validation_accuracy").values.max() == pytest.approx(0.7778, abs=1e-4)
        assert [each.step for each in studio.jobs.checkpoints(TINY)] == [126, 132, 138, 144, 150]
        assert {
            name: len(studio.datasets.explore(each, {}, limit=100)[0].entries)
            for name, each in (("shapes", SHAPES), ("boxes", BOXES), ("leaves", LEAVES))
        } == {"shapes": 78, "boxes": 8, "leaves": 40}
        summary = studio.evaluations.summary(EVALUATION)
        assert (round(summary["accuracy"], 4), summary["dataset"], summary["model"]) == (0.3889, SHAPES, LINEAR)
        assert studio.evaluations.summary(PREDICTIONS)["count"] == 4
        (published,) = studio.published.all()
        assert (published.name, studio.published.is_whole(published)) == ("tiny shapes", True)
        assert [each.state for each in studio.exports.of_job(TINY)] == ["done"]


def test_workspace_of_0_1_works_over_a_server(workspace, up):
    studio = up(workspace)
    assert PLACE in studio.said["remarks"][0]
    with Client(studio.address) as client:
        assert client.machine()["remarks"] == studio.said["remarks"]
        assert {job["name"]: job["state"] for job in client.jobs()} == STATES
        assert client.curves(LINEAR, ["cost"])["cost"]["steps"] == [6, 12, 18, 24, 30, 36]
        assert client.checkpoints(LINEAR)[-1]["step"] == 36
        page = client.datasets.samples(SHAPES, split="test", limit=100)["samples"]
        assert len(page) == 12
        assert client.datasets.picture(SHAPES, "test", page[0]["row"]).startswith(b"\x89PNG")
        answer = client.models.predict(LINEAR, [FIXTURES / "square.png"], top=3, checkpoint="latest")
        assert probabilities(answer) == pytest.approx(ANSWERS[LINEAR], abs=1e-6)

        again = client.evaluations.create(LINEAR, split="val", checkpoint="latest")
        assert client.wait(again["id"], every_s=0.1)["state"] == "done"
        assert client.evaluations.summary(again["id"])["accuracy"] == pytest.approx(0.3889, abs=1e-4)
        client.resume(STOPPED)
        wait_until(lambda: client.job(STOPPED)["global_step"] > 999, PROCESS_S)
        client.stop(STOPPED)
        wait_until(lambda: client.job(STOPPED)["state"] == "stopped", PROCESS_S)

        client.delete(again["id"])
        client.delete(STOPPED)
        with pytest.raises(ZigguratError, match="What other jobs use is kept"):
            client.delete(LINEAR)
    assert not (workspace / "jobs" / STOPPED).exists()


@pytest.mark.nightly
def test_copy_of_a_workspace_never_touches_the_original(workspace, tmp_path, up):
    first = up(workspace)
    copy = Path(shutil.copytree(workspace, tmp_path / "copy"))
    second = up(copy)
    assert second.said["remarks"][0].startswith(f"The workspace {copy} is a copy of {workspace}, which is still there.")
    before = files_of(workspace / "jobs") | files_of(workspace / "datasets")
    with Client(second.address) as client:
        assert (
            probabilities(client.models.predict(LINEAR, [FIXTURES / "square.png"], top=3, checkpoint="latest"))[
                "square"
            ]
            > 0.7
        )
        evaluated = client.evaluations.create(LINEAR, split="test")
        assert client.wait(evaluated["id"], every_s=0.1)["state"] == "done"
        target = client.download(LINEAR, tmp_path / "linear.tar.gz")
        assert target.stat().st_size > 0
        for each in (evaluated["id"], EVALUATION, LINEAR, LEAVES):
            client.delete(each)
    with Client(first.address) as client:
        assert {job["name"] for job in client.jobs()} == set(STATES)
    assert files_of(workspace / "jobs") | files_of(workspace / "datasets") == before
    assert not (copy / "jobs" / LINEAR).exists()


@pytest.mark.nightly
def test_lost_database_of_a_running_studio_is_told(workspace, up):
    studio = up(workspace)
    (workspace / "studio.db").unlink()
    with Client(studio.address) as client:
        for ask in (lambda: list(client.jobs()), lambda: client.change(LINEAR, name="x"), client.machine):
            with pytest.raises(ZigguratError, match=r"must stay where it is .*Received: the file is gone\."):
                ask()
    page = client_page(studio.address)
    assert (page.status_code, "the file is gone" in page.text) == (409, True)
    assert not (workspace / "studio.db").exists()


def client_page(address):
    """Return the home page as a browser gets it."""
    httpx = pytest.importorskip("httpx")
    return httpx.get(address, headers={"Accept": "text/html"})
