"""Jobs on a real Ray cluster of this machine: a head and two nodes, each with a folder of its own for jobs."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from jobs_studio import Studio, curves_of, make_workspace, paced

from tests.waiting import PROCESS_S, wait_until
from ziggurat.cluster.ray.__main__ import prepare_token
from ziggurat.cluster.ray.executor import ray_executor
from ziggurat.entities import NodeResources
from ziggurat.jobs import Executor, ExecutorOptions, LocalExecutor, SeveralExecutors

# Not by an import: Ray reads its variables then.
is_missing = importlib.util.find_spec("ray") is None
pytestmark = [pytest.mark.nightly, pytest.mark.skipif(is_missing, reason="the extra `ray` is not installed")]

CLUSTER_S = 3 * PROCESS_S


@dataclass
class Machines:
    """A cluster, its nodes by name, and the workspace of a studio that uses it."""

    cluster: Any
    nodes: dict[str, Any]
    workspace: Path
    home: Path


class RayStudio(Studio):
    """A studio whose own machine has no place for jobs."""

    def __init__(self, machines: Machines) -> None:
        self.address = machines.cluster.address
        super().__init__(machines.workspace, places=0)

    def executor_with(self, local: LocalExecutor) -> Executor:
        self.ray = ray_executor(
            ExecutorOptions(
                command=(),
                environment={name: value for name, value in os.environ.items() if not name.startswith("ZIGGURAT_")},
                resources=NodeResources,
                log_limit_bytes=1 << 20,
                workspace=self.workspace,
                address=self.address,
            )
        )
        return SeveralExecutors({"local": local, "ray": self.ray})

    def close(self) -> None:
        super().close()
        self.ray.close()

    def wait_for_nodes(self, *names: str) -> None:
        def are_there() -> bool:
            return {node.name for node in self.ray.nodes()} == set(names)

        wait_until(are_there, CLUSTER_S, what=lambda: f"{names}; {self.ray.nodes()} {self.ray.problem()}")

    def ended(self, job_id: str, *states: str) -> Any:
        def there() -> Any:
            job = self.job(job_id)
            return job if job.state in (states or ("done",)) else None

        return wait_until(there, CLUSTER_S, what=lambda: repr(self.job(job_id)))


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Start a cluster whose nodes have one place each."""
    workspace, home = make_workspace(tmp_path_factory.mktemp("studio")), tmp_path_factory.mktemp("home")
    before = dict(os.environ)
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(prepare_token(workspace)),
        "RAY_USAGE_STATS_ENABLED": "0",
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(workspace / "plugins")]),
    }
    from ray.cluster_utils import Cluster  # it reads the variables

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 80 << 20})
    shape = {"num_cpus": 2, "object_store_memory": 80 << 20}
    nodes = {name: cluster.add_node(labels={"name": name}, **shape) for name in ("a", "b")}
    yield Machines(cluster, nodes, workspace, home)
    cluster.shutdown()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def studio(machines: Machines) -> Iterator[RayStudio]:
    made = RayStudio(machines)
    made.wait_for_nodes("a", "b")
    yield made
    made.close()


def nodes_of(studio: RayStudio, job_id: str) -> list[str]:
    return [share.node for share in studio.job(job_id).placement]


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
    for process in psutil.process_iter(["cmdline"]):
        if "RayWorker" in " ".join(process.info["cmdline"] or []):
            process.kill()
    machines.cluster.remove_node(machines.nodes["b"], allow_graceful=False)
    job = studio.ended("moved")
    assert [share.node for share in job.placement] == ["a"]
    studio.ended("twin")
    assert studio.curves("moved") == curves_of(moved) == studio.curves("twin")
    attempts = studio.store.curves.attempts("moved")
    assert [attempt.outcome for attempt in attempts] == ["stopped", "lost", "done"]
    assert attempts[1].reason == "node b does not answer"
    assert job.worker.attempt >= 3
    written = [path.name for path in machines.home.iterdir()]
    assert written == ["cache"], "Ray's token is in the workspace"
    assert (studio.workspace / ".ray_token").stat().st_mode & 0o777 == 0o600
