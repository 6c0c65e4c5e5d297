"""The studio's side of a bridge: what it says of a bridge that does not come up, and that it ends at once."""

import sys
import time

import pytest

from ziggurat.cluster.bridged_executor import BridgedExecutor
from ziggurat.entities import Share, WorkerRef
from ziggurat.errors import JobError
from ziggurat.jobs import Executor, Running


@pytest.fixture
def bridged(tmp_path):
    made = []

    def make(code):
        command = (sys.executable, "-S", "-c", code)
        made.append(BridgedExecutor("ray", command, {}, variables={}, workspace=tmp_path, log=tmp_path / "ray.log"))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_bridge_that_never_gets_ready_is_ended_at_once(bridged):
    executor = bridged("import sys; sys.stdin.read()")
    assert isinstance(executor, Executor)
    assert (list(executor.nodes()), executor.problem()) == ([], "the cluster is being asked")
    began = time.monotonic()
    executor.close()
    assert time.monotonic() - began < 30, "it does not wait until the bridge is ready"


def test_a_bridge_that_ends_is_a_problem_that_is_said(bridged):
    executor = bridged("raise SystemExit('no cluster here')")
    assert executor.wait_for_nodes(60)
    assert "no cluster here" in executor.problem()
    assert list(executor.nodes()) == []


def test_without_a_bridge_nothing_starts_and_nothing_is_lost(bridged, tmp_path):
    executor = bridged("import sys; sys.stdin.read()")
    with pytest.raises(JobError, match="a: this is no node of the cluster now"):
        executor.start(tmp_path / "job", (Share("a"),), {}, attempt=1)
    worker = WorkerRef(executor="ray", node="a", attempt=1, opaque={"folder": str(tmp_path), "job": "job"})
    assert executor.adopt(tmp_path / "moved", None, worker).opaque["folder"] == str(tmp_path / "moved")
    assert executor.poll(worker) == Running()
    assert executor.adopt(tmp_path, None) is None
    assert executor.adopt(tmp_path, None, WorkerRef(executor="local", node="x", opaque={"pid": 1})) is None
