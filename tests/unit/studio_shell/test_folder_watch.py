"""Folders that the shell makes in the workspace of a studio are listed by themselves."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities.jobs import JOB_STATES
from ziggurat.events import AttemptEnded, AttemptStarted, EventFile
from ziggurat.jobs import EventBus
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec
from ziggurat.store import Store
from ziggurat.workspace.dataset_versions import relabel
from ziggurat.workspace.new_jobs import telling_name
from ziggurat.workspace.studio.bootstrap import job_reader
from ziggurat.workspace.studio.folder_watch import FolderWatch

SPEC = {"kind": "train", "version": 1, "backend": "null", "network": "mlp", "data": "digits", "epochs": 2}


class Watched:
    """A workspace that is watched, with its own clock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = time.time() + 100.0
        self.store = Store.open(root / "studio.db", workspace=root)
        self.bus = EventBus()
        self.watch = FolderWatch(root, self.store, job_reader(lambda: self.now), self.bus, lambda: self.now)

    def job(self, name: str, *, state: str = "", spec: Any = SPEC) -> Path:
        folder = self.root / "jobs" / name
        folder.mkdir(parents=True)
        if spec is not None:
            (folder / "spec.json").write_text(json.dumps(spec))
            os.utime(folder / "spec.json", (self.now, self.now))
        if state:
            began = AttemptStarted(
                time=self.now,
                attempt=1,
                pid=7,
                host="elsewhere",
                backend="null",
                release="0",
                max_epoch=2,
                steps_per_epoch=1,
            )
            assert state in JOB_STATES
            EventFile(JobFolder(folder).events).write(began)
            ended = AttemptEnded(time=self.now, outcome=state, exit_code=0, global_step=2, epoch=2)
            EventFile(JobFolder(folder).events).write(ended)
        return folder


@pytest.fixture
def watched(tmp_path: Path) -> Any:
    made = Watched(tmp_path)
    yield made
    made.store.close()


def test_what_the_shell_made_is_listed_and_told(watched: Watched) -> None:
    assert watched.watch.look() == []
    news = watched.bus.subscribe(("jobs",))
    folder = watched.job("mlp-on-digits-20261121-160000", state="done")
    assert watched.watch.look() == [folder.name]
    assert [(each.kind, each.id) for each in news.take()] == [("added", folder.name)]
    job = watched.store.jobs.get(folder.name)
    assert (job.name, job.state, job.epoch) == ("mlp on digits", "done", 2)
    assert watched.watch.look() == []


def test_version_of_a_dataset_by_the_shell_is_listed(watched: Watched, tmp_path: Path) -> None:
    for name in ("a/1.png", "a/2.png", "b/3.png", "b/4.png"):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "images" / name).write_bytes(encode_image(np.full((8, 8, 3), 90, np.uint8), "png"))
    asked = CreationRequest(source=str(tmp_path / "images"), name="pets", rule=SplitRule(val_share=0), workers=0)
    create_dataset(asked, tmp_path / "pets")
    relabel(tmp_path / "pets", ["train/0"], "b", tmp_path / "datasets" / "pets-v2", "pets v2")
    assert watched.watch.look() == ["pets-v2"]
    job = watched.store.jobs.get("pets-v2")
    assert (job.kind, job.name, job.state) == ("dataset", "pets v2", "done")


def test_a_job_that_has_not_started_is_left_for_a_while(watched: Watched) -> None:
    folder = watched.job("soon-20261121-160000")
    assert watched.watch.look() == []
    watched.now += 30
    assert watched.watch.look() == []
    watched.now += 31  # it will not start any more
    assert watched.watch.look() == [folder.name]
    assert watched.store.jobs.get(folder.name).state == "stopped"


def test_folders_of_the_studio_and_damaged_ones_are_left(watched: Watched) -> None:
    watched.job("20261121-160000-9f3ac21e", state="done")
    watched.job("damaged", spec=[])
    empty = watched.job("empty", spec=None)
    assert watched.watch.look() == []
    assert watched.store.jobs.ids() == set()
    (empty / "spec.json").write_text(json.dumps(SPEC))  # nothing changes in the folder of all jobs
    os.utime(empty / "spec.json", (1.0, 1.0))
    assert watched.watch.look() == ["empty"]


def test_a_damaged_folder_hides_no_other_and_is_read_again(watched: Watched) -> None:
    damaged = watched.job("damaged", spec=[])
    deep = watched.job("deep", spec=None)
    (deep / "spec.json").write_text("[" * 100_000)
    sound = watched.job("sound", state="done")
    assert watched.watch.look() == ["sound"]
    assert watched.watch.look() == []
    (damaged / "spec.json").write_text(json.dumps(SPEC))
    os.utime(damaged / "spec.json", (2.0, 2.0))
    assert watched.watch.look() == ["damaged"]
    assert watched.store.jobs.ids() == {sound.name, damaged.name}


def test_unnamed_jobs_get_a_telling_name(tmp_path: Path) -> None:
    def name(data: str, **fields: Any) -> str:
        return telling_name(parse_spec({**SPEC, "data": data, **fields}, source="the test"))

    assert name("digits") == "mlp on digits"
    data = tmp_path / "datasets" / "20261121-160000-00000001"
    data.mkdir(parents=True)
    assert name(str(data)) == "mlp on 20261121-160000-00000001"
    (data / "spec.json").write_text(json.dumps({"kind": "dataset", "name": "shoes"}))
    assert name(str(data)) == "mlp on shoes"
    (data / "job.json").write_text(json.dumps({"name": "clothing"}))
    assert name(str(data), network={"source": "file", "path": "/x/my_net.py"}) == "my_net on clothing"
    for source in ("/data/pets", "/data/pets/", "https://data.example/sets/pets?signature=secret#part", "s3://pets"):
        dataset = parse_spec({"kind": "dataset", "version": 1, "source": source}, source="the test")
        assert telling_name(dataset) == "pets"
