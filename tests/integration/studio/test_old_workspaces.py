"""A workspace that an earlier version made opens at another place; its jobs, curves, datasets and models are usable."""

import json
import re
import shutil
import signal
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

from fastapi.testclient import TestClient
from studio_process import StudioProcess, call

from tests.nightly import some_nightly
from tests.old_workspaces import PICTURE, RELEASES, check_measured_again, numbers_of, unpack
from tests.waiting import PROCESS_S, wait_until
from ziggurat.app import create_studio
from ziggurat.client import Client
from ziggurat.entities import JobFilter
from ziggurat.errors import ZigguratError
from ziggurat.settings import Settings
from ziggurat.workspace.studio.bootstrap import open_studio

_TEXT_FIELDS = ("kind", "name", "state", "framework", "parent", "project", "group", "notes")
_LINK = re.compile(r'href="(/[^"#]*)')


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """A home without files, which the studio offers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module", params=RELEASES)
def old(request, tmp_path_factory):
    """The workspace of each release, for the tests that write nothing."""
    return unpack(request.param, tmp_path_factory.mktemp("old"))


@pytest.fixture(scope="module")
def studio(old):
    with open_studio(Settings(workspace=old.folder), start=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def visitor(studio):
    """Asks the application of the studio as a browser on this machine does."""
    headers = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
    return TestClient(create_studio(studio), "http://127.0.0.1:5000", headers=headers, client=("127.0.0.1", 4000))


@pytest.fixture
def first(tmp_path):
    """The workspace of 0.1.0, for one test."""
    return unpack("0.1.0", tmp_path)


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


def check_jobs(old, studio):
    """Check all jobs of the list against what the version answered."""
    jobs = {job.id: job for job in studio.jobs.page(JobFilter(limit=100)).jobs}
    assert set(jobs) == set(old.jobs)
    for job_id, known in old.jobs.items():
        job = jobs[job_id]
        assert {name: getattr(job, name) for name in _TEXT_FIELDS if name in known} == {
            name: known[name] for name in _TEXT_FIELDS if name in known
        }
        assert list(job.tags) == known.get("tags", [])
        assert job.global_step == known.get("step", job.global_step)
        assert Path(job.folder).parent.parent == old.folder
    return jobs


# ---- opened


def test_old_workspace_has_its_jobs_where_it_is(old, studio):
    (remark,) = studio.remarks
    assert old.answers["place"] in remark, "it says from where the workspace came"
    jobs = check_jobs(old, studio)
    below = old.answers["place"] + "/"
    assert below not in json.dumps([job.spec for job in jobs.values()])


def test_old_trainings_have_their_curves_and_checkpoints(old, studio):
    for job_id, known in old.jobs_with("curves").items():
        curves = {tag: studio.curves.curve(job_id, tag).values for tag in known["curves"]}
        assert {tag: len(values) for tag, values in curves.items()} == {
            tag: count for tag, (count, _) in known["curves"].items()
        }
        last = {tag: value for tag, (_, value) in known["curves"].items() if value is not None}
        assert {tag: float(curves[tag][-1]) for tag in last} == pytest.approx(last, abs=5e-5)
        best = known.get("best", {})
        assert {tag: float(curves[tag].max()) for tag in best} == pytest.approx(best, abs=5e-5)
    for job_id, known in old.jobs_with("checkpoints").items():
        assert [each.step for each in studio.jobs.checkpoints(job_id)] == known["checkpoints"]


def test_old_datasets_have_their_samples_and_versions(old, studio):
    for job_id, known in old.jobs_with("samples").items():
        described = studio.datasets.describe(job_id)
        assert (described["splits"], described["kind"]) == (known["samples"], known["type"])
        entries = studio.datasets.explore(job_id, {}, limit=100)[0].entries
        assert len(entries) == sum(known["samples"].values())
        changes = [list(note.changes) for note in studio.datasets.versions(job_id) if note.changes]
        assert changes == known.get("changes", [])
        assert [each for each in studio.datasets.check(job_id, verify=True).findings if each.severity == "error"] == []


def test_old_evaluations_have_their_figures(old, studio):
    for job_id, known in old.jobs_with("summary").items():
        summary = studio.evaluations.summary(job_id)
        found = numbers_of(summary)
        assert {name: found[name] for name in known["summary"]} == pytest.approx(known["summary"], abs=5e-5)
        assert summary["model"] == known["parent"]


def test_what_people_made_of_an_old_workspace_is_kept(old, studio):
    answers = old.answers
    assert [each.name for each in studio.published.all()] == answers["published"]
    assert all(studio.published.is_whole(each) for each in studio.published.all())
    exports = {job_id: [[each.name, each.state] for each in studio.exports.of_job(job_id)] for job_id in old.jobs}
    assert {job_id: found for job_id, found in exports.items() if found} == answers["exports"]
    assert {each.name: each.sha256 for each in studio.weights.all()} == answers["weights"]
    assert [each.name for each, _count in studio.projects.all()] == answers["projects"]
    saved = {kind: studio.saved.list("local", kind) for kind in ("view", "preset", "draft")}
    assert {kind: {item.name: item.content for item in items} for kind, items in saved.items() if items} == (
        answers["saved"]
    )
    for job_id, known in old.jobs_with("pending").items():
        pending = {f"{each.split}/{each.row}": each.changes for each in studio.datasets.boxes.pending(job_id)}
        assert pending == {sample: each["changes"] for sample, each in known["pending"].items()}
        for sample, each in known["pending"].items():
            assert studio.datasets.boxes.get(job_id, sample).as_json()["objects"] == each["objects"]


@pytest.mark.parametrize("kind", ["dataset", "train", "program", "evaluate", "infer"])
def test_every_page_of_an_old_job_opens(old, visitor, kind):
    for job_id, _known in ((job_id, job) for job_id, job in old.jobs.items() if job["kind"] == kind):
        seen, waiting = {""}, [f"/jobs/{job_id}"]
        while waiting:
            page = waiting.pop()
            answer = visitor.get(page)
            assert answer.status_code == 200, page
            for link in _LINK.findall(answer.text if "text/html" in answer.headers["Content-Type"] else ""):
                # One sample stands for all; TensorBoard is a process of its own, and REST has a test below.
                place = re.sub(r"/\d+(?=/|$)", "/0", link.partition("?")[0])
                if job_id in place and place not in seen and not re.match("/api/|.*/tensorboard", place):
                    seen.add(place)
                    waiting.append(link.replace("&amp;", "&"))


@pytest.mark.parametrize("part", ["", "datasets", "models", "evaluations", "pretrained", "settings"])
def test_every_list_of_an_old_workspace_opens(old, visitor, part):
    assert visitor.get(f"/{part}").status_code == 200


def test_rest_answers_of_an_old_workspace(old, visitor):
    def ask(path):
        answer = visitor.get(f"/api/v1/{path}", headers={"Accept": "application/json"})
        assert answer.status_code == 200, (path, answer.text)
        return answer.json()

    parts = ("", "/attempts", "/checkpoints", "/curves", "/messages", "/timeline", "/tags", "/machine-load", "/marks")
    for job_id, known in old.jobs.items():
        answers = {part: ask(f"jobs/{job_id}{part}") for part in parts}
        assert (answers[""]["name"], answers[""]["state"]) == (known["name"], known["state"])
        if "checkpoints" in known:
            assert [each["step"] for each in answers["/checkpoints"]] == known["checkpoints"]
        if known["kind"] == "dataset":
            for part in ("", "/samples", "/problems", "/statistics", "/versions"):
                ask(f"datasets/{job_id}{part}")
            assert ask(f"datasets/{job_id}/samples?limit=100")["total"] == sum(known["samples"].values())
        if "summary" in known:
            found = numbers_of(ask(f"evaluations/{job_id}"))
            assert {name: found[name] for name in known["summary"]} == pytest.approx(known["summary"], abs=5e-5)
            assert ask(f"evaluations/{job_id}/samples?limit=100")["samples"]
            ask(f"models/{known['parent']}/evaluations")


# ---- reindexed, run, changed


def test_old_linear_model_is_measured_as_it_was(old):
    (evaluation,) = old.evaluations("null").values()
    check_measured_again(old, evaluation)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_reindex_gives_the_jobs_of_an_old_workspace(tmp_path, release, lost):
    own = unpack(release, tmp_path)
    if lost:
        (own.folder / "studio.db").unlink()
    answer = call(own.folder, "--json", "reindex")
    assert answer.returncode == 0, answer.stdout
    report = json.loads(answer.stdout)
    assert (set(report["added" if lost else "renewed"]), report["missing"], report["damaged"]) == (
        set(own.jobs),
        [],
        {},
    )
    with open_studio(Settings(workspace=own.folder), start=False) as studio:
        check_jobs(own, studio)
        for job_id, known in own.jobs_with("curves").items():
            found = {tag: len(studio.curves.curve(job_id, tag).values) for tag in known["curves"]}
            assert found == {tag: count for tag, (count, _) in known["curves"].items()}


@pytest.mark.parametrize("release", some_nightly(RELEASES, but=["0.2.0"]))
def test_old_workspace_works_over_a_server(tmp_path, release, up):
    own = unpack(release, tmp_path)
    linear, stopped = own.job_id("null", "answer"), own.stopped("null")
    ((shapes, dataset),) = ((job_id, job) for job_id, job in own.jobs.items() if job["name"] == "shapes")
    (predictions,) = (job_id for job_id, job in own.jobs.items() if job["kind"] == "infer")
    studio = up(own.folder)
    assert own.answers["place"] in studio.said["remarks"][0]
    with Client(studio.address) as client:
        assert client.machine()["remarks"] == studio.said["remarks"]
        assert {job["id"]: job["state"] for job in client.jobs()} == {
            job_id: job["state"] for job_id, job in own.jobs.items()
        }
        assert client.curves(linear, ["cost"])["cost"]["steps"][-1] == client.checkpoints(linear)[-1]["step"] == 36
        page = client.datasets.samples(shapes, split="test", limit=100)["samples"]
        assert len(page) == dataset["samples"]["test"] == 12
        assert client.datasets.picture(shapes, "test", page[0]["row"]).startswith(b"\x89PNG")
        answer = client.models.predict(linear, [PICTURE], top=3, checkpoint="latest")
        assert probabilities(answer) == pytest.approx(own.jobs[linear]["answer"], abs=1e-6)

        client.resume(stopped)
        wait_until(lambda: client.job(stopped)["global_step"] > own.jobs[stopped]["step"], PROCESS_S)
        client.stop(stopped)
        wait_until(lambda: client.job(stopped)["state"] in ("stopped", "done"), PROCESS_S)

        client.delete(predictions)
        client.delete(stopped)
        with pytest.raises(ZigguratError, match="What other jobs use is kept"):
            client.delete(linear)
    assert not (own.folder / "jobs" / stopped).exists()


def test_pending_boxes_of_0_2_become_a_version(tmp_path):
    old = unpack("0.2.0", tmp_path)
    (corrected,) = (job_id for job_id, job in old.jobs_with("pending").items() if "changes" in job)
    ((sample, pending),) = old.jobs[corrected]["pending"].items()
    with open_studio(Settings(workspace=old.folder), start=False) as studio:
        made = studio.datasets.correct_boxes(corrected, name="twice corrected")
        objects = studio.datasets.boxes.get(made.id, sample).as_json()["objects"]
        assert [each["box"] for each in objects] == [each["box"] for each in pending["objects"]]
        assert studio.datasets.boxes.pending(corrected) == []
        assert [note.name for note in studio.datasets.versions(made.id)] == [
            "twice corrected",
            old.jobs[corrected]["name"],
            "boxes",
        ]


@pytest.mark.nightly
def test_copy_of_a_workspace_never_touches_the_original(first, tmp_path, up):
    workspace, linear = first.folder, first.job_id("null", "answer")
    (evaluation,) = (job_id for job_id, job in first.jobs_with("summary").items() if job["parent"] == linear)
    (leaves,) = (job_id for job_id, job in first.jobs.items() if job["name"] == "leaves")
    studio = up(workspace)
    copy = Path(shutil.copytree(workspace, tmp_path / "copy"))
    second = up(copy)
    assert second.said["remarks"][0].startswith(f"The workspace {copy} is a copy of {workspace}, which is still there.")
    before = files_of(workspace / "jobs") | files_of(workspace / "datasets")
    with Client(second.address) as client:
        answer = client.models.predict(linear, [PICTURE], top=3, checkpoint="latest")
        assert probabilities(answer)["square"] > 0.7
        evaluated = client.evaluations.create(linear, split="test")
        assert client.wait(evaluated["id"], every_s=0.1)["state"] == "done"
        target = client.download(linear, tmp_path / "linear.tar.gz")
        assert target.stat().st_size > 0
        for each in (evaluated["id"], evaluation, linear, leaves):
            client.delete(each)
    with Client(studio.address) as client:
        assert {job["id"] for job in client.jobs()} == set(first.jobs)
    assert files_of(workspace / "jobs") | files_of(workspace / "datasets") == before
    assert not (copy / "jobs" / linear).exists()


@pytest.mark.nightly
def test_lost_database_of_a_running_studio_is_told(first, up):
    studio = up(first.folder)
    linear = first.job_id("null", "answer")
    (first.folder / "studio.db").unlink()
    with Client(studio.address) as client:
        for ask in (lambda: list(client.jobs()), lambda: client.change(linear, name="x"), client.machine):
            with pytest.raises(ZigguratError, match=r"must stay where it is .*received: the file is gone\)\."):
                ask()
    page = client_page(studio.address)
    assert (page.status_code, "the file is gone" in page.text) == (409, True)
    assert not (first.folder / "studio.db").exists()


def client_page(address):
    """Return the home page as a browser gets it."""
    httpx = pytest.importorskip("httpx")
    return httpx.get(address, headers={"Accept": "text/html"})
