"""Commands of Slurm: ``sbatch``, ``squeue`` and ``scancel``, and ``sacct`` where it is there."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.errors import JobError

__all__ = ["QueuedJob", "SlurmCommands"]

_NEEDED: Final = ("sbatch", "squeue", "scancel")
_WITHIN_S: Final = 30.0
_LONGEST: Final = 500
_UNKNOWN_JOB: Final = "invalid job id"
"""What Slurm says, in any case of letters, of a job that it has forgotten."""

_OVER: Final = frozenset(
    (
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    )
)


@dataclass(frozen=True)
class QueuedJob:
    """A job as Slurm has it.

    Args:
        states: such as ``PENDING``, or ``COMPLETED`` and ``COMPLETING``.
        reason: why it waits, in Slurm's own word; empty where there is none.
        canceled_by: number of the user who canceled it; empty where Slurm does not say.
    """

    states: frozenset[str]
    reason: str = ""
    canceled_by: str = ""

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs or will run; its node may still be tidied up."""
        return bool(self.states & _OVER)

    @property
    def waits(self) -> bool:
        """Whether it has not begun."""
        return bool(self.states & {"PENDING", "CONFIGURING"})


class SlurmCommands:
    """Runs the commands of Slurm.

    Args:
        environment: of the commands, whole; jobs get it too.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)

    def missing(self) -> list[str]:
        """Return the commands that are needed and not there."""
        return [name for name in _NEEDED if self._path(name) is None]

    def version(self) -> str:
        """Return the name and version of Slurm.

        Raises:
            JobError: where it does not answer.
        """
        return self._run("sbatch", ["--version"]).strip()

    def submit(self, options: Sequence[str], script: str, variables: Mapping[str, str]) -> str:
        """Send a script, and return the number of its job.

        Args:
            options: of ``sbatch``.
            script: for a shell.
            variables: of the job, besides the environment.

        Raises:
            JobError: where Slurm refuses it; it has Slurm's own words.
        """
        said = self._run("sbatch", ["--parsable", *options], script, variables)
        lines = [line for line in said.splitlines() if line.partition(";")[0].isdigit()]
        if not lines:
            received = said[:_LONGEST] or "nothing"
            raise JobError("Slurm's sbatch must answer with the number of a job.", received=received)
        return lines[-1].partition(";")[0]

    def queue(self) -> dict[str, QueuedJob]:
        """Return the jobs of this user by number, those that ended some minutes ago among them.

        Raises:
            JobError: where Slurm does not answer.
        """
        said = self._run("squeue", ["--json", "--me", "--states=all"])
        try:
            return {str(each["job_id"]): _queued(each) for each in json.loads(said)["jobs"]}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise JobError(
                "Slurm's squeue must answer in JSON.",
                received=said[:_LONGEST] or "nothing",
                advice="Slurm 21.08 and later do, where they were built with it.",
            ) from error

    def cancel(self, number: str, *options: str) -> None:
        """Cancel or signal a job; one that is gone is no error.

        Raises:
            JobError: where Slurm does not answer.
        """
        try:
            self._run("scancel", [*options, number])
        except JobError as error:
            if _UNKNOWN_JOB not in str(error).lower():
                raise

    def past(self, number: str) -> QueuedJob:
        """Return a job that ``squeue`` has forgotten; without a state where there is no ``sacct`` that knows it."""
        if self._path("sacct") is None:
            return QueuedJob(frozenset())
        words = ["--jobs", number, "--allocations", "--noheader", "--parsable2", "--format=State"]
        try:
            lines = self._run("sacct", words).splitlines()
        except JobError:  # it needs a database, which not every cluster has
            return QueuedJob(frozenset())
        state, _, user = lines[-1].strip().partition(" by ") if lines else ("", "", "")  # "CANCELLED by 1000"
        return QueuedJob(frozenset(filter(None, [state])), canceled_by=user)

    def has_gpus(self, partition: str = "") -> bool:
        """Return whether nodes have GPUs; False where ``sinfo`` is not there or does not answer.

        Args:
            partition: Slurm partition whose nodes are listed; empty for all partitions.
        """
        if self._path("sinfo") is None:
            return False
        try:
            chosen = [f"--partition={partition}"] if partition else []
            return "gpu" in self._run("sinfo", ["--noheader", "--format=%G", *chosen])
        except JobError:
            return False

    def _path(self, name: str) -> str | None:
        return shutil.which(name, path=self._environment.get("PATH"))

    def _run(
        self, name: str, words: Sequence[str], script: str | None = None, variables: Mapping[str, str] | None = None
    ) -> str:
        path = self._path(name)
        if path is None:
            raise JobError(
                f"Slurm's {name} must be on PATH.", advice="Run the studio on a machine that can submit jobs."
            )
        try:
            done = subprocess.run(
                [path, *words],
                input=script or "",
                env={**self._environment, **(variables or {})},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_WITHIN_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JobError(f"Slurm's {name} must answer.", received=str(error)[:_LONGEST]) from error
        if done.returncode:
            said = done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}"
            raise JobError(f"Slurm's {name} must succeed.", received=said[:_LONGEST])
        return done.stdout


def _queued(entry: Mapping[str, Any]) -> QueuedJob:
    states = entry["job_state"]
    reason = str(entry.get("state_reason") or "")
    # Before Slurm 23.11 there was one state, as a text.
    return QueuedJob(frozenset([states] if isinstance(states, str) else states), "" if reason == "None" else reason)
