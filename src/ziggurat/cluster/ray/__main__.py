"""Bridge between a studio and a Ray cluster: ``python -m ziggurat.cluster.ray ADDRESS WORKSPACE CACHE_BYTES``.

It answers requests from standard input, as inference processes do. Ray's token mode is set here, and its token lies in
the workspace, so nothing is written into the home folder.
"""

from __future__ import annotations

import os
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import IO, Any, Final

from ziggurat.cluster.bridge import Bridge
from ziggurat.cluster.node_worker import LEASE_S
from ziggurat.cluster.ray.ray_cluster import RayCluster
from ziggurat.errors import JobError, ZigguratError
from ziggurat.layout import RAY_TOKEN_FILE
from ziggurat.records.codec import read_frame, write_frame

__all__ = ["main", "prepare_token"]

_THREADS: Final = 4


def prepare_token(workspace: Path) -> Path:
    """Return the file of Ray's token in a workspace, which only its user may read; it is made if there is none."""
    path = workspace / RAY_TOKEN_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        os.chmod(path, 0o600)
        return path
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(secrets.token_hex(32))
    return path


def main() -> None:
    """Serve requests until there are none."""
    address, workspace = sys.argv[1], Path(sys.argv[2])
    source, target = _take_pipes()
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_AUTH_TOKEN_PATH", str(prepare_token(workspace)))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    answers = _Answers(target)
    try:
        bridge = Bridge(RayCluster(address, workspace, int(sys.argv[3])), lease_s=LEASE_S)
    except BaseException as error:
        answers.fail(0, error)
        return
    answers.give(0, {})
    with ThreadPoolExecutor(_THREADS) as pool:
        while (request := read_frame(source)) is not None:
            pool.submit(_answer, bridge, request, answers)
    bridge.close()


def _answer(bridge: Bridge, request: dict[str, Any], answers: _Answers) -> None:
    try:
        answers.give(request["id"], bridge.answer(request))
    except BaseException as error:
        answers.fail(request.get("id"), error)


class _Answers:
    """Writes answers, one at a time."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target, self._lock = target, Lock()

    def give(self, number: Any, result: dict[str, Any]) -> None:
        with self._lock:
            write_frame(self._target, {"id": number, "result": result})

    def fail(self, number: Any, error: BaseException) -> None:
        if not isinstance(error, ZigguratError):
            received = f"{type(error).__name__}: {error}"[:500]
            error = JobError("The Ray cluster cannot be reached.", received=received, advice="Look at its log.")
        with self._lock:
            write_frame(self._target, {"id": number, "error": error.as_dict(), "exit_code": error.exit_code})


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return standard input and output for messages alone; what Ray prints goes to standard error."""
    source, target = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(source, "rb"), os.fdopen(target, "wb")


if __name__ == "__main__":
    main()
    os._exit(0)  # Ray's threads must not keep a bridge alive without a studio
