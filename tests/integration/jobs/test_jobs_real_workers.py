"""Real workers and the real store: whoever is killed, no point is missing and none is there twice."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import jobs_studio
import numpy as np
import psutil
import pytest
from jobs_studio import curves_of, paced

from tests.waiting import PROCESS_S, wait_until
from ziggurat.entities import read_heartbeat
from ziggurat.errors import JobError
from ziggurat.layout import JobFolder


@pytest.mark.smoke
def test_a_killed_worker_fails_and_resumes_at_the_exact_step(new_studio, undisturbed):
    studio = new_studio()
    folder = studio.train("job")
    os.kill(studio.wait_for_step(folder, 10), signal.SIGKILL)
    job = studio.wait_for("job", "failed")
    assert job.reason.startswith("the worker ended without a word: it was killed by SIGKILL")
    assert (job.exit_code, job.health, job.pid) == (-9, "lost", None)
    assert [attempt.outcome for attempt in studio.store.curves.attempts("job")] == ["lost"]
    studio.supervisor.resume("job")
    job = studio.wait_for("job", "done")
    assert studio.curves("job") == curves_of(folder) == undisturbed
    attempts = studio.store.curves.attempts("job")
    assert [attempt.outcome for attempt in attempts] == ["lost", "done"]
    assert attempts[1].first_step >= 8
    assert (job.global_step, job.epoch) == (24, 4)


@pytest.mark.nightly
def test_paused_and_resumed(new_studio, undisturbed):
    studio = new_studio()
    folder = studio.train("job")
    studio.wait_for_step(folder, 7)
    studio.supervisor.pause("job", "paused by ann")
    job = studio.wait_for("job", "stopped")
    assert (job.reason, job.paused, job.exit_code) == ("paused by ann", True, 75)
    studio.supervisor.resume("job")
    studio.wait_for("job", "done")
    assert studio.curves("job") == undisturbed


@pytest.mark.nightly
def test_the_supervisor_is_dropped_in_mid_training_and_made_anew(new_studio, undisturbed):
    first = new_studio()
    folder = first.train("job")
    pid = first.wait_for_step(folder, 6)
    first.supervisor.close()
    second = new_studio()
    second.wait_for_step(folder, 12)
    job = second.job("job")
    assert (job.state, job.pid) == ("running", pid)
    assert second.wait_for("job", "done").exit_code == 0
    assert second.curves("job") == curves_of(folder) == undisturbed
    assert len(second.store.curves.attempts("job")) == 1


def test_the_studio_is_killed_in_mid_training(workspace, new_studio, undisturbed):
    first = new_studio(places=1)
    folder = first.train("job")
    second = first.train("next", callbacks=paced(0.0))
    first.close()
    process = subprocess.Popen([sys.executable, jobs_studio.__file__, str(workspace)])
    try:
        pid = first.wait_for_step(folder, 6)
    finally:
        process.kill()
        process.wait()
    assert psutil.pid_exists(pid)
    studio = new_studio(places=1)
    assert studio.wait_for("job", "done").pid is None
    assert studio.curves("job") == curves_of(folder) == undisturbed
    assert len(studio.store.curves.attempts("job")) == 1
    studio.wait_for("next", "done")
    assert studio.curves("next") == curves_of(second) == undisturbed


@pytest.mark.nightly
def test_the_studio_is_killed_again_and_again(workspace, new_studio, undisturbed):
    random = np.random.default_rng(7)
    first = new_studio()
    names = [f"job{number}" for number in range(4)]
    folders = {name: first.train(name, callbacks=paced(0.03)) for name in names}
    first.close()
    for _ in range(8):
        process = subprocess.Popen(jobs_studio.COMMAND + [str(workspace)], env=jobs_studio.process_environment())
        with pytest.raises(subprocess.TimeoutExpired):  # it works on, until a moment that it cannot foresee
            process.wait(random.uniform(0.3, 1.6))
        process.kill()
        process.wait()
    studio = new_studio()
    for name in names:
        studio.wait_for(name, "done", "failed")
        assert studio.curves(name) == curves_of(folders[name]) == undisturbed
        assert [attempt.outcome for attempt in studio.store.curves.attempts(name)] == ["done"]


def test_deleted_by_force_in_mid_training(new_studio):
    studio = new_studio()
    folder = studio.train("job")
    pid = studio.wait_for_step(folder, 2)
    with pytest.raises(JobError, match="Stop it first"):
        studio.supervisor.delete("job")
    studio.supervisor.delete("job", force=True)
    assert not folder.exists()
    assert studio.store.jobs.find("job") is None
    wait_until(lambda: not psutil.pid_exists(pid), PROCESS_S, what="its end")


def test_two_people_at_once(new_studio):
    studio = new_studio()
    said = []

    def ask(act, *arguments, **options):
        try:
            act(*arguments, **options)
        except JobError as error:
            said.append(str(error))

    for name in ("a", "b", "c"):
        studio.train(name)
        studio.wait_for(name, "running")
        asked = [studio.supervisor.stop, studio.supervisor.pause, studio.supervisor.resume, studio.supervisor.delete]
        threads = [threading.Thread(target=ask, args=(act, name)) for act in asked * 3]
        threads += [threading.Thread(target=ask, args=(studio.supervisor.delete, name), kwargs={"force": True})]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert studio.store.jobs.find(name) is None
        assert not (studio.workspace / "jobs" / name).exists()
    assert all("Only a job that is" in each or "There is no job `" in each for each in said)
    assert studio.supervisor.problems() == {}


def test_a_full_disk_fails_the_job_and_nothing_else(new_studio):
    # A file of the worker may grow to 8 blocks of 512 bytes: as on a disk that is nearly full.
    limit = ("/bin/sh", "-c", 'ulimit -f 8; exec "$0" "$@"', *jobs_studio.WORKER)
    studio = new_studio(command=limit)
    folder = studio.train("job", callbacks=[], data="digits")
    job = studio.wait_for("job", "failed")
    assert job.exit_code == 11
    assert "must be written" in job.reason
    assert studio.curves("job") == curves_of(folder)


STAND_IN = """
import json, os, sys, threading, time
folder = sys.argv[-1]
now = time.time()
lines = [{"type": "attempt_started", "attempt": 1, "pid": os.getpid(), "host": "h", "backend": "null", "release": "0"}]
lines += [{"type": "scalar", "tag": "cost", "value": 1 / step, "step": step, "epoch": 1} for step in range(1, 101)]
lines += [{"type": "attempt_ended", "outcome": "done", "exit_code": 0, "global_step": 100, "epoch": 1}]
open(f"{folder}/at-work", "x").close()
at_work = sum(os.path.exists(f"{path}/at-work") for path in os.scandir(f"{folder}/..") for path in [path.path])
for line in lines:
    with open(f"{folder}/events.jsonl", "a") as file:
        file.write(json.dumps({"version": 1, "time": now, **line}) + "\\n")
threading.Event().wait(0.05)
with open(f"{folder}/seen", "w") as file:
    file.write(str(at_work))
os.remove(f"{folder}/at-work")
"""


def test_fifty_jobs_and_room_for_two(new_studio, tmp_path):
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    studio = new_studio(command=(sys.executable, "-S", str(script)))
    names = [f"job{number:02d}" for number in range(50)]
    folders = [studio.submit(name, {"kind": "train"}) for name in names]
    for name in names:
        studio.wait_for(name, "done", "failed")
    assert {studio.job(name).state for name in names} == {"done"}
    assert all(int((folder / "seen").read_text()) <= 2 for folder in folders)
    points = [(step, 1 / step) for step in range(1, 101)]
    assert all(studio.curves(name) == {"cost": points} for name in names)


def test_nothing_is_left_of_a_studio_but_its_workers(new_studio):
    studio = new_studio()
    folder = studio.train("job")
    pid = studio.wait_for_step(folder, 1)
    assert os.getsid(pid) == pid
    beat = read_heartbeat(JobFolder(folder).heartbeat)
    assert beat is not None
    assert studio.job("job").pid == beat.pid
    studio.supervisor.stop("job", "enough", at_once=True)
    assert studio.wait_for("job", "stopped").reason == "enough"
    assert [path.name for path in Path(folder).glob(".*.tmp")] == []


@pytest.mark.smoke
def test_a_worker_that_the_version_before_started_is_adopted(new_studio, workspace, undisturbed):
    first = new_studio()
    folder = first.train("job")
    pid = first.wait_for_step(folder, 6)
    first.close()
    # The database as revision 0004 left it: of the worker it knows the process and the machine.
    with closing(sqlite3.connect(workspace / "studio.db")) as connection:
        for column in ("worker", "placement"):
            connection.execute(f"ALTER TABLE jobs DROP COLUMN {column}")
        connection.execute("UPDATE alembic_version SET version_num = '0004'")
        connection.commit()
        assert connection.execute("SELECT pid, state FROM jobs").fetchall() == [(pid, "running")]
    second = new_studio()
    worker = wait_until(lambda: second.job("job").worker, PROCESS_S, what="the worker")
    assert (worker.executor, worker.opaque["pid"]) == ("local", pid)
    second.supervisor.pause("job")
    second.wait_for("job", "stopped")
    assert [attempt.outcome for attempt in second.store.curves.attempts("job")] == ["stopped"]
    second.supervisor.resume("job")
    job = second.wait_for("job", "done")
    assert second.curves("job") == undisturbed
    assert (job.worker.attempt, [share.node for share in job.placement]) == (2, [job.worker.node])
