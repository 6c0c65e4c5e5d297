"""A Slurm of one node on this machine: its own daemons, in a folder of the tests, without accounts."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from tests.waiting import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
READY_S = 60.0

CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={control_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES State=UP
"""


def why_no_slurm() -> str:
    """Return why there can be no Slurm here; empty if there can."""
    missing = [name for name in PROGRAMS if _path(name) is None]
    if missing:
        return f"Slurm is not installed: no {', '.join(missing)}"
    return "" if os.geteuid() == 0 else "only root starts the daemons of Slurm"


class RealSlurm:
    """The daemons; ``close`` ends them and every job.

    Args:
        folder: empty, with a short path: sockets lie in it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": _search_path()}
        for name in ("state", "spool", "cgroup"):
            (folder / name).mkdir()
        (folder / "munge.key").write_bytes(secrets.token_bytes(1024))
        (folder / "munge.key").chmod(0o600)
        host = socket.gethostname().partition(".")[0]
        ports = {"control_port": _free_port(), "node_port": _free_port()}
        text = CONFIGURATION.format(folder=folder, host=host, cpus=_cpus(), **ports)
        (folder / "slurm.conf").write_text(text)
        # Nothing is confined; before Slurm 23.11 one of the plugins must be named all the same.
        (folder / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={folder}/cgroup\n")
        names = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        self._run("munged", "--force", *(f"--{name}={folder}/munge.{end}" for name, end in names.items()))
        self._run("slurmctld")
        self._run("slurmd")
        wait_until(self._is_ready, READY_S, what="a node of Slurm")

    def _is_ready(self) -> bool:
        said = subprocess.run(
            [_path("sinfo") or "", "--noheader", "--format=%T"],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return said.stdout.strip() in ("idle", "mixed", "allocated")

    def _run(self, name: str, *words: str) -> None:
        subprocess.run([_path(name) or name, *words], env=self.environment, check=True, capture_output=True, timeout=60)

    def close(self) -> None:
        """Cancel every job and end the daemons."""
        self._run("scancel", "--signal=KILL", "--full", "--user=root")
        self._run("scancel", "--user=root")
        wait_until(lambda: not self._jobs(), READY_S, what="the end of all jobs")
        for name in ("slurmd.pid", "slurmctld.pid", "munge.pid"):
            path = self.folder / name
            if path.is_file() and path.read_text().strip():
                process = int(path.read_text())
                os.kill(process, signal.SIGTERM)
                wait_until(lambda process=process: not os.path.exists(f"/proc/{process}"), READY_S)

    def _jobs(self) -> str:
        words = [_path("squeue") or "", "--noheader", "--states=PENDING,RUNNING,COMPLETING"]
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=True).stdout


def _search_path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


def _path(name: str) -> str | None:
    return shutil.which(name, path=_search_path())


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
