"""Event stream: one connection per page for all topics, which ends when its user is logged out."""

from __future__ import annotations

import asyncio
import math
import re
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Collection
from typing import Annotated, Any, Final, Protocol

from fastapi import Query
from starlette.requests import Request
from starlette.responses import StreamingResponse

from ziggurat.entities import Identity
from ziggurat.errors import UsageError
from ziggurat.server.errors import HTTPError
from ziggurat.server.permissions import new_router, require
from ziggurat.workspace.passwords import TooBusyError

__all__ = ["NoticeHub", "Streams", "router"]

_TOPIC: Final = re.compile(r"[a-z][a-z0-9_-]*(:[A-Za-z0-9][A-Za-z0-9._-]*)?")
_MOST_TOPICS: Final = 64
_LONGEST: Final = 8192

router = new_router(prefix="/api/v1", tags=["events"])


class NoticeHub(Protocol):
    """What passes notices on, such as ``ziggurat.jobs.pubsub.EventBus``."""

    @property
    def number(self) -> int:
        """Number of the newest notice."""
        ...

    def subscribe(
        self, topics: Collection[str] = (), *, since: int | None = None, ready: Callable[[], None] | None = None
    ) -> Any:
        """Return a subscription with ``take() -> list of notices`` and ``close()``.

        A notice has its ``number``, and ``encoded`` bytes whose first line is the event's id.
        """
        ...


class Streams:
    """The event streams that are open.

    Args:
        heartbeat_s: silence after which a comment is sent: proxies keep the connection then, and a dead one is noticed.
        recheck_s: after which it is asked again who reads; a logout through this server asks at once.
        most: streams at a time.
        most_each: streams of one user at a time, so that one user cannot take all of them.
        gather_s: after it sent notices, a stream gathers what is new for so long: many small messages cost more than
            they are worth. The first one after a silence is sent at once.
    """

    def __init__(
        self,
        *,
        heartbeat_s: float = 15.0,
        recheck_s: float = 5.0,
        most: int = 1000,
        most_each: int = 200,
        gather_s: float = 0.2,
    ) -> None:
        self.heartbeat_s = heartbeat_s
        self.recheck_s = recheck_s
        self.most = most
        self.most_each = most_each
        self.gather_s = gather_s
        self.server = secrets.token_hex(8)
        """Name of this life of the server: a page that sees another one asks for everything again."""
        self._open: set[_Stream] = set()
        self._is_closed = False
        self._encoded: tuple[Any, bytes] = (None, b"")
        self._lock = threading.Lock()
        self._waking: list[_Stream] = []

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._open)

    @property
    def is_closed(self) -> bool:
        """Whether the server is ending."""
        return self._is_closed

    def check_room(self, reader: str) -> None:
        """Raise if no further stream can be opened.

        Args:
            reader: name of the user who asks.

        Raises:
            TooBusyError: if too many are open in all or by this user, or the server is ending.
        """
        if sum(stream.reader == reader for stream in self._open) >= self.most_each:
            raise TooBusyError(
                f"A user has at most {self.most_each} event streams open at a time.",
                advice="Close some pages, or try again later.",
                details={"retry_after_s": 10},
            )
        if len(self._open) >= self.most or self._is_closed:
            raise TooBusyError(
                f"At most {self.most} event streams are open at a time.",
                advice="Close some pages, or try again later.",
                details={"retry_after_s": 10},
            )

    def add(self, stream: _Stream) -> None:
        """Note that a stream is open."""
        self._open.add(stream)

    def remove(self, stream: _Stream) -> None:
        """Note that a stream has ended."""
        self._open.discard(stream)

    def encoded(self, notice: Any) -> bytes:
        """Return a notice as an event; it is encoded once for all streams that send it one after the other.

        The hub counts anew in each life of the server, so an id says which life its number is of.
        """
        if self._encoded[0] is not notice:
            head = f"id: {self.server}-{notice.number}\n".encode()
            self._encoded = (notice, head + notice.encoded.partition(b"\n")[2])
        return self._encoded[1]

    def wake_from_any_thread(self, loop: asyncio.AbstractEventLoop, stream: _Stream) -> None:
        """Wake a stream; the event loop is called once for all that a notice wakes."""
        with self._lock:
            self._waking.append(stream)
            is_first = len(self._waking) == 1
        if is_first:
            try:
                loop.call_soon_threadsafe(self._wake_those)
            except RuntimeError:  # the server has ended, and the hub still speaks
                return

    def _wake_those(self) -> None:
        with self._lock:
            waking, self._waking = self._waking, []
        for stream in waking:
            stream.wake()

    def recheck(self) -> None:
        """Make every stream ask at once whether its reader may still read; any thread may call it."""
        for stream in tuple(self._open):
            stream.must_recheck = True
            stream.wake_from_any_thread()

    def close(self) -> None:
        """End all streams and take no more: the server is ending; call it in the event loop."""
        self._is_closed = True
        for stream in self._open:
            stream.wake()


class _Stream:
    """One stream: sleeps until there is something to send, to check or to end."""

    def __init__(self, request: Request, hub: NoticeHub, topics: list[str], since: int | None, reader: str) -> None:
        self.reader = reader
        self.must_recheck = False
        self._streams: Streams = request.app.state.streams
        self._request = request
        self._awake = asyncio.Event()
        self._hub = hub
        self._topics = topics
        self._since = since
        self._loop = asyncio.get_running_loop()
        self._checked = self._sent = self._loop.time()
        self._told = -math.inf

    def wake(self) -> None:
        self._awake.set()

    async def parts(self) -> AsyncIterator[bytes]:
        number = self._hub.number  # before subscribing: a notice may come twice then, but none is lost
        subscription = self._hub.subscribe(self._topics, since=self._since, ready=self.wake_from_any_thread)
        self._streams.add(self)
        try:
            yield self._hello(number if self._since is None else None)
            while not self._streams.is_closed and await self._may_read():
                notices = subscription.take()
                if notices:
                    self._sent = self._told = self._loop.time()
                    yield b"".join(map(self._streams.encoded, notices))
                elif self._loop.time() - self._sent >= self._streams.heartbeat_s:
                    self._sent = self._loop.time()
                    yield b": still here\n\n"
                else:
                    await self._sleep()
        finally:
            subscription.close()
            self._streams.remove(self)

    def _hello(self, number: int | None) -> bytes:
        # The id lets a reader resume that goes away before the first notice. The browser comes back after two seconds.
        place = "" if number is None else f"id: {self._streams.server}-{number}\n"
        return f'retry: 2000\n{place}event: hello\ndata: {{"server":"{self._streams.server}"}}\n\n'.encode()

    async def _sleep(self) -> None:
        now = self._loop.time()
        until = min(self._sent + self._streams.heartbeat_s, self._checked + self._streams.recheck_s)
        try:
            async with asyncio.timeout(max(0.0, until - now)):
                await self._awake.wait()
        except TimeoutError:
            return
        self._awake.clear()
        if (gathering_s := self._told + self._streams.gather_s - self._loop.time()) > 0:
            await asyncio.sleep(gathering_s)

    async def _may_read(self) -> bool:
        if not self.must_recheck and self._loop.time() - self._checked < self._streams.recheck_s:
            return True
        self.must_recheck, self._checked = False, self._loop.time()
        try:
            await self._request.app.state.gate.admit(self._request, "viewer", "read")
        except HTTPError:
            return False
        return True

    def wake_from_any_thread(self) -> None:
        self._streams.wake_from_any_thread(self._loop, self)


@router.get("/events", response_class=StreamingResponse, summary="What is new, as server-sent events")
async def stream_events(
    request: Request,
    identity: Annotated[Identity, require("viewer", "read")],
    topics: Annotated[str, Query(max_length=_LONGEST, description="Names with commas between; all where empty.")] = "",
    last_event_id: Annotated[str, Query(max_length=40, description="As the header Last-Event-ID.")] = "",
) -> StreamingResponse:
    """Send a notice for whatever is new; it carries no data, one asks for them elsewhere.

    The first event is `hello` with the name of this life of the server: another name than before means that everything
    must be asked for again. An event `reload` means the same; a client of an earlier server process gets one.
    """
    state = request.app.state
    state.streams.check_room(identity.name)
    since = _number(request.headers.get("last-event-id", "") or last_event_id, state.streams.server)
    stream = _Stream(request, state.studio.notices, _checked_topics(topics), since, identity.name)
    headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
    return StreamingResponse(stream.parts(), media_type="text/event-stream", headers=headers)


def _checked_topics(text: str) -> list[str]:
    topics = [part for part in text.split(",") if part]
    wrong = [topic for topic in topics if not _TOPIC.fullmatch(topic)]
    if wrong or len(topics) > _MOST_TOPICS:
        raise UsageError(
            f"Topics must be up to {_MOST_TOPICS} names such as `jobs` or `job:20260101-120000-ab12`.",
            received=repr(wrong[0][:100]) if wrong else f"{len(topics)} of them",
            advice="Put commas between them.",
        )
    return topics


def _number(text: str, server: str) -> int | None:
    if not text:
        return None
    life, _, number = text.rpartition("-")
    # What is no id of this life is answered like one that was forgotten: by `reload`.
    is_own = life == server and number.isascii() and number.isdecimal() and len(number) < 20
    return int(number) if is_own else -1
