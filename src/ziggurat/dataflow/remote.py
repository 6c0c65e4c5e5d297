"""Data flows between machines: a sender runs a flow, and a receiver is a flow that yields the received data.

The transport is ZeroMQ, one way. A message is a signature (empty without a key), a header (message type and sender),
and the datapoint: MessagePack for its structure, and the raw memory of its arrays. Datapoints consist of None, bool,
int, float, str, bytes, list, tuple, dict, NumPy scalars, and arrays of any type except objects; the same types are
restored. Nothing is unpickled, so a stranger who reaches the port can send wrong data, but cannot run code; with a
key, a stranger cannot send data either. Messages are signed, not encrypted.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import socket
import time
import traceback
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict, Unpack

import msgpack
import numpy as np
import zmq
from zmq.utils.monitor import recv_monitor_message

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.errors import DataError, DataWorkerError, UsageError

__all__ = ["RemoteDataZMQ", "decode", "encode", "send_dataflow_zmq"]

Frames = Sequence[Any]
"""Bytes, or objects that give access to their memory."""

_TUPLE, _ARRAY, _INLINE_ARRAY, _SCALAR, _LONG = range(1, 6)
_INLINE_BYTES = 512

_HEARTBEAT_MS = 2_000
_DEAD_AFTER_MS = 10_000
_JOINED = zmq.EVENT_HANDSHAKE_SUCCEEDED
_LEFT = zmq.EVENT_DISCONNECTED
_VERSION = 1
_POLL_S = 0.2
_LAST_WORDS_MS = 2_000


class SenderOptions(TypedDict, total=False):
    """Options of ``send_dataflow_zmq``.

    Args:
        key: a secret that both sides share; messages are signed with it.
        passes: how many passes to send; None: for ever.
        timeout_s: how long to wait for a receiver that takes the next datapoint; None: for ever.
    """

    key: str | bytes | None
    passes: int | None
    timeout_s: float | None


class ReceiverOptions(TypedDict, total=False):
    """Options of ``RemoteDataZMQ``.

    Args:
        key: a secret that both sides share.
        timeout_s: how long to wait while no sender is connected; None: for ever.
        senders: how many senders make one pass; as many as there are addresses by default.
    """

    key: str | bytes | None
    timeout_s: float | None
    senders: int


def send_dataflow_zmq(
    df: DataFlow,
    addr: str,
    hwm: int = 50,
    format: str | None = None,  # noqa: A002 (Tensorpack's name)
    bind: bool = False,
    **options: Unpack[SenderOptions],
) -> int:
    """Run a flow and send its datapoints to a ``RemoteDataZMQ``; return how many were sent.

    An error of the flow is told to the receiver, and raised here too. At the end of the last pass the receiver is told,
    and this function returns when everything is delivered.

    Args:
        df: the flow.
        addr: such as ``"tcp://host:5555"``.
        hwm: at most so many datapoints wait on this side; then the flow waits for the receiver.
        format: None; ``zmq_op`` and ``zmq_ops``, Tensorpack's names of what ``ZMQInput`` reads, mean the same here.
        bind: wait at ``addr`` for receivers; otherwise go to the receiver there. Several receivers share the
            datapoints; only one of them is told of the end.
        options: ``key=…``, ``passes=…`` and ``timeout_s=…``, see ``SenderOptions``.

    Raises:
        DataError: where the flow has no datapoints, or one of a type that is not carried.
        DataWorkerError: where no receiver takes anything for ``timeout_s``.
    """
    if format not in (None, "zmq_op", "zmq_ops"):
        raise UsageError("Messages have one format.", received=f"format={format!r}", advice="Leave `format` out.")
    timeout_s = options.get("timeout_s")
    with zmq.Context() as context, open_outlet(context, addr, hwm, bind=bind) as outlet:
        wait_ms = -1 if timeout_s is None else int(timeout_s * 1000)
        outlet.setsockopt(zmq.SNDTIMEO, wait_ms)
        outlet.setsockopt(zmq.LINGER, wait_ms)
        sender = _Sender(outlet, _key_of(options.get("key")))
        try:
            sender.run(df, options.get("passes"))
            sender.send("end", None)
        except zmq.Again:
            outlet.setsockopt(zmq.LINGER, 0)
            raise DataWorkerError(
                f"No receiver took a datapoint for {timeout_s:g} s; {sender.sent} are sent or waiting.",
                advice=f"See whether the receiver runs, and is reached at {addr}.",
            ) from None
        except BaseException as error:
            outlet.setsockopt(zmq.LINGER, _LAST_WORDS_MS)
            sender.tell(error)
            raise
        return sender.sent


class _Sender:
    def __init__(self, outlet: zmq.Socket[Any], key: bytes | None) -> None:
        self._outlet = outlet
        self._key = key
        self._name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._number = 0
        self.sent = 0

    def run(self, df: DataFlow, passes: int | None) -> None:
        while passes is None or passes > 0:
            before = self.sent
            for point in df:
                self.send("data", point)
                self.sent += 1
            if self.sent == before:
                raise DataError(
                    f"The {type(df).__name__} that is sent had no datapoints in a pass.",
                    advice="Look at its source on the sending machine.",
                )
            passes = None if passes is None else passes - 1

    def send(self, kind: str, content: Any, flags: int = 0) -> None:
        frames = [msgpack.packb([_VERSION, kind, self._name, self._number]), *encode(content)]
        signature = b"" if self._key is None else sign(self._key, frames)
        self._outlet.send_multipart([signature, *frames], flags, copy=False)
        self._number += 1

    def tell(self, error: BaseException) -> None:
        """Tell the receiver why nothing more comes, if it listens."""
        words = {"type": type(error).__name__, "message": str(error), "traceback": traceback.format_exc()}
        until = time.monotonic() + _LAST_WORDS_MS / 1000
        while time.monotonic() < until:
            try:
                self.send("error", words, zmq.NOBLOCK)
                return
            except zmq.Again:
                time.sleep(0.02)


class RemoteDataZMQ(DataFlow):
    """Yields the datapoints that ``send_dataflow_zmq`` sends, from any number of machines, as they come.

    A pass ends when all senders have told that they are done. It has no length, and cannot be resumed exactly: after
    ``load_state()`` it goes on with what comes then.

    Args:
        addr1: such as ``"tcp://0.0.0.0:5555"``.
        addr2: a second one.
        hwm: at most so many datapoints of each sender wait on this side; then the senders wait.
        bind: wait for senders at the addresses; otherwise go to senders that wait there.
        options: ``key=…``, ``timeout_s=…`` (60 by default) and ``senders=…``, see ``ReceiverOptions``.

    Raises:
        DataWorkerError: where a sender failed (with its traceback), or is gone.
        DataError: for a message with another key, or of another kind of program.
    """

    def __init__(
        self,
        addr1: str,
        addr2: str | None = None,
        hwm: int = 50,
        bind: bool = True,
        **options: Unpack[ReceiverOptions],
    ) -> None:
        self.addresses = [addr1] if addr2 is None else [addr1, addr2]
        settings: ReceiverOptions = {"key": None, "timeout_s": 60.0, "senders": len(self.addresses), **options}
        self.hwm = hwm
        self.bind = bind
        self.timeout_s = settings["timeout_s"]
        self.senders = settings["senders"]
        self._key = _key_of(settings["key"])
        self._is_stopped = False
        self._inlet: Inlet | None = None
        self._end: weakref.finalize[[], Any] | None = None

    def open(self) -> list[str]:
        """Open the sockets now, and return their addresses: with ``tcp://…:*`` the system chooses the port."""
        if self._inlet is None:
            self._inlet = Inlet(self.addresses, self.hwm, bind=self.bind)
            self._end = weakref.finalize(self, self._inlet.close)
        return self._inlet.endpoints()

    def iterate(self) -> Iterator[Datapoint]:
        """Yield what comes, until every sender is done."""
        self._is_stopped = False
        self.open()
        expected: dict[str, int] = {}
        done: set[str] = set()
        while len(done) < self.senders or len(done) < len(expected):
            frames = self._wait(expected.keys() - done)
            kind, sender, number = self._opened(frames)
            # A sender that waits for receivers may have several of them, and its numbers are spread over them.
            if self.bind and expected.get(sender, number) != number:
                raise DataWorkerError(
                    f"{number - expected[sender]} messages of the sender {sender} were lost on the way.",
                    advice="The connection broke: look at the network, and start the sender again.",
                    details={"sender": sender},
                )
            expected[sender] = number + 1
            content = decode(frames[2:])
            if kind == "data":
                yield content
            elif kind == "end":
                done.add(sender)
            else:
                raise DataWorkerError(
                    f"The flow of the sender {sender} ended with {content['type']}.",
                    received=content["message"] or content["type"],
                    worker_traceback=content["traceback"],
                    details={"sender": sender, "type": content["type"]},
                )

    def stop_waiting(self) -> None:
        """Let another thread that waits for a message leave at once, with an error; then the flow may be closed."""
        self._is_stopped = True

    def close(self) -> None:
        """Close the sockets; datapoints under way are lost."""
        if self._end is not None:
            self._end()
        self._inlet = self._end = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inlet": None, "_end": None}

    def _wait(self, missing: set[str]) -> list[Any]:
        inlet = self._inlet
        while inlet is not None and not self._is_stopped:
            frames = inlet.receive(_POLL_S)
            if frames is not None:
                return [_memory(frame) for frame in frames]
            alone_s = time.monotonic() - inlet.alone_since
            if self.timeout_s is not None and not inlet.connected and alone_s > self.timeout_s:
                raise DataWorkerError(
                    f"No sender was connected for {self.timeout_s:g} s.",
                    received=f"nothing more from {', '.join(sorted(missing))}" if missing else "no connection",
                    advice=f"See whether the senders run and reach {' and '.join(inlet.endpoints())}; "
                    "`timeout_s` sets how long to wait.",
                    details={"missing": sorted(missing)},
                )
        raise DataError("The receiver was closed while it was iterated.", advice="Iterate it anew.")

    def _opened(self, frames: list[Any]) -> tuple[str, str, int]:
        """Check a message; return what it is, from whom, and its number among the sender's."""
        signature = bytes(frames[0])
        if self._key is not None and not signature:
            raise _refused("a message that is not signed", "Give the sender the same `key`.")
        if self._key is None and signature:
            raise _refused("a signed message, and the receiver has no key", "Give the receiver the same `key`.")
        if self._key is not None and not hmac.compare_digest(signature, sign(self._key, frames[1:])):
            raise _refused("a message that is signed with another key", "Give both sides the same `key`.")
        try:
            version, *rest = msgpack.unpackb(frames[1])
            if version != _VERSION:
                raise _refused(f"a message of version {version}", "Install the same version on both sides.")
            kind, sender, number = rest
        except (ValueError, TypeError, IndexError) as error:
            raise _refused("a message of another program", "Use a port of its own.") from error
        return str(kind), str(sender), int(number)


def _refused(received: str, advice: str) -> DataError:
    return DataError("Sender and receiver need the same key and version.", received=received, advice=advice)


def _memory(frame: Any) -> Any:
    """Return the memory of a received frame, writable."""
    memory = memoryview(frame.buffer)
    return bytearray(memory) if memory.readonly else memory


def _key_of(key: str | bytes | None) -> bytes | None:
    if key is None:
        return None
    if not key:
        raise UsageError("A key has at least one character.", received="an empty one")
    return key.encode() if isinstance(key, str) else bytes(key)


def encode(value: Any) -> list[Any]:
    """Return ``value`` as frames: its structure, then the memory of its large arrays, which is not copied.

    Raises:
        DataError: for a type that is not carried.
    """
    arrays: list[Any] = []

    def extend(each: Any) -> msgpack.ExtType:
        kind = type(each)
        if kind is tuple:
            return msgpack.ExtType(_TUPLE, pack(list(each)))
        if kind is int:
            return msgpack.ExtType(_LONG, str(each).encode())
        if isinstance(each, np.ndarray | np.generic) and not each.dtype.hasobject:
            descr: Any = np.lib.format.dtype_to_descr(each.dtype)
            if isinstance(each, np.generic):
                return msgpack.ExtType(_SCALAR, pack([descr, each.tobytes()]))
            if each.nbytes < _INLINE_BYTES:
                return msgpack.ExtType(_INLINE_ARRAY, pack([descr, list(each.shape), each.tobytes()]))
            flat: Any = np.ascontiguousarray(each).reshape(-1).view(np.uint8)
            arrays.append(memoryview(flat))
            return msgpack.ExtType(_ARRAY, pack([descr, list(each.shape), len(arrays) - 1]))
        raise DataError(
            "A datapoint goes to another machine as lists, tuples, dicts, numbers, text, bytes and arrays of these.",
            received=f"an array of objects, shape {each.shape}" if isinstance(each, np.ndarray) else kind.__name__,
            advice="Turn it into one of those in the sending flow.",
        )

    def pack(each: Any) -> bytes:
        return msgpack.Packer(default=extend, strict_types=True).pack(each)

    return [pack(value), *arrays]


def decode(frames: Frames) -> Any:
    """Return the value of ``encode()``; its large arrays are views of the frames' memory.

    Raises:
        DataError: where the frames are not of ``encode()``.
    """
    arrays = frames[1:]

    def extended(code: int, data: bytes) -> Any:
        if code == _TUPLE:
            return tuple(unpack(data))
        if code == _LONG:
            return int(data)
        descr, *rest = unpack(data)
        dtype = np.lib.format.descr_to_dtype(descr)
        if dtype.hasobject:
            raise ValueError("an array of objects")
        if code == _SCALAR:
            return np.frombuffer(rest[0], dtype)[0]
        if code == _ARRAY:
            return np.frombuffer(arrays[rest[1]], dtype).reshape(rest[0])
        if code == _INLINE_ARRAY:
            return np.frombuffer(bytearray(rest[1]), dtype).reshape(rest[0])
        raise ValueError(f"type {code}")

    def unpack(data: Any) -> Any:
        return msgpack.unpackb(data, ext_hook=extended, strict_map_key=False)

    try:
        return unpack(frames[0])
    except Exception as error:  # whatever foreign bytes lead to
        raise DataError(
            f"A message from another machine is no datapoint of this library: {type(error).__name__}: "
            f"{str(error).rstrip('.')}.",
            advice="Let both sides run the same version, and keep strangers off the port (`key=…`).",
        ) from error


def sign(key: bytes, frames: Frames) -> bytes:
    """Return the signature of a message (HMAC with SHA-256, RFC 2104), which covers where each frame ends."""
    sizes = ",".join(str(memoryview(frame).nbytes) for frame in frames)
    signature = hmac.new(key, sizes.encode(), "sha256")
    for frame in frames:
        signature.update(frame)
    return signature.digest()


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
