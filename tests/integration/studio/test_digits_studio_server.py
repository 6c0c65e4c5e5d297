"""Behaviors 1 to 14 of DIGITS that need no job to run: the server, its texts, and the scheduler before it works."""

from __future__ import annotations

import importlib.metadata
import json

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

import httpx
from studio_process import StudioProcess

import ziggurat
from tests.waiting import PROCESS_S, wait_until
from ziggurat.compat.digits.shapes import status_of
from ziggurat.entities import JOB_STATES, Job
from ziggurat.errors import JobError, SpecError
from ziggurat.formatting import as_duration
from ziggurat.settings import Settings
from ziggurat.specs import parse_spec
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio.bootstrap import open_studio


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    studio = StudioProcess(tmp_path_factory.mktemp("server") / "workspace")
    with httpx.Client(base_url=studio.address.rstrip("/"), timeout=60) as opened:
        yield opened
    studio.end(15)


@pytest.fixture
def workspace(tmp_path):
    return Settings(workspace=tmp_path / "workspace")


def training():
    return JobRequest(spec={"kind": "train", "version": 1, "network": "mlp", "data": "digits"})


def test_1_4_server_names_the_product_and_unknown_is_404(http):
    page = http.get("/api/v1/docs")
    assert (page.status_code, "Ziggurat" in page.text) == (200, True)
    for path in ("/no/such/page", "/datasets/nobody.json", "/models/nobody.json", "/api/v1/jobs/nobody"):
        assert http.get(path).status_code == 404, path


def test_5_package_module_and_server_have_one_version(http):
    assert importlib.metadata.version("ziggurat") == ziggurat.__version__
    assert http.get("/api/v1/version").json()["ziggurat"] == ziggurat.__version__
    assert http.get("/index.json").json()["version"] == ziggurat.__version__


@pytest.mark.parametrize("version", [0, 2, "1.0", "v1", None])
def test_6_spec_versions_are_whole_numbers_others_are_refused(version):
    with pytest.raises(SpecError, match="version"):
        parse_spec({"kind": "train", "version": version, "network": "mlp", "data": "digits"}, source="a test")


def test_8_the_size_of_a_folder_is_the_sum_of_its_files(http):
    first = http.post("/api/v1/uploads", params={"name": "a/1.txt"}, content=b"x" * 10).json()
    http.post("/api/v1/uploads", params={"name": "b/2.txt", "id": first["id"]}, content=b"x" * 1000)
    assert http.get(f"/api/v1/uploads/{first['id']}").json()["size_bytes"] == 1010
    empty = http.post("/api/v1/uploads", params={"name": "empty.txt"}, content=b"").json()
    assert http.get(f"/api/v1/uploads/{empty['id']}").json()["size_bytes"] == 0
    http.delete(f"/api/v1/uploads/{first['id']}")
    assert http.get(f"/api/v1/uploads/{first['id']}").status_code == 404


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0.4 s"),
        (0.96, "1 s"),
        (12, "12 s"),
        (62, "1 min 02 s"),
        (3600, "1 h 00 min"),
        (90000, "1 d 1 h"),
        (None, "–"),
    ],
)
def test_9_durations_are_seconds_minutes_hours_and_days(seconds, text):
    assert as_duration(seconds) == text


def test_11_jobs_wait_until_the_scheduler_works(workspace):
    with open_studio(workspace, start=False) as studio:
        (job,) = studio.training.create(training())
        assert studio.jobs.get(job.id).state == "queued"
        assert studio.jobs.attempts(job.id) == []
        studio.jobs.delete(job.id)


def test_11_starting_twice_and_ending_twice_are_harmless(workspace):
    studio = open_studio(workspace)
    (job,) = studio.training.create(training())
    studio.jobs.stop(job.id)
    wait_until(lambda: studio.jobs.get(job.id).state in ("stopped", "done"), PROCESS_S)
    studio.close()
    studio.close()
    again = open_studio(workspace, start=False)
    assert again.jobs.get(job.id).state in ("stopped", "done")
    again.close()


def test_12_a_job_is_there_when_added_and_gone_when_deleted(workspace):
    with open_studio(workspace, start=False) as studio:
        (job,) = studio.training.create(training())
        assert studio.jobs.get(job.id) == job
        studio.jobs.delete(job.id)
        with pytest.raises(JobError, match="There is no job `"):
            studio.jobs.get(job.id)


@pytest.mark.parametrize(
    ("state", "name"),
    list(zip(JOB_STATES, ("Initialized", "Running", "Running", "Done", "Error", "Aborted"), strict=True)),
)
def test_14_a_state_is_a_word_that_is_written_and_read_as_it_is(state, name):
    job = Job(id="20261121-160512-9f3a", kind="train", name="m", state=state, folder="/nowhere", spec={})
    assert json.loads(json.dumps(job.state)) == state
    assert status_of(job) == name
    assert name == "Initialized" or status_of(Job(**{**vars(job), "reason": "because"})) == name


def test_14_a_job_that_waits_for_something_is_waiting():
    job = Job(id="1", kind="train", name="m", state="queued", folder="/nowhere", spec={}, reason="for its dataset")
    assert status_of(job) == "Waiting"
