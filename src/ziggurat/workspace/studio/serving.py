"""Use cases of serving: start and stop a server of an export on the studio's machine, and look at it."""

from __future__ import annotations

from collections.abc import Callable

from ziggurat.errors import UsageError
from ziggurat.services.model_servers import ModelServers, ServerState
from ziggurat.workspace.studio.exports import Exports

__all__ = ["ServerState", "Serving"]

_FORMAT = "onnx"


class Serving:
    """Servers of the exports of a studio.

    They are child processes of the studio and end with it: one that starts again serves nothing until it is asked.

    Args:
        exports: what may be served.
        servers: the processes.
        tell: called with the id of a job when one of its servers was started or stopped.
    """

    def __init__(self, exports: Exports, servers: ModelServers, tell: Callable[[str], None]) -> None:
        self._exports = exports
        self._servers = servers
        self._tell = tell

    def start(self, job_id: str, name: str) -> ServerState:
        """Start a server of an export, on a free port of 127.0.0.1; one that runs is returned as it is.

        Raises:
            MissingEntryError: where there is no such export.
            JobError: where it is not done, or too many servers run.
            UsageError: where its format is not served.
        """
        found = self._exports.get(job_id, name)
        folder = self._exports.folder(job_id, name)
        if found.format != _FORMAT:
            raise UsageError(
                f"The export has the format {found.format}; only ONNX exports are served.", advice="Export it as ONNX."
            )
        state = self._servers.start((job_id, name), folder)
        self._tell(job_id)
        return state

    def stop(self, job_id: str, name: str) -> None:
        """Stop the server of an export; where none runs, nothing happens.

        Raises:
            MissingEntryError: where there is no such export.
        """
        self._exports.get(job_id, name)
        self._servers.stop((job_id, name))
        self._tell(job_id)

    def state(self, job_id: str, name: str) -> ServerState | None:
        """Return how the server of an export is; None where none was started by this studio, or it was stopped."""
        return self._servers.state((job_id, name))
