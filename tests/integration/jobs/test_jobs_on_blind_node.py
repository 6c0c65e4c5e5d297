"""A node of a real Ray cluster that does not see the studio's workspace: it gets what its jobs read."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs_studio import curves_of, paced
from ray_machines import CLUSTER_S, ON_RAY, Machines, RayStudio, cluster_of, nodes_of

from tests.waiting import wait_until

pytestmark = ON_RAY

HIDDEN = 'mount -t tmpfs none "$1" && shift && exec "$@"'


def start_blind_node(machines: Machines, name: str) -> subprocess.Popen[bytes]:
    """Start a node in a mount namespace of its own, in which the workspace is an empty folder."""
    plugins, token = machines.home / "plugins", machines.home / "token"
    shutil.copytree(machines.workspace / "plugins", plugins)
    shutil.copy(machines.workspace / ".ray_token", token)
    path = os.pathsep.join([str(Path(__file__).parent), str(plugins)])
    ray = [str(Path(sys.executable).parent / "ray"), "start", f"--address={machines.cluster.address}", "--block"]
    shape = ["--num-cpus=2", f"--labels=name={name}", f"--object-store-memory={80 << 20}", "--disable-usage-stats"]
    with (machines.home / "node.log").open("wb") as log:
        return subprocess.Popen(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", HIDDEN, "sh", str(machines.workspace), *ray, *shape],
            env={**os.environ, "PYTHONPATH": path, "RAY_AUTH_TOKEN_PATH": str(token)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    if subprocess.run(["unshare", "--map-root-user", "--mount", "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets its users make no mount namespaces")
    with cluster_of(tmp_path_factory.mktemp("ray"), ()) as found:
        node = start_blind_node(found, "far")
        yield found
        os.killpg(node.pid, signal.SIGTERM)
        node.wait()


@pytest.fixture
def studio(machines: Machines) -> Iterator[RayStudio]:
    made = RayStudio(machines)
    made.wait_for_nodes("far")
    yield made
    made.close()


@pytest.mark.timeout(600)
def test_a_job_runs_where_the_workspace_is_not_seen(studio, machines):
    assert [node.datasets for node in studio.ray.nodes()] == [frozenset()]
    folder = studio.train("away", callbacks=paced(0.1))
    job = studio.ended("away")
    assert (nodes_of(studio, "away"), job.exit_code) == (["far"], 0)
    # It goes on from a checkpoint that travels with its folder, with the data that the node has by now.
    wait_until(lambda: all(len(node.datasets) == 1 for node in studio.ray.nodes()), CLUSTER_S)
    stopped = studio.train("stopped", callbacks=paced(0.3))
    studio.wait_for_step(stopped, 9)
    studio.supervisor.pause("stopped", "paused by ann")
    studio.ended("stopped", "stopped")
    studio.supervisor.resume("stopped")
    studio.ended("stopped")
    assert studio.curves("stopped") == curves_of(stopped) == studio.curves("away") == curves_of(folder)
