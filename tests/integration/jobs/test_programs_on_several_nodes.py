"""A program over two nodes of a real Ray cluster: its processes meet, stop and fail together."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest
from ray_machines import CLUSTER_S, ON_RAY, Machines, RayStudio, cluster_of

from tests.waiting import wait_until
from ziggurat.entities import NewJob, ResourceRequest
from ziggurat.jobs.outcome import last_events
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec

pytestmark = [*ON_RAY, pytest.mark.timeout(900)]

PROGRAM = """
import os, select, signal, socket, sys
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank:
    for attempt in range(300):
        try:
            line = socket.create_connection(place, timeout=30)
            break
        except OSError:
            select.select([], [], [], 0.1)
    line.sendall(bytes([rank]))
    print("rank", rank, "heard", line.recv(1)[0])
else:
    with socket.create_server(place) as server:
        line = server.accept()[0]
        print("rank 0 of", size, "heard", line.recv(1)[0])
        line.sendall(bytes([42]))
if "fails" in sys.argv and rank == 1:
    raise ValueError("the second process fails")
while "waits" in sys.argv:
    signal.pause()
"""


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with cluster_of(tmp_path_factory.mktemp("ray"), ("a", "b")) as found:
        yield found


@pytest.fixture
def studio(machines: Machines) -> Iterator[RayStudio]:
    made = RayStudio(machines)
    made.wait_for_nodes("a", "b")
    yield made
    made.close()


def submit(studio: RayStudio, job_id: str, *arguments: str) -> JobFolder:
    """Put the program into the queue, for two nodes."""
    folder = JobFolder(studio.workspace / "jobs" / job_id)
    folder.program.mkdir(parents=True)
    (folder.program / "train.py").write_text(PROGRAM)
    content = {"kind": "program", "script": "train.py", "nodes": 2, "arguments": arguments, "heartbeat_s": 0.2}
    spec = parse_spec(json.loads(json.dumps(content))).model_dump(mode="json")
    folder.spec.write_text(json.dumps(spec))
    studio.supervisor.submit(
        NewJob(
            id=job_id, kind="program", name=job_id, folder=os.fspath(folder.path), spec=spec, created=time.time(),
            needs=ResourceRequest(nodes=2),
        )
    )  # fmt: skip
    return folder


def test_processes_meet_fail_and_stop_together(studio):
    folder = submit(studio, "meets")
    job = studio.ended("meets", "done", "failed", "stopped")
    assert (job.state, [(share.node, share.ranks) for share in job.placement]) == ("done", [("a", (0,)), ("b", (1,))])
    assert "rank 0 of 2 heard 1" in folder.log.read_text()
    assert "rank 1 heard 42" in folder.of_rank(1).log.read_text()

    submit(studio, "fails", "fails", "waits")
    job = studio.ended("fails", "failed")
    words = last_events(JobFolder(studio.workspace / "jobs" / "fails").of_rank(1), since=0.0)
    print(f"the others had ended {time.time() - words.time:.1f} s after the process that failed")
    assert job.reason.startswith("rank 1 on node b ended with exit code 5: ")
    assert "the second process fails" in job.reason

    folder = submit(studio, "stops", "waits")
    wait_until(lambda: folder.log.exists() and "heard" in folder.log.read_text(), CLUSTER_S)
    studio.supervisor.pause("stops", "paused by ann")
    assert studio.ended("stops", "stopped").reason == "paused by ann"
    # What they held is free again: the next job of two nodes starts.
    submit(studio, "again")
    studio.ended("again")
