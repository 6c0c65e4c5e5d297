"""A worker on a node: it ends with its lease, whoever is killed, and its folder arrives at the studio's mirror."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PROCESS_S, wait_until
from ziggurat.cluster.lease import Lease
from ziggurat.cluster.mirror import Mirror
from ziggurat.cluster.node_worker import NodeWorker
from ziggurat.entities import EXIT_STOPPED
from ziggurat.entities.processes import began_at
from ziggurat.errors import JobError, UsageError
from ziggurat.layout import JobFolder
from ziggurat.testing.executor import STAND_IN

LONG_S = 60


@pytest.fixture
def node(tmp_path):
    """Return what makes workers on a node; what is left of them is killed."""
    script = tmp_path / "stand_in.py"
    script.write_text(STAND_IN)
    made = []

    def make(attempt=1, lease_s=30.0, **spec):
        worker = NodeWorker(tmp_path / "node", "job", attempt, (sys.executable, "-S", str(script)), lease_s)
        worker.receive("spec.json", 0, json.dumps(spec).encode())
        made.append(worker)
        return worker

    yield make
    for worker in made:
        try:
            worker.kill()
        except JobError:
            pass  # it was never started


def said(worker):
    path = worker.folder / "said.json"
    wait_until(path.exists, PROCESS_S)
    return json.loads(path.read_text())


def mirror_of(worker, tmp_path, attempt=1):
    folder = tmp_path / "studio" / "job"
    folder.mkdir(parents=True, exist_ok=True)
    return Mirror(folder, attempt)


def arrived(worker, mirror):
    def is_over():
        reply = worker.exchange(mirror.request())
        mirror.take(reply)
        return (reply,) if reply.has_ended and mirror.is_whole else None

    return wait_until(is_over, PROCESS_S)[0]


def test_a_worker_runs_on_its_node_and_its_folder_arrives(node, tmp_path):
    worker = node(exit_code=7)
    opaque = worker.start((1,), {"OF_THE_JOB": "1"})
    assert worker.start((1,), {}) == opaque, "it is started once"
    mirror = mirror_of(worker, tmp_path)
    assert arrived(worker, mirror).exit_code == 7
    told = json.loads((mirror.folder / "said.json").read_text())
    assert (told["pid"], told["environment"]["CUDA_VISIBLE_DEVICES"]) == (opaque["pid"], "1")
    assert told["environment"]["OF_THE_JOB"] == "1"
    assert JobFolder(mirror.folder).log.read_text() == "begun\n"
    worker.remove()
    assert not worker.folder.exists()


def test_it_is_asked_to_stop_through_the_exchange(node, tmp_path):
    worker = node(for_s=LONG_S)
    worker.start((), {})
    mirror = mirror_of(worker, tmp_path)
    worker.exchange(mirror.request(stop="the test asks"))
    assert arrived(worker, mirror).exit_code == EXIT_STOPPED


def test_without_a_lease_it_is_asked_to_save_and_end(node):
    worker = node(for_s=LONG_S, lease_s=1.0)
    pid = worker.start((), {})["pid"]
    wait_until(lambda: began_at(pid) is None, PROCESS_S)
    assert "the studio did not ask" in JobFolder(worker.folder).stop_request.read_text()


def test_one_that_does_not_end_without_a_lease_is_killed(node):
    worker = node(for_s=LONG_S, lease_s=0.4, has_escaped=True)
    pid = worker.start((), {})["pid"]
    away = said(worker)["away"]
    stop = JobFolder(worker.folder).stop_request
    stop.mkdir()  # it never sees a request
    wait_until(lambda: began_at(pid) is None and began_at(away) is None, PROCESS_S)


def test_exchanges_renew_the_lease(node, tmp_path):
    worker = node(for_s=LONG_S)
    worker.start((), {})
    lease, mirror = Lease(worker.folder), mirror_of(worker, tmp_path)
    os.utime(lease.path, (1.0, 1.0))
    assert lease.age_s() > 1000
    worker.exchange(mirror.request())
    assert lease.age_s() < 10


def test_attempts_have_folders_of_their_own(node, tmp_path):
    first, second = node(1, for_s=LONG_S), node(2)
    first.start((), {})
    second.start((), {})
    mirror = mirror_of(second, tmp_path, attempt=2)
    assert arrived(second, mirror).exit_code == 0
    with pytest.raises(JobError, match="of another attempt"):
        first.exchange(mirror.request())
    assert first.folder != second.folder


def test_nothing_is_exchanged_before_the_start(node, tmp_path):
    worker = node()
    with pytest.raises(JobError, match="must have been started"):
        worker.exchange(mirror_of(worker, tmp_path).request())


@pytest.mark.parametrize("name", ["../spec.json", "/etc/passwd", "a/../../b"])
def test_a_file_that_leads_out_of_the_folder_is_refused(node, name):
    with pytest.raises(UsageError, match="must lie in its folder"):
        node().receive(name, 0, b"")
    assert not Path(node().folder.parent / "b").exists()


def take_dataset(worker):
    """Copy a dataset into the cache of the node; return the file that the attempt reads."""
    worker.stand_for("/studio")
    if worker.take("key", 3, "datasets/cells") == "begun":
        worker.copy("a", 0, b"abc")
        worker.finish({"a": (3, hashlib.blake2b(b"abc", digest_size=16).digest())}, "datasets/cells")
    return worker.folder.parents[1] / "datasets" / "cells" / "a"


def test_links_of_an_attempt_that_was_killed_go(node, tmp_path):
    """Its process is gone, and it has no lease: what it had of the cache may be evicted."""
    code = (
        f"import os, sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path; from ziggurat.cluster.node_worker import NodeWorker; import test_node_worker\n"
        f"print(test_node_worker.take_dataset(NodeWorker(Path({str(tmp_path / 'node')!r}), 'job', 1)))\n"
        "sys.stdout.flush(); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    killed, held = Path(done.stdout.strip()), take_dataset(node(2))
    assert not killed.exists(), "the next attempt on the node removed it"
    take_dataset(node(3))
    assert held.read_bytes() == b"abc", "that one is held"
    assert killed.parents[2].joinpath("jobs", "job").is_dir(), "what it wrote stays"
