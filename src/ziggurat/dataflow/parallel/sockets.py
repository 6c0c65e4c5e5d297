"""ZeroMQ sockets between machines: their options, and the tracking of connected peers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from ziggurat.errors import UsageError

__all__ = ["Inlet", "open_outlet"]

_HEARTBEAT_MS = 2_000
_DEAD_AFTER_MS = 10_000
_JOINED = zmq.EVENT_HANDSHAKE_SUCCEEDED
_LEFT = zmq.EVENT_DISCONNECTED


def open_outlet(context: zmq.Context[Any], address: str, hwm: int, *, bind: bool) -> zmq.Socket[Any]:
    """Return a socket that sends."""
    return _open(context, zmq.PUSH, address, hwm, bind=bind)


class Inlet:
    """Sockets that receive from one or more addresses.

    Args:
        addresses: such as ``"tcp://0.0.0.0:5555"``.
        hwm: at most so many messages wait on this side of each connection.
        bind: wait for senders there; otherwise go to them.
    """

    def __init__(self, addresses: Sequence[str], hwm: int, *, bind: bool) -> None:
        self._context = zmq.Context()
        self._poller = zmq.Poller()
        self._sockets: list[zmq.Socket[Any]] = []
        self._monitors: list[zmq.Socket[Any]] = []
        self.connected = 0
        """How many senders are connected now."""
        self.alone_since = time.monotonic()
        """When the last sender was lost (or the sockets were opened)."""
        try:
            for address in addresses:
                opened = _open(self._context, zmq.PULL, address, hwm, bind=bind, opened=self._watch)
                self._sockets.append(opened)
                self._poller.register(opened, zmq.POLLIN)
        except BaseException:
            self.close()
            raise

    def receive(self, wait_s: float) -> list[Any] | None:
        """Return the frames of the next message, or None where none comes in time."""
        ready = dict(self._poller.poll(int(wait_s * 1000)))
        for monitor in self._monitors:
            if monitor in ready:
                self._note(monitor)
        for each in self._sockets:
            if each in ready:
                self._sockets.append(self._sockets.pop(self._sockets.index(each)))  # no address starves another
                return each.recv_multipart(zmq.NOBLOCK, copy=False)
        return None

    def endpoints(self) -> list[str]:
        """Return the addresses that were bound or connected, with the port that was chosen for a ``*``."""
        return [bytes(each.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").decode() for each in self._sockets]

    def close(self) -> None:
        """Close the sockets."""
        for each in (*self._sockets, *self._monitors):
            each.close(linger=0)
        self._context.term()

    def _watch(self, opened: zmq.Socket[Any]) -> None:
        monitor = opened.get_monitor_socket(_JOINED | _LEFT)
        self._monitors.append(monitor)
        self._poller.register(monitor, zmq.POLLIN)

    def _note(self, monitor: zmq.Socket[Any]) -> None:
        with contextlib.suppress(zmq.Again):
            while True:
                event = recv_monitor_message(monitor, zmq.NOBLOCK)["event"]
                # Connections that never introduced themselves leave, too.
                self.connected = max(0, self.connected + (1 if event == _JOINED else -1))
                self.alone_since = time.monotonic()


def _open(
    context: zmq.Context[Any], kind: int, address: str, hwm: int, *, bind: bool, opened: Any = None
) -> zmq.Socket[Any]:
    made = context.socket(kind)
    try:
        made.set_hwm(hwm)
        # The library's own thread answers these, so a sender that computes for long still counts as alive.
        made.setsockopt(zmq.HEARTBEAT_IVL, _HEARTBEAT_MS)
        made.setsockopt(zmq.HEARTBEAT_TIMEOUT, _DEAD_AFTER_MS)
        if opened is not None:
            opened(made)
        (made.bind if bind else made.connect)(address)
    except zmq.ZMQError as error:
        made.close(linger=0)
        raise UsageError(
            f"A socket cannot {'be bound' if bind else 'connect'} to {address!r}.",
            received=str(error),
            advice='An address is like "tcp://0.0.0.0:5555" (to bind) or "tcp://host:5555" (to connect).',
        ) from error
    return made
