"""Executor over Slurm: it sends jobs and follows them; where and when they run, Slurm decides.

The workspace lies on a folder that the nodes share. Each job proves that: its fence has a nonce, which the process on
the node must read and answer in the folder.
"""

from __future__ import annotations

import logging
import pwd
import secrets
import shlex
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text, raise_fence, read_fence, storage_errors
from ziggurat.cluster.slurm.commands import QueuedJob, SlurmCommands
from ziggurat.cluster.slurm.node import read_answer, script_of
from ziggurat.cluster.slurm.ranks import Tasks
from ziggurat.entities import EXIT_STOPPED, Device, Heartbeat, NodeResources, Share, WorkerRef
from ziggurat.entities.processes import LOG_LIMIT_BYTES
from ziggurat.errors import ConfigurationError, JobError
from ziggurat.jobs.executor import Ended, ExecutorOptions, Running
from ziggurat.layout import JobFolder
from ziggurat.settings import THREADS_VARIABLE

__all__ = ["SlurmExecutor", "SlurmTimes", "slurm_executor"]

_LOG: Final = logging.getLogger(__name__)
_NAME: Final = "slurm"
_EVERY_S: Final = 5.0
_ANSWER_WITHIN_S: Final = 15.0
"""How long after the end of a job its answer may take to be seen here: network disks keep old listings for a while."""

_WARNED_S: Final = 120
"""How long before its end Slurm tells a job, which then saves."""

_TAKEN_BACK: Final = {
    "BOOT_FAIL": "its node did not start",
    "NODE_FAIL": "its node failed",
    "PREEMPTED": "Slurm gave its node to another job",
    "TIMEOUT": "its time limit in Slurm was over",
}
"""State → why a job goes on later."""

_ENDED: Final = {
    "DEADLINE": "its deadline in Slurm has passed",
    "OUT_OF_MEMORY": "it needed more memory than Slurm gave it: add --mem to `slurm_options`",
    "REVOKED": "Slurm gave it to another cluster, which the studio does not follow",
}
"""State → why a job does not go on."""

_STUCK: Final = (
    "Slurm ended it twice at its time limit, and neither attempt saved a new step: raise --time in `slurm_options`, or "
    "let Slurm warn it earlier, such as by --signal=B:TERM@300"
)
_REFUSED_OPTIONS: Final = {
    "--array": "a job of the studio is one job of Slurm",
    "--requeue": "the studio sends a job again itself, by a new attempt",
    "--test-only": "nothing would run",
    "--wait": "sbatch would wait until the job ends",
    "--wrap": "the studio has its own script",
}
_SHORT_OPTIONS: Final = {"-a": "--array", "-W": "--wait"}
_PYTHON: Final = (sys.executable, "-P", "-m", "ziggurat.cluster.slurm.node")


_FORGOTTEN: Final = QueuedJob(frozenset())


@dataclass
class _Followed:
    """What is known of a job.

    Args:
        since: number of looks at Slurm's queue that were begun when it was taken on.
        over_since: when it was seen to be over, by ``time.monotonic()``; None before.
        last: as it was then; without a state where Slurm has forgotten it.
    """

    since: int
    over_since: float | None = None
    last: QueuedJob = _FORGOTTEN


@dataclass(frozen=True, kw_only=True)
class SlurmTimes:
    """How patiently Slurm is asked.

    Args:
        every_s: how often its queue is looked at.
        answer_within_s: how long after the end of a job its answer may take to be seen here.
    """

    every_s: float = _EVERY_S
    answer_within_s: float = _ANSWER_WITHIN_S


class SlurmExecutor:
    """Starts workers as jobs of Slurm. It has one node, which is the whole cluster.

    Args:
        command: starts a worker on a node; the job folder is added.
        environment: of the workers and of Slurm's commands, whole.
        workspace: of the studio, on a folder that the nodes share.
        resources: returns what the studio's machine has; its disk is that of the workspace.
        options: of ``sbatch``, besides those of the executor.
        log_limit_bytes: how large the log of a job may become.
        times: how patiently Slurm is asked.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        workspace: Path,
        *,
        resources: Callable[[], NodeResources] = NodeResources,
        options: Sequence[str] = (),
        log_limit_bytes: int = LOG_LIMIT_BYTES,
        times: SlurmTimes = SlurmTimes(),
    ) -> None:
        variables = {name: value for name, value in environment.items() if not name.startswith("CUDA_VISIBLE_")}
        self._commands = SlurmCommands(variables)
        self._command, self._workspace = tuple(command), workspace
        self._resources, self._options = resources, tuple(options)
        self._log_limit_bytes, self._times = log_limit_bytes, times
        self._lock = threading.Lock()
        self._followed: dict[str, _Followed] = {}
        self._ended: dict[str, Ended] = {}
        self._killed: set[str] = set()
        self._queue: dict[str, QueuedJob] = {}
        self._begun = 0
        self._is_proven = False
        self._refusal = ""
        self._problem = ""
        self._devices: tuple[Device, ...] = ()
        self._closing = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="slurm", daemon=True)
        self._thread.start()

    def nodes(self) -> Sequence[NodeResources]:
        """Return the cluster, where one device stands for all its GPUs; nothing if the workspace is not shared."""
        if self._refusal:
            return ()
        own = self._resources()
        return (
            NodeResources(
                name=_NAME,
                executor=_NAME,
                devices=self._devices,
                disk_free_bytes=own.disk_free_bytes,
                disk_reserve_bytes=own.disk_reserve_bytes,
                has_queue=True,
            ),
        )

    def problem(self) -> str:
        """Return that the workspace is not shared, or that Slurm does not answer."""
        return self._refusal or self._problem

    def start(
        self, job_folder: Path, placement: Sequence[Share], environment: Mapping[str, str], *, attempt: int
    ) -> WorkerRef:
        """Send the job to Slurm's queue."""
        if len(placement) != 1 or placement[0].node != _NAME:
            nodes = ", ".join(share.node for share in placement)
            raise JobError("A job must have one share, on Slurm.", received=nodes or "no node", advice=self._refusal)
        folder, nonce = JobFolder(Path(job_folder)), secrets.token_hex(8)
        with storage_errors(folder.log), folder.log.open("a"):
            pass
        number = raise_fence(folder.fence, attempt, nonce=nonce)
        tasks = _tasks_of(placement[0])
        options = [f"--tasks={tasks.count}", f"--of-node={tasks.of_node}"] if tasks.are_several else []
        words = [*_PYTHON, *options, str(folder.path), str(number), nonce, str(self._log_limit_bytes), "--"]
        words += self._command
        options = [*self._options_of(folder, placement[0], environment), *self._options]
        job = self._commands.submit(options, script_of([shlex.quote(word) for word in words]), environment)
        self._take_on(job)
        opaque = {"folder": str(job_folder), "id": job, "nonce": nonce}
        return WorkerRef(executor=_NAME, node=_NAME, attempt=attempt, opaque=opaque)

    def poll(self, worker: WorkerRef) -> Running | Ended:
        """Return how the worker is, as of some seconds ago."""
        job = worker.opaque["id"]
        if job in self._ended:
            return self._ended[job]
        followed = self._take_on(job)
        answer = read_answer(Path(worker.opaque["folder"]), worker.opaque["nonce"])
        self._is_proven = self._is_proven or bool(answer)
        queued = self._queue.get(job)
        ended: Ended | None = None
        is_killed = answer.get("code", 0) < 0  # why, Slurm says when it has tidied up
        if "code" in answer and not answer["is_signaled"] and not is_killed:
            ended = Ended(answer["code"], reason=answer.get("reason", ""))
        elif followed.over_since is not None:
            patience_s = 0.0 if "code" in answer else self._times.answer_within_s
            if time.monotonic() - followed.over_since >= patience_s:
                ended = self._end_of(worker, answer, followed)
        if ended is None:
            return Running(_waits(queued) if not answer else "")
        with self._lock:
            self._followed.pop(job, None)
            self._ended.setdefault(job, ended)
        return self._ended[job]

    def ask_to_stop(self, worker: WorkerRef, reason: str) -> None:
        """Write the stop request into the job folder; a job that has not begun leaves Slurm's queue."""
        folder = JobFolder(Path(worker.opaque["folder"]))
        atomic_write_text(folder.stop_request, reason.strip() + "\n", "The stop request")
        self._commands.cancel(worker.opaque["id"], "--state=PENDING")
        self._woken.set()

    def terminate(self, worker: WorkerRef) -> None:
        """Let the worker get SIGTERM."""
        if not isinstance(self.poll(worker), Ended):
            self._commands.cancel(worker.opaque["id"], "--signal=TERM", "--batch")

    def kill(self, worker: WorkerRef) -> None:
        """Cancel the job; a worker that runs is killed first, or Slurm would give it time to save."""
        if not isinstance(self.poll(worker), Ended):
            self._killed.add(worker.opaque["id"])  # Slurm may call its end a failure of its own
            self._commands.cancel(worker.opaque["id"], "--signal=KILL", "--full", "--state=RUNNING")
            self._commands.cancel(worker.opaque["id"])
            self._woken.set()

    def adopt(self, folder: Path, heartbeat: Heartbeat | None, worker: WorkerRef | None = None) -> WorkerRef | None:
        """Return the worker that the store knows, or else a live one whose answer is in the folder.

        That one of the store is gone, if it is, ``poll`` says.
        """
        known = dict(worker.opaque) if worker is not None and worker.executor == _NAME else {}
        is_stored = "id" in known
        known = known if is_stored else _answered(Path(folder))
        if "id" not in known or known["id"] in self._ended:
            return None
        if not is_stored:
            queued = self._commands.queue().get(known["id"])
            if queued is None or queued.is_over:
                return None
        self._take_on(known["id"])
        opaque = {**known, "folder": str(folder)}
        return WorkerRef(executor=_NAME, node=_NAME, attempt=0 if worker is None else worker.attempt, opaque=opaque)

    def close(self) -> None:
        """Look at Slurm no more; the jobs go on."""
        self._closing.set()
        self._woken.set()
        self._thread.join()

    # ---- parts

    def _options_of(self, folder: JobFolder, share: Share, environment: Mapping[str, str]) -> list[str]:
        tasks = _tasks_of(share)
        options = [
            f"--job-name=ziggurat-{folder.path.name}",
            f"--chdir={self._workspace}",
            f"--output={str(folder.log).replace('%', '%%')}",
            "--open-mode=append",
            "--export=ALL",
            f"--nodes={tasks.nodes}",
            f"--ntasks={tasks.count}",
            *([f"--ntasks-per-node={tasks.of_node}"] if tasks.are_several else []),
            "--no-requeue",  # the studio does that, by a new attempt
            f"--signal=B:TERM@{_WARNED_S}",
        ]
        if threads := environment.get(THREADS_VARIABLE):
            options.append(f"--cpus-per-task={threads}")
        if share.devices:
            options.append(f"--gres=gpu:{len(share.devices)}")
        return options

    def _take_on(self, job: str) -> _Followed:
        with self._lock:
            return self._followed.setdefault(job, _Followed(self._begun))

    def _end_of(self, worker: WorkerRef, answer: Mapping[str, Any], followed: _Followed) -> Ended:
        """Return the end of a job that is over in Slurm, and either answered with a code or will not any more."""
        job, states = worker.opaque["id"], followed.last.states
        taken_back = [_TAKEN_BACK[state] for state in sorted(states & _TAKEN_BACK.keys())]
        over = "".join(_ENDED[state] for state in sorted(states & _ENDED.keys()))
        stuck = "" if states & (_TAKEN_BACK.keys() - {"TIMEOUT"}) else _STUCK
        if job in self._killed:
            return Ended(answer.get("code"), reason="it was killed")
        if "CANCELLED" in states:
            request = JobFolder(Path(worker.opaque["folder"])).stop_request
            if not answer and request.is_file():  # it was asked to stop before it began
                return Ended(EXIT_STOPPED, reason=request.read_text(encoding="utf-8").strip())
            return Ended(answer.get("code"), reason=_canceled(followed.last))
        if over:
            return Ended(answer.get("code", JobError.exit_code), reason=over)
        if taken_back:
            return Ended(answer.get("code"), reason=taken_back[0], goes_on=True, stuck=stuck)
        if "code" in answer:
            goes_on = answer["is_signaled"]
            reason = "" if goes_on else answer.get("reason", "")
            return Ended(answer["code"], reason=reason, goes_on=goes_on, stuck=stuck if goes_on else "")
        if answer:
            said = ", ".join(sorted(states)) or "nothing of it"
            return Ended(None, reason=f"Slurm's job {job} left no exit code, and Slurm knows {said}")
        return Ended(JobError.exit_code, reason=self._refuse(job))

    def _refuse(self, job: str) -> str:
        said = (
            f"the workspace {self._workspace} must lie on a folder that the nodes of Slurm share, with this Python at "
            f"the same path: Slurm's job {job} ended without an answer in its folder"
        )
        if not self._is_proven:
            self._refusal = said
        return said

    def _follow(self) -> None:
        """Look at Slurm's queue again and again while there is a job to follow."""
        if self._commands.has_gpus(_partition(self._options)):
            self._devices = (Device(index=0, name="GPUs of Slurm", memory_bytes=0, free_bytes=0),)
        while not self._closing.is_set():
            self._woken.clear()
            with self._lock:
                self._begun += 1
                is_needed = bool(self._followed)
            if is_needed:
                self._look()
            self._woken.wait(self._times.every_s)

    def _look(self) -> None:
        look = self._begun
        try:
            queue = self._commands.queue()
        except Exception as error:  # a thread that ends would follow nothing any more
            if str(error) != self._problem:
                _LOG.warning("Slurm does not answer: %s", error)
            self._problem = str(error)
            return
        self._problem, self._queue = "", queue
        with self._lock:
            waiting = {job: each for job, each in self._followed.items() if each.over_since is None}
        for job, followed in waiting.items():
            queued = queue.get(job)
            if queued is not None and queued.is_over:
                followed.last, followed.over_since = queued, time.monotonic()
            elif queued is None and look > followed.since:
                followed.last, followed.over_since = self._commands.past(job), time.monotonic()


def _tasks_of(share: Share) -> Tasks:
    """Return the processes of a share: one, or one for each accelerator of each node, or for each node without any."""
    count = len(share.ranks)
    return Tasks(count, max(1, len(share.devices))) if count > 1 else Tasks()


def _partition(options: Sequence[str]) -> str:
    """Return the partitions that options of ``sbatch`` name; empty where they name none."""
    for word, after in zip(options, [*options, ""][1:], strict=True):
        if word in ("--partition", "-p"):
            return after
        if word.startswith(("--partition=", "-p")):
            return word.removeprefix("--partition=").removeprefix("-p")
    return ""


def _waits(queued: QueuedJob | None) -> str:
    if queued is not None and not queued.waits:
        return ""
    return "waits in Slurm's queue" + (f": {queued.reason}" if queued is not None and queued.reason else "")


def _canceled(last: QueuedJob) -> str:
    try:
        user = pwd.getpwuid(int(last.canceled_by)).pw_name
    except (ValueError, KeyError):  # Slurm may have said a name, or a number that is unknown on this machine
        user = last.canceled_by
    return "it was canceled in Slurm" + (f" by {user}" if user else "")


def _refuse_options(words: Sequence[str]) -> None:
    for word in words:
        name = word.partition("=")[0]
        name = _SHORT_OPTIONS.get(word[:2], name) if not word.startswith("--") else name
        if name in _REFUSED_OPTIONS:
            raise ConfigurationError(
                f"The setting `slurm_options` has `{word}`: {_REFUSED_OPTIONS[name]}.", advice="Leave that option out."
            )


def _answered(folder: Path) -> dict[str, Any]:
    """Return what the newest worker of a folder is known by, from its own answer; empty where it has ended."""
    fence = read_fence(JobFolder(folder).fence) or {}
    answer = read_answer(folder, fence.get("nonce", ""))
    if not answer.get("id") or "code" in answer:
        return {}
    return {"id": answer["id"], "nonce": answer["nonce"]}


def slurm_executor(options: ExecutorOptions) -> SlurmExecutor:
    """Return the executor of the Slurm cluster to which this machine can submit.

    Raises:
        ConfigurationError: where Slurm's commands are not there, or the options cannot be read.
    """
    missing = SlurmCommands(options.environment).missing()
    if missing:
        raise ConfigurationError(
            "The executor slurm needs Slurm's commands on PATH.",
            received=f"no {', '.join(missing)}",
            advice="Run the studio on a machine that can submit jobs, or set `executor` to local.",
        )
    try:
        words = shlex.split(options.slurm_options)
    except ValueError as error:
        advice = "Write it as on the command line of sbatch."
        received = f"{options.slurm_options}: {error}"
        raise ConfigurationError("The setting `slurm_options` is words.", received=received, advice=advice) from error
    _refuse_options(words)
    return SlurmExecutor(
        options.command,
        options.environment,
        options.workspace,
        resources=options.resources,
        options=words,
        log_limit_bytes=options.log_limit_bytes,
    )
