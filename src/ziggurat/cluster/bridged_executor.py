"""Executor over a bridge: a process that speaks with a cluster, so that the studio loads no library of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ziggurat.cluster.bridge import NOT_NOW
from ziggurat.entities import Device, Heartbeat, NodeResources, Share, WorkerRef
from ziggurat.errors import JobError, ZigguratError
from ziggurat.jobs.executor import Ended, NotNowError, Running
from ziggurat.services.inference_process import ProcessEndedError, WarmProcess

__all__ = ["BridgedExecutor"]

_LOG: Final = logging.getLogger(__name__)
_ANSWER_WITHIN_S: Final = 30.0
_START_WITHIN_S: Final = 120.0
_EVERY_S: Final = 0.5
_NODES_EVERY: Final = 6
"""So many looks at the jobs there are for one at the nodes."""

_TRY_AGAIN_S: Final = 5.0


class BridgedExecutor:
    """Starts workers on the nodes of a cluster. It has no nodes until the bridge is there.

    Args:
        name: of the executor.
        command: starts the bridge.
        environment: of the bridge, whole.
        variables: of the workers, besides those of their node.
        workspace: of the studio.
        log: of the bridge.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        variables: Mapping[str, str],
        workspace: Path,
        log: Path,
    ) -> None:
        self._name = name
        self._command, self._environment = tuple(command), dict(environment)
        self._variables = dict(variables)
        self._workspace, self._log = workspace, log
        self._lock = threading.Lock()
        self._process: WarmProcess | None = None
        self._begun: WarmProcess | None = None
        self._known: dict[tuple[str, int], WorkerRef] = {}
        self._states: dict[tuple[str, int], Running | Ended] = {}
        self._nodes: tuple[NodeResources, ...] = ()
        self._problem = "the cluster is being asked"
        self._looked = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"{name} bridge", daemon=True)
        self._thread.start()

    def wait_for_nodes(self, timeout_s: float) -> bool:
        """Wait until the nodes were looked at, or that failed; return whether it was done within the time."""
        return self._looked.wait(timeout_s)

    def nodes(self) -> Sequence[NodeResources]:
        """Return the nodes as of some seconds ago; none while the bridge does not answer."""
        return self._nodes

    def problem(self) -> str:
        """Return what is wrong with the bridge, or with nodes that are left out."""
        return self._problem

    def start(
        self, job_folder: Path, placement: Sequence[Share], environment: Mapping[str, str], *, attempt: int
    ) -> WorkerRef:
        """Begin to send the folder to its node, where the worker is started then."""
        known, wanted = {node.name for node in self._nodes}, [share.node for share in placement]
        if not wanted or not known.issuperset(wanted):
            raise NotNowError(
                f"{', '.join(wanted) or 'No node'}: this is no node of the cluster now.",
                advice=f"There are: {', '.join(sorted(known))}." if known else "Look at the Machines page.",
            )
        shares = [[share.node, list(share.devices), list(share.ranks)] for share in placement]
        opaque = {"folder": str(job_folder), "job": job_folder.name, "shares": shares}
        worker = WorkerRef(executor=self._name, node=placement[0].node, attempt=attempt, opaque=opaque)
        self._ask("start", worker, environment={**self._variables, **environment})
        self._take_on(worker)
        return worker

    def poll(self, worker: WorkerRef) -> Running | Ended:
        """Return how the worker is, as of a second ago."""
        return self._states.get(_key(worker), Running())

    def ask_to_stop(self, worker: WorkerRef, reason: str) -> None:
        """Let the worker save and end."""
        self._ask("stop", worker, reason=reason)

    def terminate(self, worker: WorkerRef) -> None:
        """Let the worker get SIGTERM."""
        self._if_running("terminate", worker)

    def kill(self, worker: WorkerRef) -> None:
        """Let the worker be killed."""
        self._if_running("kill", worker)

    def adopt(self, folder: Path, heartbeat: Heartbeat | None, worker: WorkerRef | None = None) -> WorkerRef | None:
        """Return the worker that the store knows; that it is gone, if it is, ``poll`` says."""
        if worker is None or worker.executor != self._name or not worker.opaque:
            return None
        if isinstance(self._states.get(_key(worker)), Ended):
            return None
        adopted = WorkerRef(
            executor=self._name,
            node=worker.node,
            attempt=worker.attempt,
            opaque={**worker.opaque, "folder": str(folder)},
        )
        self._take_on(adopted)
        return adopted

    def close(self) -> None:
        """End the bridge; the workers go on for the length of their lease."""
        self._closing.set()
        with self._lock:
            process = self._begun
        if process is not None:
            process.close()  # the thread may wait for it
        self._thread.join()

    # ---- the bridge

    def _take_on(self, worker: WorkerRef) -> None:
        with self._lock:
            self._known[_key(worker)] = worker

    def _if_running(self, what: str, worker: WorkerRef) -> None:
        if not isinstance(self.poll(worker), Ended):
            self._ask(what, worker)

    def _ask(self, what: str, worker: WorkerRef | None = None, **fields: Any) -> Mapping[str, Any]:
        if worker is not None:
            # A worker that an earlier release started has one share.
            shares = worker.opaque.get("shares") or [[worker.node, [], [0]]]
            fields |= {"folder": worker.opaque["folder"], "attempt": worker.attempt, "shares": shares}
        process = self._process
        if process is None:
            raise NotNowError(
                "The bridge to the cluster must be there.", received=self._problem, advice="Wait a moment."
            )
        try:
            return process.ask(what, fields, _ANSWER_WITHIN_S)
        except ProcessEndedError as error:
            raise _ended(error, self._log) from None
        except ZigguratError as error:
            if error.details.get(NOT_NOW):
                raise NotNowError(error.rule, received=error.received or "", advice=error.advice) from None
            raise

    def _follow(self) -> None:
        """Start the bridge where there is none, and look at jobs and nodes again and again."""
        looks = 0
        while not self._closing.is_set():
            wait_s = _EVERY_S
            try:
                if self._process is None or not self._process.is_alive():
                    self._begin()
                    looks = 0
                self._look_at_jobs()
                if looks % _NODES_EVERY == 0:
                    self._look_at_nodes()
                looks += 1
            except Exception as error:  # a thread that ends would follow nothing any more
                if self._closing.is_set():
                    break
                if str(error) != self._problem:
                    _LOG.warning("the bridge to the cluster fails: %s", error)
                self._nodes, self._problem = (), str(error)
                self._looked.set()
                wait_s = _TRY_AGAIN_S
            self._closing.wait(wait_s)

    def _begin(self) -> None:
        process = WarmProcess(
            self._workspace, self._command, self._environment, self._log, start_timeout_s=_START_WITHIN_S
        )
        with self._lock:
            self._begun = process
        try:
            if self._closing.is_set():
                raise JobError("The bridge is closed.")
            process.wait_until_ready()
        except ProcessEndedError as error:
            process.close()
            raise _ended(error, self._log) from None
        except ZigguratError:
            process.close()
            raise
        self._process = process

    def _look_at_jobs(self) -> None:
        states = {(job, attempt): state for job, attempt, state in self._ask("states")["states"]}
        with self._lock:
            known = dict(self._known)
        for key, worker in known.items():
            if isinstance(self._states.get(key), Ended):
                continue
            if key not in states:  # the bridge is new
                is_there = self._ask("adopt", worker)["is_there"]
                self._states[key] = Running() if is_there else Ended(None, lost_node=worker.node)
            else:
                self._states[key] = _state_of(states[key], worker)
                if isinstance(self._states[key], Ended):
                    self._ask("forget", worker)
            if isinstance(self._states[key], Ended):
                with self._lock:
                    del self._known[key]

    def _look_at_nodes(self) -> None:
        answer = self._ask("nodes")
        self._nodes = tuple(_node(self._name, values) for values in answer["nodes"] if not values["problem"])
        problems = [f"node {values['name']}: {values['problem']}" for values in answer["nodes"] if values["problem"]]
        self._problem = "; ".join(problems)
        self._looked.set()


def _ended(error: ProcessEndedError, log: Path) -> NotNowError:
    return NotNowError(
        "The bridge to the cluster has ended.",
        received=error.received or "",
        advice=f"The studio starts it again; its output is in {log}.",
    )


def _key(worker: WorkerRef) -> tuple[str, int]:
    return worker.opaque["job"], worker.attempt


def _state_of(state: Mapping[str, Any], worker: WorkerRef) -> Running | Ended:
    reason = state.get("reason", "")
    if state["state"] == "running":
        return Running(state.get("waits", ""))
    if state["state"] == "ended":
        return Ended(state["exit_code"], reason=reason)
    return Ended(None, reason=reason, goes_on=True) if reason else Ended(None, lost_node=worker.node)


def _node(executor: str, values: Mapping[str, Any]) -> NodeResources:
    """Return a node; one that sees the workspace has all datasets."""
    cached = None if values["sees_workspace"] else frozenset(values["cached"])
    devices = tuple(Device(**device) for device in values["devices"])
    names = ("name", "cpu_slots", "memory_bytes", "disk_free_bytes", "disk_reserve_bytes", "versions", "labels")
    plain = {name: values[name] for name in names if name in values}
    return NodeResources(executor=executor, devices=devices, dataset_slots=0, datasets=cached, **plain)
