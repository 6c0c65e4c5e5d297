"""Data flows between machines: a sender runs a flow, and a receiver is a flow that yields the received data.

The transport is ZeroMQ, one way. A message is a signature (empty without a key), a header (message type and sender),
and the datapoint as in ``parallel.message``. Nothing is unpickled, so a stranger who reaches the port can send wrong
data, but cannot run code; with a key, a stranger cannot send data either. Messages are signed, not encrypted.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import time
import traceback
import weakref
from collections.abc import Iterator
from typing import Any, TypedDict, Unpack

import msgpack
import zmq

from ziggurat.dataflow.base import DataFlow, Datapoint
from ziggurat.dataflow.parallel.message import decode, encode, sign
from ziggurat.dataflow.parallel.sockets import Inlet, open_outlet
from ziggurat.errors import DataError, DataWorkerError, UsageError

__all__ = ["ReceiverOptions", "RemoteDataZMQ", "SenderOptions", "send_dataflow_zmq"]

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
        format: only None, as Tensorpack's other format needed a TensorFlow operation of its own.
        bind: wait at ``addr`` for receivers; otherwise go to the receiver there. Several receivers share the
            datapoints; only one of them is told of the end.
        options: ``key=…``, ``passes=…`` and ``timeout_s=…``, see ``SenderOptions``.

    Raises:
        DataError: where the flow has no datapoints, or one of a type that is not carried.
        DataWorkerError: where no receiver takes anything for ``timeout_s``.
    """
    if format is not None:
        raise UsageError("`format` is None: messages have one format.", received=repr(format))
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
                f"No receiver took a datapoint for {timeout_s:g} s.",
                received=f"{sender.sent} sent or waiting",
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
                    "A flow that is sent has datapoints.",
                    received=f"an empty pass of {type(df).__name__}",
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

    def close(self) -> None:
        """Close the sockets; datapoints under way are lost."""
        if self._end is not None:
            self._end()
        self._inlet = self._end = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inlet": None, "_end": None}

    def _wait(self, missing: set[str]) -> list[Any]:
        inlet = self._inlet
        while inlet is not None:
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
