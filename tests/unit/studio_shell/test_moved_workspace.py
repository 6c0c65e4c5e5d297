"""A workspace is used where it is: after a move, after a copy, and when its database is lost."""

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("argon2", reason="the extra `studio` is not installed")

from tests.unit.studio_samples import add_pets
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import Heartbeat, JobChange, JobFilter, NewJob, read_heartbeat, write_heartbeat
from ziggurat.errors import JobError, LostDatabaseError
from ziggurat.layout import JobFolder
from ziggurat.records.manifest import ImageForm
from ziggurat.settings import Settings
from ziggurat.specs import load_train_spec
from ziggurat.workspace.doctor import examine_studio
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.server_process import make_server_state, running_server, write_server
from ziggurat.workspace.studio.bootstrap import open_studio, reindex, studio_summary

_OF_A_VERSION = ("id", "kind", "state", "folder", "owner", "parent", "notes", "tags", "created", "ended")
TRAINING = {"kind": "train", "version": 1, "name": "tiny", "backend": "null", "network": "mlp", "batch_size": 4}


def opened(workspace, **options):
    return open_studio(Settings(workspace=workspace), start=False, **options)


def jobs_of(studio):
    return {job.name: job for job in studio.jobs.page(JobFilter(limit=100)).jobs}


def files_of(folder):
    """Return path → content of every file in a folder."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A workspace with the dataset ``pets`` and a training ``tiny`` on it."""
    place = tmp_path_factory.mktemp("template")
    with opened(place / "workspace") as studio:
        pets = add_pets(studio, place / "pets")
        studio.training.create(JobRequest(spec=TRAINING, dataset=pets), owner="anna")
    return place / "workspace"


@pytest.fixture
def original(template, tmp_path):
    """A workspace of its own for a test, which a studio has opened where it is."""
    shutil.copytree(template, tmp_path / "original")
    opened(tmp_path / "original").close()
    return tmp_path / "original"


@pytest.fixture
def copy(original, tmp_path):
    shutil.copytree(original, tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


# ---- moved and copied


def test_moved_workspace_has_its_jobs_where_it_is(original, tmp_path):
    moved = original.rename(tmp_path / "moved")
    with opened(moved) as studio:
        assert studio.remarks == (
            f"The workspace was moved from {original} to {moved}; its jobs and datasets are used from there.",
        )
        jobs = jobs_of(studio)
        assert jobs["tiny"].folder == str(moved / "jobs" / jobs["tiny"].id)
        assert jobs["tiny"].spec["data"]["source"] == jobs["pets"].folder == str(moved / "datasets" / jobs["pets"].id)
        assert len(studio.datasets.explore(jobs["pets"].id, {})[0].entries) == 10
        studio.jobs.delete(jobs["tiny"].id)
        assert not Path(jobs["tiny"].folder).exists()
    with opened(moved) as studio:
        assert studio.remarks == (), "it is said once"


def test_copy_deletes_its_own_jobs_only(original, copy):
    before = files_of(original)
    with opened(copy) as studio:
        assert studio.remarks[0].startswith(f"The workspace {copy} is a copy of {original}, which is still there.")
        jobs = jobs_of(studio)
        studio.jobs.delete(jobs["tiny"].id)
        studio.jobs.delete(jobs["pets"].id)
    assert list((copy / "jobs").iterdir()) == list((copy / "datasets").iterdir()) == []
    assert files_of(original) == before


def test_specs_in_a_copy_name_its_own_dataset(original, copy):
    opened(copy).close()
    (job,) = (copy / "jobs").iterdir()
    (pets,) = (copy / "datasets").iterdir()
    written = json.loads((job / "spec.json").read_text())["data"]["source"]
    assert not written.startswith(str(copy))
    assert load_train_spec(job / "spec.json").data.source == str(pets)
    (theirs,) = (original / "jobs").iterdir()
    assert load_train_spec(theirs / "spec.json").data.source == str(original / "datasets" / pets.name)


def test_referenced_uploads_move_with_the_workspace(tmp_path):
    source = tmp_path / "original" / "uploads" / "pets" / "content"
    for number in range(4):
        name = source / ("cat", "dog")[number % 2] / f"{number}.png"
        name.parent.mkdir(parents=True, exist_ok=True)
        name.write_bytes(encode_image(np.full((8, 8, 3), 50 * number, np.uint8), "png"))
    folder = tmp_path / "original" / "datasets" / "pets"
    image = ImageForm(encoding="reference")
    rule = SplitRule(val_share=0.5)
    asked = CreationRequest(source=str(source), name="pets", rule=rule, image=image, workers=0)
    create_dataset(asked, folder)
    (tmp_path / "original").rename(tmp_path / "moved")
    with Dataset(tmp_path / "moved" / "datasets" / "pets") as dataset:
        assert [dataset.picture("train", row).shape for row in range(2)] == [(8, 8, 3)] * 2


def test_workspace_that_moves_twice_and_back(original, tmp_path):
    first = original.rename(tmp_path / "first")
    opened(first).close()
    second = first.rename(tmp_path / "second")
    opened(second).close()
    second.rename(original)
    with opened(original) as studio:
        jobs = jobs_of(studio)
        assert jobs["tiny"].spec["data"]["source"] == jobs["pets"].folder
        assert jobs["pets"].folder.startswith(str(original))


def test_link_to_the_workspace_is_no_move(original, tmp_path):
    (tmp_path / "link").symlink_to(original)
    with opened(tmp_path / "link") as studio:
        assert studio.remarks == ()
        assert jobs_of(studio)["tiny"].folder.startswith(str(tmp_path / "link"))
    with opened(original) as studio:
        assert studio.remarks == ()


def test_a_copy_does_not_take_the_workers_of_the_original(original, copy):
    (job,) = (original / "jobs").iterdir()
    beat = Heartbeat(pid=os.getpid(), host=os.uname().nodename, time=time.time(), phase="training")
    for place in (original, copy):
        write_heartbeat(JobFolder(place / "jobs" / job.name).heartbeat, beat)
    opened(copy).close()
    assert read_heartbeat(JobFolder(copy / "jobs" / job.name).heartbeat) is None
    assert read_heartbeat(JobFolder(job).heartbeat) == beat


def test_a_copy_does_not_take_the_server_of_the_original(original, tmp_path):
    state = make_server_state("http://127.0.0.1:5000/", "0.2.0", now=1.0, workspace=original)
    write_server(original, state)
    shutil.copytree(original, tmp_path / "copy")
    assert running_server(original) == state
    assert running_server(tmp_path / "copy") is None


def test_copy_with_a_link_to_the_jobs_of_the_original_is_refused(original, copy):
    shutil.rmtree(copy / "jobs")
    (copy / "jobs").symlink_to(original / "jobs")
    with pytest.raises(
        JobError,
        match=r"`jobs` in .* is a link to the one of .*/original, and a copy of a workspace has its own folders",
    ):
        opened(copy)


def test_database_of_another_workspace_is_refused(original, tmp_path):
    database = str(tmp_path / "elsewhere.db")
    shutil.copy(original / "studio.db", database)
    opened(original, url=database).close()
    (tmp_path / "copy").mkdir()
    with pytest.raises(
        JobError, match=r"belongs to one workspace: .*elsewhere\.db.*that of .*/original, which is still"
    ):
        opened(tmp_path / "copy", url=database)
    reindex(Settings(workspace=tmp_path / "copy"), database)
    opened(tmp_path / "copy", url=database).close()


# ---- deletions stay inside


def test_job_outside_of_the_workspace_keeps_its_folder(original, tmp_path):
    outside = tmp_path / "elsewhere" / "jobs" / "20260101-000000-0009"
    shutil.copytree(next((original / "jobs").iterdir()), outside)
    spec = json.loads((outside / "spec.json").read_text())
    with opened(original) as studio:
        job = studio.datasets.take_in(
            NewJob(id=outside.name, kind="train", name="outside", folder=str(outside), spec=spec, created=1.0), {}
        )
        before = files_of(outside)
        with pytest.raises(
            JobError, match=r"Only folders of the workspace are deleted \(received: .*job delete .* --force"
        ):
            studio.jobs.delete(job.id)
        assert studio.jobs.get(job.id).folder == str(outside)
        with pytest.raises(JobError, match="; checkpoints are removed in the workspace only"):
            studio.outputs.remove_checkpoint(job.id, "step-00000001")
        studio.jobs.delete(job.id, force=True)
        assert "outside" not in jobs_of(studio)
    assert files_of(outside) == before


def test_path_that_leads_out_of_the_workspace_is_not_followed(original, tmp_path):
    victim = tmp_path / "victim"
    shutil.copytree(next((original / "jobs").iterdir()), victim)
    with opened(original) as studio:
        path = str(original / "jobs" / ".." / ".." / "victim")
        new = NewJob(id="20260101-000000-0002", kind="train", name="v", folder=path, spec=TRAINING, created=1.0)
        studio.datasets.take_in(new, {})
        with pytest.raises(JobError, match="Only folders of the workspace"):
            studio.jobs.delete(new.id)
        studio.jobs.delete(new.id, force=True)
    assert (victim / "spec.json").is_file()


# ---- a lost database


def test_folders_that_are_not_listed_are_told(original):
    assert studio_summary(Settings(workspace=original))["unlisted"] == []
    (original / "studio.db").unlink()
    found = studio_summary(Settings(workspace=original))["unlisted"]
    assert len(found) == 2
    notes = [(each.level, each.text, each.advice) for each in examine_studio(original) if each.name == "jobs"]
    assert notes == [("note", "2 job folders are not listed", "End the studio, then call: ziggurat reindex")]
    with opened(original) as studio:
        assert studio.remarks == ("2 job folders are not listed: run `ziggurat reindex`.",)
    reindex(Settings(workspace=original))
    with opened(original) as studio:
        assert studio.remarks == ()
        jobs = jobs_of(studio)
        assert jobs["tiny"].spec["data"]["source"] == jobs["pets"].folder


def test_single_folder_that_is_not_listed_is_told(original):
    (job,) = (original / "jobs").iterdir()
    shutil.copytree(job, original / "jobs" / "mine")
    (original / "jobs" / "empty").mkdir()
    with opened(original) as studio:
        assert studio.remarks == ("1 job folder is not listed: run `ziggurat reindex`.",)


@pytest.mark.parametrize("lost", [True, False])
def test_reindex_lists_versions_of_datasets(original, lost):
    with opened(original) as studio:
        pets = jobs_of(studio)["pets"].id
        relabeled = studio.datasets.relabel(pets, ["train/0"], "dog", name="better", owner="anna")
        studio.datasets.merge([pets, relabeled.id], name="twice", owner="anna")
        studio.jobs.change(relabeled.id, JobChange(notes="by hand", tags=("checked",)))
        before = jobs_of(studio)
    if lost:
        (original / "studio.db").unlink()
        assert len(studio_summary(Settings(workspace=original))["unlisted"]) == 4
    report = reindex(Settings(workspace=original))
    assert (len(report.added), report.missing, report.damaged) == (4 if lost else 0, (), {})
    with opened(original) as studio:
        assert studio.remarks == ()
        after = jobs_of(studio)
        for name in ("better", "twice"):
            for field in (*_OF_A_VERSION, "spec"):
                assert getattr(after[name], field) == getattr(before[name], field), field
        assert [note.name for note in studio.datasets.versions(after["better"].id)] == ["better", "pets"]
        facts = studio.datasets.facts([after["better"], after["twice"]])
        assert {name: facts[after[name].id]["samples"] for name in ("better", "twice")} == {"better": 10, "twice": 20}


def test_damaged_folder_is_not_called_gone(original):
    (job,) = (original / "jobs").iterdir()
    (pets,) = (original / "datasets").iterdir()
    (job / "spec.json").write_text("{")
    shutil.rmtree(pets)
    report = reindex(Settings(workspace=original))
    assert (list(report.damaged), report.missing) == ([str(job)], (pets.name,))


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_database_that_is_lost_while_the_studio_runs(original, how):
    write_server(original, make_server_state("http://127.0.0.1:1/", "0.2.0", now=1.0, workspace=original))
    with opened(original) as studio:
        job = jobs_of(studio)["tiny"]
        (original / "studio.db").rename(original / "taken.db")
        if how == "replaced":
            shutil.copy(original / "taken.db", original / "studio.db")
        received = "the file is gone" if how == "deleted" else "another file is there"
        for act in (lambda: studio.jobs.get(job.id), lambda: studio.jobs.reorder(job.id)):
            with pytest.raises(LostDatabaseError, match=rf"must stay where it is .*studio\.db \(received: {received}"):
                act()
        assert (original / "studio.db").exists() == (how == "replaced")
        if how == "deleted":
            (found,) = [each for each in examine_studio(original) if each.name == "database"]
            assert (found.level, found.text.partition(" is ")[2]) == (
                "problem",
                "gone while the studio runs: it cannot go on",
            )
