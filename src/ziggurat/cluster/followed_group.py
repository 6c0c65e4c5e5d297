"""A job of several processes on several nodes, as the bridge follows it: begun together, ended together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ziggurat.cluster.followed_job import FollowedJob, UnreachableError
from ziggurat.entities import Share
from ziggurat.errors import ZigguratError
from ziggurat.jobs.outcome import last_events
from ziggurat.layout import JobFolder

__all__ = ["FollowedGroup", "ranks_of"]

_PATIENCE_S: Final = 30.0
"""So long after the end of rank 0 the others may go on."""


def ranks_of(shares: Sequence[Share]) -> list[tuple[int, Share]]:
    """Return rank and share of each process, rank 0 first."""
    return sorted(((rank, share) for share in shares for rank in share.ranks), key=lambda each: each[0])


class FollowedGroup:
    """The processes of a job. It has the methods of a ``FollowedJob``.

    Rank 0 has the job folder. A request to stop goes to it alone; when one process has failed or is lost, or some time
    after rank 0 has ended, the others are killed: they would wait for it.

    Args:
        folder: the job folder of the studio.
        members: one for each rank, in order.
        shares: where they are.
        clock: seconds, never going back.
    """

    def __init__(
        self, folder: Path, members: Sequence[FollowedJob], shares: Sequence[Share], clock: Callable[[], float]
    ) -> None:
        self.folder = folder
        self._members, self._shares, self._clock = list(members), list(shares), clock
        self._failed: int | None = None
        self._killed: set[int] = set()
        self._first_end: float | None = None
        self._end_state: dict[str, Any] | None = None

    @property
    def members(self) -> Sequence[FollowedJob]:
        """Its processes; each exchanges on its own, so that a node that hangs holds up no other."""
        return self._members

    @property
    def state(self) -> dict[str, Any]:
        """As that of a ``FollowedJob``."""
        if self._end_state is not None:
            return self._end_state
        found: dict[str, Any] = {"state": "running"}
        for member in reversed(self._members):
            found |= {name: member.state[name] for name in ("waits", "problem") if name in member.state}
        return found

    def ask_to_stop(self, reason: str) -> None:
        """Let rank 0 save and end; the others end when it has."""
        for member in self._members if "waits" in self.state else self._members[:1]:
            member.ask_to_stop(reason)

    def terminate(self) -> None:
        """Let all get SIGTERM."""
        for member in self._members:
            member.terminate()

    def kill(self) -> None:
        """Let all be killed."""
        for member in self._members:
            member.kill()

    def begin(self, _devices: Sequence[int], environment: Mapping[str, str]) -> None:
        """Send the folder to all nodes, and start the processes once all have it."""
        for member in self._members:
            member.prepare()
            if not self._is_running(member):
                break
        else:
            self._start(environment)
        self._judge()

    def _start(self, environment: Mapping[str, str]) -> None:
        first = self._members[0]
        host, port = "", 0

        def ask() -> None:
            nonlocal host, port
            host, port = first.worker.address()

        first.attempt_to(ask)
        if not self._is_running(first):
            return
        size = str(len(self._members))
        common = {**environment, "MASTER_ADDR": host, "MASTER_PORT": str(port), "WORLD_SIZE": size}
        given: dict[str, list[int]] = {}
        for rank, share in ranks_of(self._shares):
            member = self._members[rank]
            if share.node not in given:
                given[share.node] = self._accelerators(member, share)
            own = {
                "RANK": str(rank),
                "LOCAL_RANK": str(share.ranks.index(rank)),
                "LOCAL_WORLD_SIZE": str(len(share.ranks)),
                "GROUP_RANK": str(self._shares.index(share)),
            }
            if self._is_running(member):
                member.start(given[share.node], {**common, **own})
            if not self._is_running(member):
                return

    def _accelerators(self, member: FollowedJob, share: Share) -> list[int]:
        found = list(share.devices)

        def ask() -> None:
            found[:] = member.worker.accelerators(share.devices)

        member.attempt_to(ask)
        return found

    def judge(self) -> None:
        """End all processes where one has failed; it may call their nodes."""
        if self.state["state"] == "running":
            self._judge()

    def _is_running(self, member: FollowedJob) -> bool:
        return member.state["state"] == "running"

    def _judge(self) -> None:
        """Kill the others of a process that has failed, and say how the job is."""
        states = [member.state for member in self._members]
        ended = [rank for rank, state in enumerate(states) if state["state"] != "running"]
        bad = [rank for rank in ended if states[rank]["state"] == "lost" or states[rank]["exit_code"]]
        bad = [rank for rank in bad if rank not in self._killed]
        if self._failed is None and bad:
            self._failed = bad[0]
        if 0 in ended and self._first_end is None:
            self._first_end = self._clock()
        is_late = self._first_end is not None and self._clock() - self._first_end > _PATIENCE_S
        if self._failed is not None or is_late:
            for rank, member in enumerate(self._members):
                if self._is_running(member) and rank not in self._killed:
                    self._killed.add(rank)
                    self._end(member)
        if len(ended) == len(states):
            self._end_state = self._ended()

    def _end(self, member: FollowedJob) -> None:
        """Kill a process; one that was not started yet is only removed."""
        try:
            if member.worker.is_started():
                member.kill()
                return
            member.worker.remove()
            member.state = {"state": "ended", "exit_code": 1}
        except (UnreachableError, ZigguratError):
            member.kill()

    def _ended(self) -> dict[str, Any]:
        first = dict(self._members[0].state)
        if self._failed in (None, 0):
            return first
        failed = self._members[self._failed].state
        if failed["state"] == "lost":
            return dict(failed)
        node = next(share.node for share in self._shares if self._failed in share.ranks)
        words = last_events(JobFolder(self._members[self._failed].folder), since=0.0)
        cause = words.reason if words is not None and words.reason else failed.get("reason", "")
        end = f"ended with exit code {failed['exit_code']}" + (f": {cause}" if cause else "; its log may say why")
        reason = f"rank {self._failed} on node {node} {end}"
        return {"state": "ended", "exit_code": failed["exit_code"], "reason": reason}
