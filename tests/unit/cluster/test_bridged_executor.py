"""The studio's side of a bridge: what it says of a bridge that does not come up, and that it ends at once."""

import sys
import time

import pytest

from ziggurat.cluster.bridged_executor import BridgedExecutor
from ziggurat.entities import Share, WorkerRef
from ziggurat.jobs import Executor, Running
from ziggurat.jobs.executor import NotNowError


@pytest.fixture
def bridged(tmp_path):
    made = []

    def make(code, *options):
        command = (sys.executable, *(options or ("-S", "-c")), code)
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


ONE_NODE = """
import os, sys
from ziggurat.errors import JobError
from ziggurat.records.codec import read_frame, write_frame
source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
write_frame(target, {"id": 0, "result": {}})
while request := read_frame(source):
    node = {"name": "a", "problem": "", "sees_workspace": True, "devices": []}
    answers = {"states": {"states": []}, "nodes": {"nodes": [node]}}
    if request["do"] in answers:
        write_frame(target, {"id": request["id"], "result": answers[request["do"]]})
    elif NAME == "killed":
        os.kill(os.getpid(), 9)
    else:
        error = JobError("Node a is not there.", details={"not_now": True}).as_dict()
        write_frame(target, {"id": request["id"], "error": error, "exit_code": 1})
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "killed",
            r"The bridge to the cluster has ended \(received: it was killed by SIGKILL\). The studio",
        ),
        ("refused", r"Node a is not there\."),
    ],
)
def test_what_is_over_by_itself_is_no_failure_of_the_job(bridged, tmp_path, name, text):
    executor = bridged(f"NAME = {name!r}{ONE_NODE}", "-c")
    assert executor.wait_for_nodes(60)
    assert [node.name for node in executor.nodes()] == ["a"], executor.problem()
    with pytest.raises(NotNowError, match=text):
        executor.start(tmp_path / "job", (Share("a"),), {}, attempt=1)


def test_without_a_bridge_nothing_starts_and_nothing_is_lost(bridged, tmp_path):
    executor = bridged("import sys; sys.stdin.read()")
    with pytest.raises(NotNowError, match="a: this is no node of the cluster now"):
        executor.start(tmp_path / "job", (Share("a"),), {}, attempt=1)
    worker = WorkerRef(executor="ray", node="a", attempt=1, opaque={"folder": str(tmp_path), "job": "job"})
    assert executor.adopt(tmp_path / "moved", None, worker).opaque["folder"] == str(tmp_path / "moved")
    assert executor.poll(worker) == Running()
    assert executor.adopt(tmp_path, None) is None
    assert executor.adopt(tmp_path, None, WorkerRef(executor="local", node="x", opaque={"pid": 1})) is None
