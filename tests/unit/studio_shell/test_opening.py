"""A studio is put together from its parts, alone in its workspace, and rebuilt from the folders of its jobs."""

import json
import shutil
import stat
import time

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("argon2", reason="the extra `studio` is not installed")

from ziggurat.entities import Heartbeat, JobFilter, write_heartbeat
from ziggurat.errors import JobError, StorageError, UnknownNameError
from ziggurat.events import AttemptEnded, AttemptStarted, EventFile, ScalarLogged
from ziggurat.layout import JobFolder
from ziggurat.settings import load_settings
from ziggurat.workspace.accounts import LOCAL
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.server_process import make_server_state, write_server
from ziggurat.workspace.studio.bootstrap import open_people, open_studio, reindex, studio_summary

SPEC = {
    "kind": "train",
    "version": 1,
    "name": "mine",
    "backend": "null",
    "network": "mlp",
    "data": "digits",
    "epochs": 3,
}


def settings_of(workspace):
    return load_settings({"HOME": "/"}, flags={"workspace": workspace})


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A workspace with two jobs in its queue, and an account."""
    folder = tmp_path_factory.mktemp("template") / "workspace"
    with open_studio(settings_of(folder), start=False) as studio:
        for name in ("one", "two"):
            request = JobRequest(spec=SPEC | {"name": name}, tags=("a", "b"), notes=f"notes of {name}", priority=3)
            studio.training.create(request, owner="anna")
        studio.people.create_user("anna", None, role="admin", by=LOCAL)
    return folder


@pytest.fixture
def settings(template, tmp_path):
    """The settings for a copy of that workspace, at another place."""
    shutil.copytree(template, tmp_path / "moved")
    return settings_of(tmp_path / "moved")


def jobs_of(settings):
    with open_studio(settings, start=False) as studio:
        return {job.name: job for job in studio.jobs.page(JobFilter(limit=100)).jobs}


def test_a_workspace_has_one_studio_until_it_is_closed(settings):
    with open_studio(settings, start=False), pytest.raises(JobError, match="Another studio serves"):
        open_studio(settings, start=False)
    open_studio(settings, start=False).close()


def test_closing_twice_does_nothing(settings):
    studio = open_studio(settings, start=False)
    studio.close()
    studio.close()


def test_a_studio_that_cannot_be_opened_gives_the_workspace_up(settings):
    database = settings.workspace / "studio.db"
    good = database.read_bytes()
    database.write_bytes(b"no database" * 1000)
    with pytest.raises(StorageError):
        open_studio(settings, start=False)
    database.write_bytes(good)
    open_studio(settings, start=False).close()


def test_the_database_is_private_from_the_start(template):
    assert stat.S_IMODE((template / "studio.db").stat().st_mode) == 0o600


def test_a_moved_workspace_is_found_again(settings):
    report = reindex(settings)
    assert (len(report.renewed), report.added, report.missing, report.damaged) == (2, (), (), {})
    jobs = jobs_of(settings)
    one = jobs["one"]
    assert one.folder == str(settings.workspace / "jobs" / one.id)
    assert (one.state, one.tags, one.notes, one.owner, one.priority) == (
        "queued",
        ("a", "b"),
        "notes of one",
        "anna",
        3,
    )
    with open_people(settings) as people:
        assert [user.name for user in people.users()] == ["anna"]


def test_jobs_are_found_without_a_database(settings):
    before = jobs_of(settings)
    (settings.workspace / "studio.db").unlink()
    report = reindex(settings)
    assert sorted(report.added) == sorted(job.id for job in before.values())
    after = jobs_of(settings)
    for name, job in before.items():
        for field in ("id", "kind", "state", "spec", "notes", "tags", "created", "needs", "network", "framework"):
            assert getattr(after[name], field) == getattr(job, field), field


def test_what_happened_is_read_from_the_events(settings):
    (settings.workspace / "studio.db").unlink()
    job = next((settings.workspace / "jobs").iterdir())
    EventFile(job / "events.jsonl").write(
        AttemptStarted(
            time=10.0, attempt=1, pid=1, host="h", backend="null", release="0", max_epoch=3, steps_per_epoch=10
        ),
        ScalarLogged(time=11.0, tag="cost", value=0.25, step=5, epoch=1),
        AttemptEnded(time=12.0, outcome="failed", exit_code=4, reason="no data", global_step=5, epoch=1),
    )
    assert reindex(settings).events == 3
    found = next(each for each in jobs_of(settings).values() if each.id == job.name)
    assert (found.state, found.reason, found.exit_code, found.attempt) == ("failed", "no data", 4, 1)
    assert found.scalars["cost"].last == 0.25


def test_a_worker_that_was_killed_is_not_taken_to_run(settings):
    job = JobFolder(next((settings.workspace / "jobs").iterdir()))
    EventFile(job.events).write(
        AttemptStarted(
            time=10.0, attempt=1, pid=1, host="h", backend="null", release="0", max_epoch=3, steps_per_epoch=10
        )
    )
    reindex(settings)
    found = next(each for each in jobs_of(settings).values() if each.id == job.path.name)
    assert found.state == "failed"
    assert found.reason.startswith("the worker ended without a word")


def test_a_worker_elsewhere_is_taken_to_run(settings):
    job = JobFolder(next((settings.workspace / "jobs").iterdir()))
    now = time.time()
    EventFile(job.events).write(
        AttemptStarted(
            time=now, attempt=1, pid=7, host="elsewhere", backend="null", release="0", max_epoch=3, steps_per_epoch=10
        )
    )
    write_heartbeat(
        job.heartbeat,
        Heartbeat(pid=7, host="elsewhere", time=now, phase="training", epoch=1, global_step=2, step_began=now),
    )
    reindex(settings)
    found = next(each for each in jobs_of(settings).values() if each.id == job.path.name)
    assert (found.state, found.host) == ("running", "elsewhere")


def test_a_folder_that_nobody_queued_is_not_begun(settings):
    folder = settings.workspace / "jobs" / "mine-20261121-160000"
    folder.mkdir()
    (folder / "spec.json").write_text(json.dumps(SPEC))
    assert reindex(settings).added == (folder.name,)
    found = jobs_of(settings)["mine"]
    assert (found.state, found.reason) == ("stopped", "it was created in the shell, and never started")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "train"}', '{"kind": "other", "version": 1}'])
def test_a_damaged_folder_is_named_and_the_others_are_read(settings, text):
    folder = settings.workspace / "jobs" / "damaged"
    folder.mkdir()
    (folder / "spec.json").write_text(text)
    report = reindex(settings)
    assert list(report.damaged) == [str(folder)]
    assert len(report.renewed) == 2


def test_a_folder_that_is_gone_is_reported_and_its_job_kept(settings):
    gone = next((settings.workspace / "jobs").iterdir())
    shutil.rmtree(gone)
    assert reindex(settings).missing == (gone.name,)
    assert gone.name in {job.id for job in jobs_of(settings).values()}


def test_nothing_is_rebuilt_while_a_studio_is_open(settings):
    with open_studio(settings, start=False), pytest.raises(JobError, match="Another studio serves"):
        reindex(settings)


def test_the_summary_counts_jobs_and_makes_nothing(settings, tmp_path):
    assert studio_summary(settings)["jobs"] == {"queued": 2}
    assert studio_summary(settings_of(tmp_path / "none"))["jobs"] == {}
    with open_studio(settings, start=False) as studio:
        studio.limits.choose({"disk_reserve_bytes": 12345})
    assert studio_summary(settings)["machine"]["disk"]["reserve_bytes"] == 12345
    assert not (tmp_path / "none").exists()


def test_a_server_of_another_version_keeps_its_database(settings):
    write_server(settings.workspace, make_server_state("http://127.0.0.1:5000/", "0.0.9", now=1.0))
    with pytest.raises(JobError, match=", and the studio that runs of"):
        studio_summary(settings)
    with pytest.raises(JobError, match="Call `ziggurat down`"), open_people(settings):
        pass


def test_an_unknown_executor_is_refused(tmp_path):
    settings = load_settings({"HOME": "/"}, flags={"workspace": tmp_path, "executor": "kubernetes"})
    with pytest.raises(UnknownNameError, match=r"kubernetes.*local"):
        open_studio(settings, start=False)
