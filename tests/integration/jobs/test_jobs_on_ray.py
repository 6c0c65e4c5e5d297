"""Jobs on a real Ray cluster of this machine: a head and two nodes, each with a folder of its own for jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from jobs_studio import curves_of, paced
from ray_kills import processes_of
from ray_machines import CLUSTER_S, ON_RAY, Machines, RayStudio, cluster_of, nodes_of

from tests.waiting import wait_until

pytestmark = ON_RAY


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Start a cluster whose nodes have one place each."""
    with cluster_of(tmp_path_factory.mktemp("ray"), ("a", "b")) as found:
        yield found


@pytest.fixture
def studio(machines: Machines) -> Iterator[RayStudio]:
    made = RayStudio(machines)
    made.wait_for_nodes("a", "b")
    yield made
    made.close()


def test_a_job_moves_between_nodes_and_from_a_lost_one(studio, machines):
    moved = studio.train("moved", callbacks=paced(1.0))
    studio.wait_for_step(moved, 4)
    assert nodes_of(studio, "moved") == ["a"]
    studio.supervisor.pause("moved", "paused by ann")
    job = studio.ended("moved", "stopped")
    assert (job.reason, job.exit_code) == ("paused by ann", 75)
    # Another job takes its place, so it goes on elsewhere.
    studio.train("twin", callbacks=paced(0.1))
    wait_until(lambda: studio.job("twin").state == "running", CLUSTER_S)
    studio.supervisor.resume("moved")
    studio.wait_for_step(moved, 10)
    assert (nodes_of(studio, "twin"), nodes_of(studio, "moved")) == (["a"], ["b"])
    # What holds the worker is killed, and the machine is gone; the worker itself goes on, and nobody hears it.
    killed_at = time.time()
    for process in processes_of("actor", machines):
        process.kill()
    machines.cluster.remove_node(machines.nodes["b"], allow_graceful=False)
    job = studio.ended("moved")
    assert [share.node for share in job.placement] == ["a"]
    studio.ended("twin")
    assert studio.curves("moved") == curves_of(moved) == studio.curves("twin")
    attempts = studio.store.curves.attempts("moved")
    assert [attempt.outcome for attempt in attempts] == ["stopped", "lost", "done"]
    assert attempts[1].reason == "node b does not answer"
    print(f"the new attempt began {attempts[2].started - killed_at:.1f} s after the kill")
    assert job.worker.attempt >= 3
    written = [path.name for path in machines.home.iterdir()]
    assert written == ["cache"], "Ray's token is in the workspace"
    assert (studio.workspace / ".ray_token").stat().st_mode & 0o777 == 0o600
