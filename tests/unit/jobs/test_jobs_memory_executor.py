"""Executors need no processes: one whose workers are rows in memory passes the suite that holds for all of them."""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from ziggurat.atomic import atomic_write_text, storage_errors
from ziggurat.entities import EXIT_STOPPED, NodeResources, WorkerRef
from ziggurat.errors import JobError
from ziggurat.jobs import Ended, Executor, Running
from ziggurat.layout import JobFolder
from ziggurat.testing.executor import ExecutorConformance


@dataclass
class Row:
    """A worker that does what its ``spec.json`` says, whenever somebody looks."""

    worker: WorkerRef
    ends: float
    code: int
    is_deaf: bool
    ended: Ended | None = None


class Memory:
    def __init__(self, rows):
        self.rows = rows

    def nodes(self):
        return (NodeResources(name="a", executor="memory"), NodeResources(name="b", executor="memory"))

    def problem(self):
        return ""

    def start(self, job_folder, placement, environment, *, attempt):
        known = {node.name for node in self.nodes()}
        if missing := [share.node for share in placement if share.node not in known]:
            raise JobError("A share must be on a node that is there.", received=missing[0])
        folder = JobFolder(job_folder)
        with storage_errors(folder.log), folder.log.open("a") as log:
            log.write("begun\n")
        spec = json.loads(folder.spec.read_text())
        variables = {**environment, "CUDA_VISIBLE_DEVICES": ",".join(map(str, placement[0].devices))}
        said = {"pid": None, "child": None, "away": None, "environment": variables}
        (folder.path / "said.json").write_text(json.dumps(said))
        opaque = {"folder": os.fspath(folder.path), "number": len(self.rows)}
        worker = WorkerRef(executor="memory", node=placement[0].node, attempt=attempt, opaque=opaque)
        ends = time.monotonic() + spec.get("for_s", 0)
        self.rows.append(Row(worker, ends, spec.get("exit_code", 0), spec.get("is_deaf", False)))
        return worker

    def poll(self, worker):
        row = self.rows[worker.opaque["number"]]
        if row.ended is None and JobFolder(self.folder(worker)).stop_request.exists():
            row.ended = Ended(EXIT_STOPPED)
        elif row.ended is None and time.monotonic() >= row.ends:
            row.ended = Ended(row.code)
        return row.ended or Running()

    def ask_to_stop(self, worker, reason):
        atomic_write_text(JobFolder(self.folder(worker)).stop_request, f"{reason}\n", "The stop request")

    def terminate(self, worker):
        row = self.rows[worker.opaque["number"]]
        if not row.is_deaf:
            row.ended = row.ended or Ended(-15)

    def kill(self, worker):
        row = self.rows[worker.opaque["number"]]
        row.ended = row.ended or Ended(None)

    def adopt(self, folder, heartbeat, worker=None):
        alive = [row.worker for row in self.rows if isinstance(self.poll(row.worker), Running)]
        return next((each for each in alive if self.folder(each) == folder), None)

    def folder(self, worker):
        return Path(worker.opaque["folder"])


class TestMemoryExecutor(ExecutorConformance):
    @pytest.fixture(autouse=True)
    def rows(self):
        self.shared = []

    def executor(self, command):
        return Memory(self.shared)


def test_it_is_an_executor():
    assert isinstance(Memory([]), Executor)
