"""Processes of a training over several nodes of Slurm: ``srun`` starts one task for each, and each task a worker.

Rank 0 has the job folder. The others have folders of their own in it, which are made anew for each attempt.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import EXIT_SUPERSEDED, atomic_write_text, read_fence
from ziggurat.cluster.exchange import mirrored_files
from ziggurat.entities import EXIT_DONE, EXIT_STOPPED
from ziggurat.entities.processes import start_worker
from ziggurat.errors import JobError
from ziggurat.jobs.outcome import last_events
from ziggurat.layout import JobFolder
from ziggurat.settings import THREADS_VARIABLE

__all__ = [
    "Tasks",
    "add_job_arguments",
    "end_of_ranks",
    "main",
    "prepare_ranks",
    "refusal_of_node",
    "send_signal",
    "start_tasks",
    "worker_variables",
]

_PYTHON: Final = (sys.executable, "-P", "-m", "ziggurat.cluster.slurm.ranks")
_WAIT_S: Final = 60
"""So long after the end of a process the others may go on."""

_ORDERLY: Final = (EXIT_DONE, EXIT_STOPPED, EXIT_SUPERSEDED)
"""Exit codes of rank 0 after which the others end by themselves."""


@dataclass(frozen=True)
class Tasks:
    """Processes of a job.

    Args:
        count: of all nodes.
        of_node: on each node.
    """

    count: int = 1
    of_node: int = 1

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.count // self.of_node

    @property
    def are_several(self) -> bool:
        """Whether ``srun`` starts them."""
        return self.count > 1


# ---- the batch script's process, on the first node


def prepare_ranks(folder: JobFolder, tasks: Tasks) -> None:
    """Give the folders of the other ranks what rank 0 had saved; their logs and events stay.

    Raises:
        OSError: if they cannot be written.
    """
    own_files = {each.name for each in (folder.fence, folder.slurm, folder.heartbeat, folder.last_words)}
    names = [folder.spec.name, folder.hyperparameters.name, *mirrored_files(folder.path)]
    # Of its folders they read no other: images and curves are those of rank 0.
    wanted = [name for name in names if "/" not in name or name.startswith(f"{folder.data.name}/")]
    for rank in range(tasks.count):
        end = _end_file(folder, rank)
        end.parent.mkdir(parents=True, exist_ok=True)
        end.unlink(missing_ok=True)
        if rank:
            own = folder.of_rank(rank)
            for name in wanted:
                if name not in own_files and (folder.path / name).is_file():
                    (own.path / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(folder.path / name, own.path / name)
            _link(own.fence, folder.fence)
            shutil.rmtree(own.checkpoints, ignore_errors=True)
            own.checkpoints.mkdir()
            for path in folder.checkpoints.glob("[!.]*/"):
                _link(own.checkpoints / path.name, path)


def _link(path: Path, target: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent), target_is_directory=target.is_dir())


def start_tasks(folder: JobFolder, tasks: Tasks, words: Sequence[str], environment: Mapping[str, str]) -> int:
    """Start ``srun``, and return its process number; SIGUSR1 to it lets rank 0 save and end.

    Args:
        folder: of the job.
        tasks: how many there are.
        words: of the command line of ``main``.
        environment: of the batch script.

    Raises:
        OSError: if it cannot be started.
    """
    prepare_ranks(folder, tasks)
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    variables = {**environment, "MASTER_ADDR": _address(environment), "MASTER_PORT": str(port)}
    options = [
        f"--ntasks={tasks.count}",
        f"--ntasks-per-node={tasks.of_node}",
        "--kill-on-bad-exit=1",
        f"--wait={_WAIT_S}",
        "--export=ALL",
        "--mpi=none",
    ]
    if threads := environment.get("SLURM_CPUS_PER_TASK"):
        options.append(f"--cpus-per-task={threads}")  # it does not take it from the batch script
    return subprocess.Popen(["srun", *options, *_PYTHON, *words], env=variables, stdin=subprocess.DEVNULL).pid


def _address(environment: Mapping[str, str]) -> str:
    """Return the address of this machine for the last node; its host name, which may mean loopback here, if unknown."""
    words = ["scontrol", "show", "hostnames", environment.get("SLURM_JOB_NODELIST", "")]
    try:
        last = subprocess.run(words, capture_output=True, text=True, check=True, timeout=_WAIT_S).stdout.split()[-1]
        kind, _, _, _, target = socket.getaddrinfo(last, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as way:  # nothing is sent
            way.connect(target)
            return str(way.getsockname()[0])
    except (OSError, subprocess.SubprocessError, IndexError):
        return socket.gethostname()


def end_of_ranks(folder: JobFolder, tasks: Tasks, code: int) -> dict[str, Any]:
    """Return exit code and reason of a job whose tasks have ended.

    Args:
        folder: of the job.
        tasks: how many there were.
        code: exit code of ``srun``.
    """
    ends = {rank: end for rank in range(tasks.count) if (end := _read_end(folder, rank)) is not None}
    first = ends.pop(0, None)
    if first is not None and first["code"] >= 0:
        return {"code": first["code"]}
    for rank, end in sorted(ends.items()):
        if end["code"] != EXIT_DONE:
            words = last_events(folder.of_rank(rank), since=0.0)
            cause = f": {words.reason}" if words is not None and words.reason else "; its log may say why"
            reason = f"rank {rank} on node {end['node']} ended with exit code {end['code']}{cause}"
            return {"code": end["code"], "reason": reason}
    return {"code": code if first is None else first["code"]}


# ---- a task, on its node


def refusal_of_node(folder: JobFolder, number: int, nonce: str) -> int:
    """Return the exit code of a node that must not start the worker; 0 if it may.

    It may where it sees the folder as the studio does, and no later attempt has it.

    Args:
        folder: the job folder.
        number: of the attempt.
        nonce: that the studio wrote into the fence of the folder.
    """
    fence = read_fence(folder.fence)
    if fence is not None and fence["number"] > number:
        sys.stderr.write(f"A later worker has taken {folder.path}; this one does not start.\n")
        return EXIT_SUPERSEDED
    if fence is None or fence.get("nonce") != nonce:
        sys.stderr.write(f"Error: {socket.gethostname()} does not see the folder {folder.path} as the studio does.\n")
        return JobError.exit_code
    return 0


def add_job_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the processes on the nodes get of a job: folder, attempt, nonce, limit of the log, and its worker."""
    parser.add_argument("folder", type=Path)
    parser.add_argument("number", type=int)
    parser.add_argument("nonce")
    parser.add_argument("log_limit_bytes", type=int)
    parser.add_argument("command", nargs="+")


def main(arguments: Sequence[str]) -> int:
    """Run the worker of one rank; return 0 if it ended in order, else its exit code, which ends all ranks."""
    parser = argparse.ArgumentParser(prog="python -m ziggurat.cluster.slurm.ranks")
    add_job_arguments(parser)
    given = parser.parse_args(arguments)
    folder = JobFolder(given.folder)
    refusal = refusal_of_node(folder, given.number, given.nonce)
    return refusal or _run(folder, given, int(os.environ["SLURM_PROCID"]))


def _run(folder: JobFolder, given: argparse.Namespace, rank: int) -> int:
    signals: list[int] = []
    workers: list[int] = []

    def forward(number: int, _frame: object) -> None:
        # Rank 0 alone saves and ends, and the others with it; Slurm kills one that does not.
        if not rank:
            signals.append(number)
            for pid in workers:
                send_signal(pid, _wanted(folder))

    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, forward)
    own = folder.of_rank(rank)
    command = [*given.command, "--fence", str(given.number), str(own.path)]
    pid, shim = start_worker(command, own.log, _variables_of_rank(rank), log_limit_bytes=given.log_limit_bytes)
    workers.append(pid)
    if signals:
        send_signal(pid, _wanted(folder))
    _, status = os.waitpid(shim, 0)
    workers.clear()
    code = os.waitstatus_to_exitcode(status)
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    end = {"number": given.number, "code": code, "node": node}
    atomic_write_text(_end_file(folder, rank), json.dumps(end), "The end of a process")
    if not rank and code in _ORDERLY:
        return 0
    return code if code >= 0 else 128 - code


def worker_variables() -> dict[str, str]:
    """Return the environment of a worker on a node: accelerators and threads are those that Slurm gives."""
    given = os.environ
    return {
        "CUDA_VISIBLE_DEVICES": "",  # Slurm says which accelerators the job has; one without any must see none
        **given,
        THREADS_VARIABLE: given.get("SLURM_CPUS_PER_TASK") or given.get(THREADS_VARIABLE, "1"),
    }


def _variables_of_rank(rank: int) -> dict[str, str]:
    given = os.environ
    return {
        **worker_variables(),
        "RANK": str(rank),
        "WORLD_SIZE": given["SLURM_NTASKS"],
        "LOCAL_RANK": given["SLURM_LOCALID"],
        "GROUP_RANK": given.get("SLURM_NODEID", "0"),
    }


def _wanted(folder: JobFolder) -> int:
    """Return the signal for rank 0: SIGKILL if another rank has failed, for which it waits in vain."""
    others = (_read_end(folder, rank) for rank in range(1, int(os.environ["SLURM_NTASKS"])))
    is_lost = any(end is not None and end["code"] != EXIT_DONE for end in others)
    return signal.SIGKILL if is_lost else signal.SIGTERM


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process, if it is still there."""
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(pid, number)


def _end_file(folder: JobFolder, rank: int) -> Path:
    ranks = folder.of_rank(1).path.parent
    return ranks / str(rank) / folder.slurm.name


def _read_end(folder: JobFolder, rank: int) -> dict[str, Any] | None:
    try:
        content = json.loads(_end_file(folder, rank).read_bytes())
        return content if isinstance(content["code"], int) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
