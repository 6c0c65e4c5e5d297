"""Process of a job on its node of Slurm: proves that it sees the folder, starts the worker, says how that ended.

Of a training over several nodes it is on the first one, and starts ``srun``. The batch script becomes this process, so
it gets the signals that Slurm sends before it ends a job, and passes them on.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ziggurat.atomic import atomic_write_text, read_fence
from ziggurat.cluster.slurm.ranks import (
    Tasks,
    add_job_arguments,
    end_of_ranks,
    refusal_of_node,
    send_signal,
    start_tasks,
    worker_variables,
)
from ziggurat.entities.processes import start_worker
from ziggurat.errors import JobError
from ziggurat.layout import JobFolder

__all__ = ["main", "read_answer", "script_of"]


def script_of(words: Sequence[str]) -> str:
    """Return the batch script that becomes this process.

    It ignores SIGTERM until this process passes it on: a warning while Python starts would end the job without an
    answer, which reads as a folder that is not shared.

    Args:
        words: of its command line, quoted for a shell.
    """
    return f"#!/bin/sh\ntrap '' TERM\nexec {' '.join(words)}\n"


def read_answer(folder: Path, nonce: str) -> dict[str, Any]:
    """Return what the process on the node has said; empty where that with this nonce has said nothing."""
    try:
        content = json.loads(JobFolder(folder).slurm.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) and content.get("nonce") == nonce else {}


def main(arguments: Sequence[str]) -> int:
    """Run one worker, and return its exit code; 128 and the number of the signal that killed it."""
    parser = argparse.ArgumentParser(prog="python -m ziggurat.cluster.slurm.node")
    add_job_arguments(parser)
    parser.add_argument("--tasks", type=int, default=1)
    parser.add_argument("--of-node", type=int, default=1)
    given = parser.parse_args(arguments)
    folder = JobFolder(given.folder)
    return refusal_of_node(folder, given.number, given.nonce) or _run(folder, given)


def _run(folder: JobFolder, given: argparse.Namespace) -> int:
    said = {
        "nonce": given.nonce,
        "number": given.number,
        "id": os.environ.get("SLURM_JOB_ID", ""),
        "node": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
    }
    tasks = Tasks(given.tasks, given.of_node)
    signals: list[int] = []
    workers: list[int] = []

    def forward(_number: int, _frame: object) -> None:
        signals.append(signal.SIGUSR1 if tasks.are_several else signal.SIGTERM)
        for pid in workers:
            send_signal(pid, signals[-1])

    signal.signal(signal.SIGTERM, forward)
    _answer(folder, said)
    if tasks.are_several:
        words = [str(folder.path), str(given.number), given.nonce, str(given.log_limit_bytes), "--", *given.command]
        try:
            pid = waited_for = start_tasks(folder, tasks, words, os.environ)
        except OSError as error:
            reason = f"its processes could not be started by srun: {error}"
            sys.stderr.write(f"Error: {reason}\n")
            _answer(folder, {**said, "code": JobError.exit_code, "reason": reason, "is_signaled": False})
            return JobError.exit_code
    else:
        command = [*given.command, "--fence", str(given.number), str(folder.path)]
        pid, waited_for = start_worker(command, folder.log, worker_variables(), log_limit_bytes=given.log_limit_bytes)
    workers.append(pid)
    for number in signals:  # came while it was started
        send_signal(pid, number)
    _, status = os.waitpid(waited_for, 0)
    workers.clear()
    code = os.waitstatus_to_exitcode(status)
    end = end_of_ranks(folder, tasks, code) if tasks.are_several else {"code": code}
    _answer(folder, {**said, **end, "is_signaled": bool(signals)})
    return code if code >= 0 else 128 - code


def _answer(folder: JobFolder, content: dict[str, Any]) -> None:
    found = read_fence(folder.fence)
    if found is None or found["number"] <= content["number"]:  # else the file is that of a later worker
        atomic_write_text(folder.slurm, json.dumps(content), "The answer of a node")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
