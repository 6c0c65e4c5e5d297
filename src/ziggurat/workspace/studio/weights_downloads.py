"""Background downloads of public weights: queued, one at a time, with progress, until they are in the workspace."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Any, Final

from ziggurat.errors import MissingEntryError, UsageError, ZigguratError
from ziggurat.workspace.weights import Weights

__all__ = ["WeightsDownload", "WeightsDownloads"]

_LOG: Final = logging.getLogger(__name__)
_TOLD_EVERY_S: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class WeightsDownload:
    """A download that waits, runs or failed; one that succeeded is an entry of the weights instead.

    Args:
        name: of the entry of the download list.
        state: ``waiting``, ``running``, ``failed`` or ``canceled``.
        received_bytes: that came so far.
        total_bytes: that will come; None if unknown.
        asked: when it was asked for, in seconds since 1970.
        asked_by: name of who asked.
        error: that ended it, as JSON values; None where none did.
    """

    name: str
    state: str
    received_bytes: int = 0
    total_bytes: int | None = None
    asked: float
    asked_by: str = ""
    error: Mapping[str, Any] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it has not ended."""
        return self.state in ("waiting", "running")

    @property
    def is_complete(self) -> bool:
        """Whether all bytes came, so that the file is being checked and converted."""
        return self.total_bytes is not None and self.received_bytes >= self.total_bytes


class _CanceledError(UsageError):
    """A user ended a download."""


class WeightsDownloads:
    """Downloads of a studio. Any thread may call any method.

    They are known to this process only: one that it leaves unfinished at its end is gone, and started again by hand.

    Args:
        weights: of the workspace.
        tell: called when a download is another, at most twice a second of its progress.
        clock: seconds since 1970.
    """

    def __init__(self, weights: Weights, tell: Callable[[], None], clock: Callable[[], float]) -> None:
        self._weights = weights
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, WeightsDownload] = {}
        self._orders: SimpleQueue[str | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._is_closed = False
        self._told = 0.0

    def all(self) -> list[WeightsDownload]:
        """Return the downloads in the order in which they were asked for."""
        with self._lock:
            return list(self._known.values())

    def start(self, name: str, asked_by: str = "") -> WeightsDownload:
        """Ask for a download; one that waits or runs is returned as it is.

        Raises:
            UnknownNameError: if the download list has no such entry.
            UsageError: if there are weights of that name already, or the studio ends.
        """
        self._weights.downloadable(name)
        with self._lock:
            known = self._known.get(name)
            if known is not None and known.is_under_way:
                return known
            if self._is_closed:
                raise UsageError("The studio is about to end.", advice="Ask again when it runs.")
            made = WeightsDownload(name=name, state="waiting", asked=self._clock(), asked_by=asked_by)
            self._known.pop(name, None)
            self._known[name] = made
            self._orders.put(name)
            if self._worker is None:
                # A daemon: the exit must not wait for a server.
                self._worker = threading.Thread(target=self._work, name="weights-downloads", daemon=True)
                self._worker.start()
        self._tell()
        return made

    def cancel(self, name: str) -> None:
        """End a download, or take one that failed out of the list.

        Raises:
            MissingEntryError: if there is none of that name.
        """
        with self._lock:
            known = self._known.get(name)
            if known is None:
                raise MissingEntryError(f"There is no download `{name[:100]}`.", advice="Look at the list of them.")
            if known.is_under_way:
                self._known[name] = replace(known, state="canceled")
            else:
                del self._known[name]
        self._tell()

    def close(self) -> None:
        """Begin no further ones; one that runs ends with this process. Closing twice does nothing."""
        self._is_closed = True
        self._orders.put(None)

    def _work(self) -> None:
        while (name := self._orders.get()) is not None and not self._is_closed:
            if not self._changed(name, state="running"):
                self._forget(name)
                continue
            error: Mapping[str, Any] | None = None
            try:
                self._weights.download(name, added_by=self._known[name].asked_by, progress=self._progress_of(name))
            except _CanceledError:
                pass
            except ZigguratError as problem:
                error = problem.as_dict()
            except Exception as problem:  # a thread that ends would leave all that wait alone
                _LOG.exception("the download of the weights %s failed", name)
                error = {"rule": "A download must succeed.", "received": str(problem), "advice": ""}
            if error is None or not self._changed(name, state="failed", error=error):
                self._forget(name)
            self._tell()

    def _progress_of(self, name: str) -> Callable[[int, int | None], None]:
        def note(received: int, total: int | None) -> None:
            if not self._changed(name, received_bytes=received, total_bytes=total):
                raise _CanceledError("The download was canceled.")
            now = time.monotonic()
            if now - self._told >= _TOLD_EVERY_S or received == total:
                self._told = now
                self._tell()

        return note

    def _changed(self, name: str, **fields: Any) -> bool:
        """Change a download; return False where it was canceled."""
        with self._lock:
            known = self._known[name]
            if known.state == "canceled":
                return False
            self._known[name] = replace(known, **fields)
            return True

    def _forget(self, name: str) -> None:
        with self._lock:
            self._known.pop(name, None)
