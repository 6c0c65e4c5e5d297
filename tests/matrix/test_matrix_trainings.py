"""Every combination of task, framework, data, journey and kill: a training ends exactly as one that was left alone."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.studio.studio_process import StudioProcess
from tests.tensorflow.studio_doors import digit_folders
from tests.waiting import wait_until
from ziggurat.client import Client
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities import read_heartbeat
from ziggurat.events import effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.plugins import available

TASKS = ("classification",)
FRAMEWORKS = tuple(plugin.name for plugin in available("backends"))
DATA = ("digits", "class folders", "dataset")
KILLS = {"shell": ("none", "worker", "stop"), "studio": ("none", "worker", "stop", "server")}
"""Journey → what may come between; `worker` and `server` are killed, `stop` is what a person asks for."""

NETWORKS = {"null": {"network": "mlp", "backend_options": {"hidden": 400}}}
"""Framework → its network, slow enough to be caught in the middle; of the others, LeNet."""

KILLED_AT = 30
WITHIN_S = 240
TIMED = ("Throughput", "StepTime")
"""Curves that are measured by the clock."""


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "ziggurat", *map(str, words)]


def spec_of(framework: str, data: str | None) -> dict[str, Any]:
    """Return a spec of some hundred steps with a checkpoint every 17."""
    spec: dict[str, Any] = {"kind": "train", "version": 1, "name": "matrix", "backend": framework, "network": "lenet"}
    spec |= {"epochs": 8, "batch_size": 32, "seed": 4, "learning_rate": 0.02, "schedule": "cosine"}
    spec |= {"checkpoints": {"every_steps": 17}, "heartbeat_s": 0.05, "monitors": ["events"]}
    spec |= {"preprocessing": {"size": 28, "channels": 1}, "augmentation": {"noise": 0.05}}
    return {**spec, **NETWORKS.get(framework, {}), **({"data": data} if data else {})}


def ended(folder: Path) -> tuple[dict[str, np.ndarray], list[tuple[str, int, float]]]:
    """Return the last weights and states of a job, and its curves."""
    newest = CheckpointStore(JobFolder(folder).checkpoints, writable=False).latest()
    assert newest is not None
    points = effective_scalars(read_events(JobFolder(folder).events)[0])
    return dict(newest[1].arrays), [
        (each.tag, each.step, each.value) for each in points if not each.tag.startswith(TIMED)
    ]


def check_same(folder: Path, other: Path) -> None:
    """Compare two jobs, bit for bit."""
    (arrays, curves), (expected, expected_curves) = ended(folder), ended(other)
    assert list(arrays) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[name], array, err_msg=name)
    assert curves == expected_curves


def strike(folder: Path, how: str) -> None:
    """Wait until a training is in the middle, and kill its worker or ask it to stop."""

    def pid() -> int:
        beat = read_heartbeat(JobFolder(folder).heartbeat)
        is_there = beat is not None and beat.phase == "training" and beat.global_step >= KILLED_AT
        return beat.pid if beat is not None and is_there else 0

    os.kill(wait_until(pid, WITHIN_S), signal.SIGKILL if how == "worker" else signal.SIGTERM)


@functools.cache
def place() -> Path:
    """Return the home of the journeys of this process, with digits in class folders."""
    kept = tempfile.TemporaryDirectory(prefix="ziggurat-matrix-")
    home = Path(kept.name)
    _KEPT.append(kept)
    digit_folders(home / "digits")
    return home


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


@functools.cache
def source(data: str) -> str:
    """Return what a spec names as its data."""
    if data == "digits":
        return data
    if data == "class folders":
        return str(place() / "digits")
    made = place() / "made"
    subprocess.run(command("dataset", "create", place() / "digits", "--out", made), check=True, capture_output=True)
    return str(made)


def train_in_shell(folder: Path, framework: str, data: str, kill: str) -> Path:
    spec = folder.with_name(f"{folder.name}.json")
    spec.write_text(json.dumps(spec_of(framework, source(data))))
    log = folder.with_name(f"{folder.name}.txt")
    with log.open("w") as said:
        process = subprocess.Popen(command("train", spec, "--out", folder), stdout=said, stderr=said)
        if kill != "none":
            strike(folder, kill)
        code = process.wait(WITHIN_S)
    assert (code == 0) == (kill == "none"), log.read_text()
    if kill != "none":
        subprocess.run(command("resume", folder), check=True, capture_output=True)
    subprocess.run(command("evaluate", folder), check=True, capture_output=True)
    return folder


@functools.cache
def left_alone(framework: str, data: str) -> Path:
    """Return a job of the shell that nobody disturbed."""
    return train_in_shell(place() / f"{framework} {data}", framework, data, "none")


@contextmanager
def studio(workspace: Path) -> Iterator[StudioProcess]:
    process = StudioProcess(workspace)
    try:
        yield process
    finally:
        process.end(signal.SIGTERM)


def train_in_studio(workspace: Path, framework: str, data: str, kill: str) -> Path:
    with studio(workspace) as first, Client(first.address) as client:
        dataset = {}
        if data == "dataset":
            made = client.datasets.create({"source": str(place() / "digits"), "name": "digits"})
            dataset = {"dataset": client.wait(made["id"], timeout_s=WITHIN_S, every_s=0.1)["id"]}
        spec = spec_of(framework, None if dataset else source(data))
        (job,) = client.train(spec, **dataset)
        folder = workspace / "jobs" / job["id"]
        if kill in ("worker", "stop"):
            strike(folder, "worker") if kill == "worker" else wait_and(client.stop, client, job["id"])
            wait_until(lambda: client.job(job["id"])["state"] in ("failed", "stopped"), WITHIN_S)
            client.resume(job["id"])
        if kill == "server":
            wait_and(lambda _: first.end(signal.SIGKILL), client, job["id"])
        else:
            check_done(client, job["id"])
    if kill == "server":
        with studio(workspace) as second, Client(second.address) as client:
            check_done(client, job["id"])
    return folder


def wait_and(act: Callable[[str], object], client: Client, job_id: str) -> None:
    """Act once a training is in the middle."""
    wait_until(lambda: client.job(job_id)["global_step"] >= KILLED_AT, WITHIN_S)
    act(job_id)


def check_done(client: Client, job_id: str) -> None:
    done = client.wait(job_id, timeout_s=WITHIN_S, every_s=0.1)
    assert done["state"] == "done", done
    evaluation = client.evaluations.create(job_id, split="val")
    assert client.wait(evaluation["id"], timeout_s=WITHIN_S, every_s=0.1)["state"] == "done"


JOURNEYS = {"shell": train_in_shell, "studio": train_in_studio}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("journey", "kill"), [(name, kill) for name, kills in KILLS.items() for kill in kills])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("task", TASKS)
def test_a_training_ends_as_if_it_had_been_left_alone(
    task: str, framework: str, data: str, journey: str, kill: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place()))  # the studio offers the folders of a person's home
    folder = JOURNEYS[journey](tmp_path / "job", framework, data, kill)
    check_same(folder, left_alone(framework, data))
