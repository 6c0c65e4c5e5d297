"""Shared parts of the tests on a real Ray cluster of this machine: its nodes, and a studio that uses them."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jobs_studio import Studio, make_workspace

from tests.waiting import PROCESS_S, wait_until
from ziggurat.cluster.ray.__main__ import prepare_token
from ziggurat.cluster.ray.executor import ray_executor
from ziggurat.entities import NodeResources
from ziggurat.jobs import Executor, ExecutorOptions, LocalExecutor, SeveralExecutors
from ziggurat.layout import RAY_TOKEN_FILE

# Not by an import: Ray reads its variables then.
is_missing = importlib.util.find_spec("ray") is None
ON_RAY = [pytest.mark.nightly, pytest.mark.skipif(is_missing, reason="the extra `ray` is not installed")]

CLUSTER_S = 3 * PROCESS_S

_tokens: list[str] = []


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


def _token_of(workspace: Path) -> Path:
    """Return the file of a token that is the same for all clusters of this process: Ray reads it once."""
    path = workspace / RAY_TOKEN_FILE
    if _tokens:
        path.write_text(_tokens[0])
    _tokens.append(prepare_token(workspace).read_text())
    return path


@contextmanager
def cluster_of(folder: Path, names: Sequence[str], cpus: int = 2) -> Iterator[Machines]:
    """Start a cluster with a head without places, and nodes with one place each."""
    workspace, home = make_workspace(folder / "studio"), folder / "home"
    home.mkdir()
    before = dict(os.environ)
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(_token_of(workspace)),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Else they are at 15, and get no time beside the other tests of a busy machine.
        "RAY_worker_niceness": "0",
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(workspace / "plugins")]),
    }
    from ray.cluster_utils import Cluster  # it reads the variables

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "object_store_memory": 80 << 20})
    try:
        shape = {"num_cpus": cpus, "object_store_memory": 80 << 20}
        nodes = {name: cluster.add_node(labels={"name": name}, **shape) for name in names}
        yield Machines(cluster, nodes, workspace, home)
    finally:
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


def nodes_of(studio: RayStudio, job_id: str) -> list[str]:
    """Return the nodes that a job is on."""
    return [share.node for share in studio.job(job_id).placement]
