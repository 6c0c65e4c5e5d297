"""Asynchronous start of a job's TensorBoard: it takes seconds, longer than a request may wait."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from ziggurat.errors import JobError, NotThereError
from ziggurat.server.http_errors import HTTPError, NotReadyError

__all__ = ["RETRY_AFTER_S", "BoardStarts"]

RETRY_AFTER_S: Final = 2
"""After which a page asks again whether its TensorBoard is there."""

_THREADS: Final = 8


class BoardStarts:
    """TensorBoards that are starting; use it in one event loop at a time.

    Args:
        patience_s: how long a request waits; the start goes on without it.
    """

    def __init__(self, *, patience_s: float = 1.0) -> None:
        self._patience_s = patience_s
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="tensorboard")
        self._under_way: dict[str, Future[Any]] = {}

    async def target(self, boards: Any, job_id: str) -> Any:
        """Return where a job's TensorBoard answers; start it where it does not.

        Args:
            boards: of the studio.
            job_id: of a job that is there.

        Raises:
            NotReadyError: where it is still starting.
            MissingDependencyError: where TensorBoard is not installed.
            HTTPError: 503 where it did not start, or there is no room for one more.
        """
        start = self._under_way.get(job_id)
        if start is None:
            start = self._under_way[job_id] = self._threads.submit(boards.proxy_target, job_id)
        await asyncio.wait([asyncio.wrap_future(start)], timeout=self._patience_s)
        if not start.done():
            raise NotReadyError(
                "TensorBoard must have started.",
                received="one that is starting",
                advice="Ask again in some seconds.",
                details={"retry_after_s": RETRY_AFTER_S},
            )
        # The outcome of a start is kept until it is requested, or a start that fails slowly would be repeated forever.
        self._under_way.pop(job_id, None)
        try:
            return start.result()
        except NotThereError:
            raise
        except JobError as error:
            raise HTTPError(error, 503) from error

    def is_under_way(self, job_id: str) -> bool:
        """Return whether one is starting, or has just started and nobody has asked since."""
        return job_id in self._under_way
