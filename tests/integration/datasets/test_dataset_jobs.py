"""A dataset is made by a job: watched, stopped, killed and gone on with like any other."""

import os
import shutil
import signal

import pytest
from dataset_shell import class_folders

from tests.waiting import PROCESS_S, wait_until
from ziggurat.datasets.dataset import Dataset

RULE = ("--set", "splits.method=share")


def content_of(folder):
    """Return id, and everything that training reads."""
    with Dataset(folder) as dataset:
        return dataset.manifest.id, [(sample.key, sample.parts, sample.label) for sample in dataset.samples()]


def test_create_says_the_format_the_counts_and_the_problems(ziggurat, pets, tmp_path):
    (pets / "cat/broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert ziggurat("dataset", "create", pets, "--out", tmp_path / "set", "--val-share", 0.25) == 0
    assert "The format is taken to be class_folders: 2 folders with images" in ziggurat.said
    assert "train 18, val 6 samples; 1 problem" in ziggurat.said
    events = ziggurat("events", tmp_path / "set", "--json")
    assert events == 0
    assert '"stage": "read"' in ziggurat.said
    status = ziggurat.json("status", tmp_path / "set")
    assert (status["kind"], status["state"], status["attempt"]) == ("dataset", "done", 1)


def test_a_dataset_is_created_again_by_the_same_spec(ziggurat, pets, tmp_path):
    first = ziggurat.create(pets, tmp_path / "first", "--seed", 5)
    assert ziggurat("dataset", "again", tmp_path / "first", "--out", tmp_path / "second", "--name", "today") == 0
    new, old = ziggurat.json("dataset", "versions", tmp_path / "second")
    assert (new["name"], new["changes"]) == ("today", ["Created again from its source."])
    assert (old["id"], new["parents"]) == (first["id"], [first["id"]])
    assert content_of(tmp_path / "second")[1] == content_of(tmp_path / "first")[1]
    shutil.rmtree(pets)
    assert ziggurat("dataset", "again", tmp_path / "first", "--out", tmp_path / "third") == 4
    assert f"Its source `{pets}` is not there any more." in ziggurat.said
    assert not (tmp_path / "third").exists()


@pytest.mark.nightly
def test_a_data_set_without_a_folder_goes_to_the_workspace(ziggurat, pets, tmp_path, monkeypatch):
    monkeypatch.setenv("ZIGGURAT_WORKSPACE", str(tmp_path / "studio"))
    status = ziggurat.json("dataset", "create", pets)
    assert status["folder"].startswith(str(tmp_path / "studio/datasets/"))
    (row,) = ziggurat.json("dataset", "list")
    assert (row["name"], row["state"], row["folder"]) == (pets.name, "done", status["folder"])


@pytest.mark.nightly
def test_a_failure_is_said_and_listed_as_unfinished(ziggurat, pets, tmp_path):
    for path in pets.rglob("*.png"):
        path.write_bytes(b"no image")
    assert ziggurat("dataset", "create", pets, "--out", tmp_path / "sets/bad") == 4
    assert ziggurat.json("status", tmp_path / "sets/bad")["state"] == "failed"
    assert ziggurat.json("dataset", "list", tmp_path / "sets")[0]["state"] == "unfinished"
    assert ziggurat("dataset", "show", tmp_path / "sets/bad") == 4
    assert "An unfinished one goes on by: ziggurat resume JOB." in ziggurat.said


@pytest.fixture
def under_way(ziggurat, tmp_path):
    """A creation of three thousand images that has begun to read them; its folder."""
    source = class_folders(tmp_path / "many", 3000)
    started = ziggurat.json("dataset", "create", source, "--out", tmp_path / "set", *RULE, "--workers", 0, "--detach")
    chunks = tmp_path / "set" / "work" / "chunks"
    wait_until(lambda: chunks.is_dir() and any(path.name[0] != "." for path in chunks.iterdir()), PROCESS_S)
    yield tmp_path / "set", started["pid"]
    if ziggurat.json("status", tmp_path / "set")["state"] == "running":
        os.kill(started["pid"], signal.SIGKILL)


@pytest.mark.timeout(600)
def test_stop_and_resume_give_the_same_data_set(ziggurat, under_way, tmp_path):
    folder, _ = under_way
    assert ziggurat("stop", folder) == 0, ziggurat.said
    wait_until(lambda: ziggurat.json("status", folder)["state"] == "stopped", PROCESS_S)
    assert not (folder / "manifest.json").exists()
    assert ziggurat("resume", folder) == 0, ziggurat.said
    status = ziggurat.json("status", folder)
    assert (status["state"], status["attempt"]) == ("done", 2)
    assert not (folder / "work").exists()
    ziggurat.create(tmp_path / "many", tmp_path / "whole", *RULE, "--name", "set")
    assert content_of(folder) == content_of(tmp_path / "whole")


@pytest.mark.nightly
def test_resume_goes_on_with_a_creation_that_was_killed(ziggurat, under_way, tmp_path):
    folder, pid = under_way
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: ziggurat.json("status", folder)["health"] == "lost", PROCESS_S)
    before = {path.name: path.stat().st_mtime_ns for path in (folder / "work/chunks").iterdir()}
    assert before
    assert ziggurat("resume", folder) == 0, ziggurat.said
    assert ziggurat.json("status", folder)["attempt"] == 2
    assert ziggurat.json("dataset", "show", folder)["splits"] == {"train": 2250, "val": 750}
    assert ziggurat("resume", folder) == 10
    assert "is done" in ziggurat.said
