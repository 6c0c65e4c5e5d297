"""Random kills on a real Ray cluster of this machine; ``--help`` lists seed and number of kills.

Trainings of PyTorch run on two nodes while an actor, a raylet, a worker, the bridge or the studio is killed again and
again, at random moments. Then each job is compared with an undisturbed twin, and its folder is searched for what a
superseded attempt may have left there. Both are evidence for the same claim: two workers may compute, one is heard.

``python ray_kills.py --studio WORKSPACE --address ADDRESS`` is the studio that is killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import psutil
from jobs_studio import MEASURED, paced, process_environment
from ray_machines import CLUSTER_S, Machines, RayStudio, cluster_of

from tests.waiting import wait_until
from ziggurat.errors import StorageError
from ziggurat.events import AttemptStarted, CheckpointSaved, ScalarLogged, effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.store import Store

KINDS: Final = ("actor", "raylet", "worker", "bridge", "studio")
AT_ONCE: Final = 2
"""Jobs that are not done, as long as there are kills to come."""

LONGEST_PAUSE_S: Final = 20.0
"""Between two kills. A lease and the start of the next attempt take longer, so some kills hit a recovery."""

END_S: Final = 600.0
ENOUGH: Final = "enough"
"""File in the workspace that tells the studio to begin no further job."""

NETWORK: Final = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.norm = nn.BatchNorm2d(input_shape[0])
        self.hidden = nn.Linear(input_shape[0] * input_shape[1] * input_shape[2], 8)
        self.drop = nn.Dropout(0.3)
        self.end = nn.Linear(8, nclasses)

    def forward(self, x):
        return self.end(self.drop(F.relu(self.hidden(self.norm(x).flatten(1)))))
"""

WHO: Final = ("process", "went on from")
Points = dict[str, list[tuple[int, float]]]


def training(each_s: float) -> dict[str, Any]:
    """Return the fields of a training of 90 steps, of which each takes so long."""
    return {
        "backend": "torch",
        "backend_options": {"intra_threads": 1},
        "network": {"source": "file", "path": "net.py", "text": NETWORK},
        "epochs": 15,
        "learning_rate": 0.05,
        "heartbeat_s": 0.5,
        "callbacks": [*paced(each_s), {"name": "jobs_test_witness", "options": {}}],
    }


# ---- the studio


def serve(workspace: Path, address: str) -> None:
    """Keep some jobs going, and continue what was killed, until this process is killed."""
    machines = Machines(cast(Any, argparse.Namespace(address=address)), {}, workspace, workspace)
    studio = RayStudio(machines)
    while True:
        known = {path.name for path in (workspace / "jobs").glob("job-*")}
        there = {job_id for job_id in known if studio.store.jobs.find(job_id) is not None}
        for job_id in known - there:  # killed between its folder and its row
            shutil.rmtree(workspace / "jobs" / job_id)
        jobs = [studio.job(job_id) for job_id in there]
        for job in jobs:
            if job.health == "lost" and job.state == "failed":
                print(f"{job.id} is continued: {job.reason}", flush=True)
                studio.supervisor.retry(job.id)
        if sum(job.state != "done" for job in jobs) < AT_ONCE and not (workspace / ENOUGH).exists():
            studio.train(f"job-{len(there) + 1}", **training(0.25))
        threading.Event().wait(0.2)


@contextmanager
def studio_process(machines: Machines) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Give what starts the studio, in the place of the one before it."""
    words = [sys.executable, __file__, "--studio", str(machines.workspace), "--address", machines.cluster.address]
    running: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        end()
        environment = {**process_environment(), "PYTHONPATH": os.pathsep.join([
            os.environ["PYTHONPATH"], process_environment()["PYTHONPATH"]
        ])}  # fmt: skip
        with (machines.home / "studio.log").open("ab") as log:
            running.append(subprocess.Popen(words, env=environment, stdout=log, stderr=log))
        return running[-1]

    def end() -> None:
        for each in running:
            each.kill()
            each.wait()

    try:
        yield start
    finally:
        end()


# ---- what is killed


def processes_of(kind: str, machines: Machines) -> list[psutil.Process]:
    """Return the processes of a kind that belong to this cluster, in the order of their start."""
    found = []
    for process in psutil.process_iter(["cmdline", "create_time"]):
        words = process.info["cmdline"] or []
        text = " ".join(words)
        if kind == "actor":
            is_of_kind = "RayWorker" in text and _is_ours(process, machines)
        elif kind == "worker":
            is_of_kind = words[1:3] == ["-m", "ziggurat.worker"] and str(machines.home) in text
        else:
            is_of_kind = "ziggurat.cluster.ray" in words and str(machines.workspace) in words
        if is_of_kind and "--studio" not in words:
            found.append(process)
    return sorted(found, key=lambda process: (process.info["create_time"], process.pid))


def _is_ours(process: psutil.Process, machines: Machines) -> bool:
    try:
        return process.environ().get("RAY_AUTH_TOKEN_PATH") == str(machines.workspace / ".ray_token")
    except psutil.Error:
        return False


def kill_random_process(kind: str, machines: Machines, chance: random.Random) -> str:
    """Kill a process of a kind, as soon as there is one, and say which."""

    def kill() -> str:
        processes = processes_of(kind, machines)
        if not processes:
            return ""
        process = chance.choice(processes)
        try:
            words = process.cmdline()
            process.kill()
        except psutil.NoSuchProcess:
            return ""
        place = next((f" in {Path(word).parents[1].name}" for word in words if str(machines.home) in word), "")
        return f"process {process.pid}{place}"

    return wait_until(kill, CLUSTER_S, what=f"a process of the kind {kind}")


def kill_random_node(machines: Machines, chance: random.Random) -> str:
    """Kill the raylet of a node, and start another one in its place a moment later."""
    name = chance.choice(sorted(machines.nodes))
    machines.cluster.remove_node(machines.nodes[name], allow_graceful=False)
    pause(chance.uniform(0, 4))
    shape = {"num_cpus": 2, "object_store_memory": 80 << 20}
    machines.nodes[name] = machines.cluster.add_node(labels={"name": name}, **shape)
    return f"node {name}"


def pause(seconds: float) -> None:
    threading.Event().wait(seconds)


# ---- what must hold


def curves_of(folder: Path) -> Points:
    """Return the points that hold by the file of events, but for clocks and process numbers."""
    found: Points = {}
    for point in effective_scalars(read_events(JobFolder(folder).events)[0]):
        if point.tag not in (*MEASURED, *WHO):
            found.setdefault(point.tag, []).append((point.step, point.value))
    return {tag: sorted(points) for tag, points in found.items()}


def stored_curves(store: Store, job_id: str) -> Points:
    """Return those points as the store has them."""
    found: Points = {}
    for tag in store.curves.tags(job_id):
        if tag not in (*MEASURED, *WHO):
            curve = store.curves.curve(job_id, tag, max_points=1_000_000)
            found[tag] = list(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
    return found


def check_one_was_heard(folder: Path) -> dict[str, int]:
    """Check that each part of the events and each checkpoint is of the one process whose turn it was.

    Returns:
        Counts of what was compared.

    Raises:
        AssertionError: saying what is of another process.
    """
    events = read_events(JobFolder(folder).events)[0]
    seen: set[int] = set()
    by: dict[int, int] = {}  # step → process that did it, or saved it, last
    process, came_from, last_step, count = 0, 0, 0, Counter[str]()
    for event in events:
        if isinstance(event, AttemptStarted):
            process, last_step = event.pid, event.global_step
            assert process not in seen, f"{folder.name}: process {process} is heard again after another one"
            seen.add(process)
            assert not last_step or last_step in by, f"{folder.name}: goes on from step {last_step}, which nobody did"
            by = {step: number for step, number in by.items() if step <= last_step}
            came_from = by.get(last_step, 0)
            count["attempts"] += 1
        elif isinstance(event, ScalarLogged) and event.tag in WHO:
            expected = process if event.tag == "process" else came_from
            assert event.value == expected, f"{folder.name}, step {event.step}: {event.tag} {event.value}"
            if event.tag == "process":
                assert event.step == last_step + 1, f"{folder.name}: step {event.step} follows {last_step}"
                last_step = event.step
                by[last_step] = process
                count["steps"] += 1
        elif isinstance(event, CheckpointSaved):
            by[event.step] = process
            count["checkpoints"] += 1
    for path in sorted(JobFolder(folder).checkpoints.glob("step-*")):
        meta = json.loads((path / "state.json").read_text())["meta"]
        found = meta["callbacks"]["Witness"]
        assert found == by[meta["global_step"]], f"{folder.name}: {path.name} is of process {found}"
        count["checkpoint folders"] += 1
    return dict(count)


def unheard_steps(machines: Machines, job_id: str, heard: Path) -> int:
    """Return how many steps superseded attempts did on their nodes that the studio never took."""
    taken = set(JobFolder(heard).events.read_bytes().splitlines())
    logs = machines.home.glob(f"cache/ziggurat/nodes/*/*/{job_id}-*/jobs/{job_id}/events.jsonl")
    lines = [line for log in logs for line in log.read_bytes().splitlines()]
    return sum(b'"tag": "process"' in line or b'"tag":"process"' in line for line in lines if line not in taken)


def run(seed: int, kills: int, folder: Path) -> None:
    """Kill so often, and check all jobs.

    Raises:
        AssertionError: saying what does not hold.
    """
    chance = random.Random(seed)
    kinds = [KINDS[number % len(KINDS)] for number in range(kills)]
    chance.shuffle(kinds)
    print(f"seed {seed}: {kills} kills", flush=True)
    began = time.monotonic()
    with cluster_of(folder, ("a", "b")) as machines, studio_process(machines) as start:
        twin = RayStudio(machines)
        twin.wait_for_nodes("a", "b")
        twin.train("twin", **training(0.0))
        twin.ended("twin")
        expected = stored_curves(twin.store, "twin")
        twin.close()
        assert expected == curves_of(machines.workspace / "jobs" / "twin"), "the twin in the store and in its file"
        studio = start()
        store = Store.open(machines.workspace / "studio.db")
        try:
            wait_until(lambda: processes_of("worker", machines), CLUSTER_S, what="the first worker")
            for number, kind in enumerate(kinds, start=1):
                pause(chance.uniform(0.0, LONGEST_PAUSE_S))
                assert studio.poll() is None, f"the studio ended: {(machines.home / 'studio.log').read_text()[-2000:]}"
                moment = time.monotonic() - began
                if kind == "studio":
                    what = f"process {studio.pid}"
                    studio.kill()
                    pause(chance.uniform(0, 4))
                    studio = start()
                elif kind == "raylet":
                    what = kill_random_node(machines, chance)
                else:
                    what = kill_random_process(kind, machines, chance)
                jobs = ", ".join(f"{job.id} {job.state} at {job.global_step}" for job in open_jobs(store))
                print(f"{number:3} at {moment:5.1f} s: {kind}, {what} ({jobs})", flush=True)
            (machines.workspace / ENOUGH).touch()
            wait_until(lambda: not open_jobs(store), END_S, what=lambda: f"all jobs: {open_jobs(store)}", every_s=0.5)
            check(store, machines, expected)
        except AssertionError:
            print((machines.home / "studio.log").read_text()[-4000:], flush=True)
            raise
        finally:
            store.close()


def open_jobs(store: Store) -> list[Any]:
    """Return the jobs that are not done.

    Raises:
        AssertionError: if one failed, or stopped, for another reason than a kill of its worker.
    """
    try:
        jobs = list(store.jobs.in_states(("queued", "running", "stopping", "stopped", "failed")))
    except StorageError:  # the database is busy
        return [None]
    for job in jobs:
        assert job.state != "failed" or job.health == "lost", f"{job.id} failed: {job.reason}"
    return jobs


def check(store: Store, machines: Machines, expected: Points) -> None:
    """Check all jobs, and print what was compared."""
    points = sum(map(len, expected.values()))
    for folder in sorted((machines.workspace / "jobs").glob("job-*")):
        heard = check_one_was_heard(folder)
        assert curves_of(folder) == expected, f"{folder.name}: the curves of its file are not those of the twin"
        assert stored_curves(store, folder.name) == expected, f"{folder.name}: the curves of the store are not"
        outcomes = Counter(attempt.outcome for attempt in store.curves.attempts(folder.name))
        unheard = unheard_steps(machines, folder.name, folder)
        print(
            f"{folder.name}: {points} points in {len(expected)} curves equal those of the twin, in file and store; "
            f"one process at a time was heard ({heard}); {unheard} steps of superseded attempts were not; "
            f"attempts: {dict(outcomes)}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=None, help="of kinds, moments and processes")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--studio", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--address", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.studio is not None:
        serve(given.studio, given.address)
    with tempfile.TemporaryDirectory(prefix="kills") as folder:
        run(random.randrange(1 << 32) if given.seed is None else given.seed, given.kills, Path(folder))


if __name__ == "__main__":
    main()
