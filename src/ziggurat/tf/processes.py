"""Processes of one training: who they are, how they find each other, and sums over all of them.

They are started with the variables that ``torchrun`` sets: ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``, ``MASTER_ADDR``
and ``MASTER_PORT``. A process whose peer ends gets an error from the step under way.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError, TrainingError
from ziggurat.tf.sessions import NewSessionCreator

__all__ = ["CollectiveGroup", "Place", "ProcessGroup", "SingleProcess", "place_of"]

_VARIABLES: Final = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_JOB: Final = "worker"
_DONE: Final = b"."
_END_S: Final = 3.0
_START_S: Final = 120.0
"""How long a process waits for the others to start."""


@dataclass(frozen=True)
class Place:
    """Place of a process among those of a training.

    Args:
        rank: its number, from 0.
        size: number of processes.
        local_rank: its number on its machine: the GPU that it takes.
        address: host of rank 0.
        port: a free port there; the two above it are used, since launchers keep this one for themselves.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    address: str = "127.0.0.1"
    port: int = 0


def place_of(environment: Mapping[str, str]) -> Place:
    """Return the place that the variables of a launcher tell; a single process where there are none.

    Raises:
        ConfigurationError: where some are missing, or are no numbers that fit together.
    """
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        return Place()
    missing = [name for name in _VARIABLES if name not in environment]
    if missing:
        raise ConfigurationError(
            f"Processes of one training are told by {', '.join(_VARIABLES)}.",
            received=f"no {', '.join(missing)}",
            advice="Start them with a launcher that sets all of them, such as `torchrun`.",
        )
    try:
        rank, size, port = (int(environment[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
        local = int(environment.get("LOCAL_RANK", rank))
    except ValueError as error:
        raise ConfigurationError(
            "RANK, WORLD_SIZE, LOCAL_RANK and MASTER_PORT are whole numbers.", received=str(error)
        ) from error
    if not 0 <= rank < size:
        raise ConfigurationError("RANK is below WORLD_SIZE.", received=f"{rank} of {size}")
    return Place(rank, size, local, environment["MASTER_ADDR"], port)


class ProcessGroup(ABC):
    """Sums over the processes of a training, as operations of the graph.

    Args:
        place: this process among them.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.lost: int | None = None
        """Rank of a process that has ended without a word."""
        self._meeting: Meeting | None = None

    def meet(self, own: str = "") -> None:
        """Wait until all processes are there, and tell each other something."""
        self._meeting = Meeting(self.place, own)

    def watch(self, stop: Callable[[], None]) -> None:
        """Call ``stop``, from a thread, when a process ends without a word: the step under way would wait for it."""

        def lost(rank: int) -> None:
            self.lost = rank
            stop()

        if self._meeting is not None:
            self._meeting.watch(lost)

    def leave(self, *, in_order: bool) -> None:
        """End the meeting.

        Args:
            in_order: whether this process has done its part; otherwise the others miss it.
        """
        if self._meeting is not None:
            if in_order:
                self._meeting.leave()
            else:
                self._meeting.end()

    @abstractmethod
    def session_creator(self, config: Any) -> Any:
        """Return what makes the session, with a ``tf.ConfigProto``."""

    @abstractmethod
    def summed(self, buffer: Any, name: str) -> Any:
        """Return the sum of a tensor (N,) over all processes; every process runs it equally often.

        Args:
            buffer: of the same shape and type everywhere.
            name: tells it from other sums; the same everywhere.
        """

    def reduce(self, tensors: Sequence[Any], name: str, *, average: bool) -> list[Any]:
        """Return the sums, or the means, of tensors over all processes: one message for each type of number.

        Args:
            tensors: of static shapes.
            name: tells these from others.
            average: whether to divide by the number of processes.
        """
        dense = [tf.convert_to_tensor(each) for each in tensors]
        results: dict[int, Any] = {}
        before: list[Any] = []  # one after the other: in another order, processes would wait for each other
        for dtype in dict.fromkeys(each.dtype.base_dtype for each in dense):
            places = [place for place, each in enumerate(dense) if each.dtype.base_dtype == dtype]
            sizes = [dense[place].shape.num_elements() for place in places]
            flat = tf.concat([tf.reshape(dense[place], [-1]) for place in places], 0)
            with tf.control_dependencies(before):
                total = self.summed(flat, f"{name}/{dtype.name}")
            before = [total]
            if average:
                total = total / tf.cast(self.place.size, dtype)
            for place, part in zip(places, tf.split(total, sizes), strict=True):
                results[place] = tf.reshape(part, dense[place].shape)
        return [results[place] for place in range(len(dense))]

    def taken_from_first(self, variables: Sequence[Any]) -> Any:
        """Return an operation that gives variables the values that they have in process 0."""
        numbers = [each for each in variables if each.dtype.base_dtype.is_floating or each.dtype.base_dtype.is_integer]
        share = 1 if self.place.rank == 0 else 0
        own = [each.read_value() * tf.cast(share, each.dtype.base_dtype) for each in numbers]
        totals = self.reduce(own, "ziggurat/broadcast", average=False)
        return tf.group(*(each.assign(total, read_value=False) for each, total in zip(numbers, totals, strict=True)))


class SingleProcess(ProcessGroup):
    """A training in one process: a sum is the value itself."""

    def session_creator(self, config: Any) -> Any:
        """Return what makes the session."""
        return NewSessionCreator(config=config)

    def summed(self, buffer: Any, name: str) -> Any:
        """Return the tensor."""
        return tf.identity(buffer, name=name)


class CollectiveGroup(ProcessGroup):
    """Sums by TensorFlow's own collective operations, over gRPC between processors and NCCL between GPUs.

    Args:
        place: this process; the group waits until all processes are there.
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._keys: dict[str, int] = {}
        config = self._configured(tf.ConfigProto(allow_soft_placement=True))
        with closing(_listening(0)) as free:
            own = f"{_own_host(place)}:{free.getsockname()[1]}"
        self.meet(own)
        assert self._meeting is not None
        cluster = tf.train.ClusterSpec({_JOB: self._meeting.said})
        self._server = tf.train.Server(cluster, job_name=_JOB, task_index=place.rank, config=config)

    def session_creator(self, config: Any) -> Any:
        """Return what makes a session of this process that reaches the others."""
        config = self._configured(config)
        config.device_filters.append(f"/job:{_JOB}/task:{self.place.rank}")
        config.isolate_session_state = True
        return NewSessionCreator(self._server.target, config)

    def summed(self, buffer: Any, name: str) -> Any:
        """Return the sum, in a ring."""
        key = self._keys.setdefault(name, len(self._keys) + 1)
        return tf.raw_ops.CollectiveReduce(
            input=buffer,
            group_size=self.place.size,
            group_key=1,
            instance_key=key,
            merge_op="Add",
            final_op="Id",
            subdiv_offsets=[0],
            communication_hint="auto",
        )

    def _configured(self, config: Any) -> Any:
        config.experimental.collective_group_leader = f"/job:{_JOB}/replica:0/task:0"
        return config


class Meeting:
    """Lines between process 0 and the others, open as long as they train: a line that breaks off is a lost process.

    Rank 0 listens and the others call.

    Args:
        place: this process.
        own: what it says of itself to all others.

    Raises:
        TrainingError: where a process is not there within two minutes.
    """

    def __init__(self, place: Place, own: str) -> None:
        self._place = place
        self._lines: dict[int, socket.socket] = {}
        self._calling = threading.Lock()
        self._is_over = False
        self.said: list[str] = self._answered(own) if place.rank else self._gathered(own)
        """What every process said, in the order of their ranks."""

    def watch(self, lost: Callable[[int], None]) -> None:
        """Call ``lost`` with the rank of a process that ends without a word, from a thread."""
        for rank, line in self._lines.items():
            line.settimeout(None)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            threading.Thread(target=self._wait, args=(rank, line, lost), name=f"rank-{rank}", daemon=True).start()

    def leave(self) -> None:
        """Say that this process has done its part; the others do not miss it."""
        self.end()
        for line in self._lines.values():
            with suppress(OSError):
                line.sendall(_DONE)
                line.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        """Miss no process any more; wait for what stops this one now: the interpreter must not end beneath it."""
        if self._calling.acquire(timeout=_END_S):
            self._is_over = True
            self._calling.release()

    def _wait(self, rank: int, line: socket.socket, lost: Callable[[int], None]) -> None:
        try:
            word = line.recv(1)
        except OSError:
            word = b""
        if word == _DONE:  # the line stays open for the word of this process
            return
        with self._calling:
            if not self._is_over:
                lost(rank)

    def _answered(self, own: str) -> list[str]:
        line = self._lines[0] = _called(self._place)
        _send(line, {"rank": self._place.rank, "says": own})
        return _receive(line)["all"]

    def _gathered(self, own: str) -> list[str]:
        said = {0: own}
        size = self._place.size
        with closing(_listening(self._place.port + 1)) as door:
            until = time.monotonic() + _START_S
            while len(said) < size:
                door.settimeout(max(0.1, until - time.monotonic()))
                try:
                    line, _ = door.accept()
                except TimeoutError as error:
                    missing = [str(rank) for rank in range(size) if rank not in said]
                    raise _absent(f"rank {', '.join(missing)}") from error
                line.settimeout(_START_S)
                message = _receive(line)
                said[int(message["rank"])] = str(message["says"])
                self._lines[int(message["rank"])] = line
        everything = [said[rank] for rank in range(size)]
        for line in self._lines.values():
            _send(line, {"all": everything})
        return everything


def _called(place: Place) -> socket.socket:
    until = time.monotonic() + _START_S
    while True:
        try:
            return socket.create_connection((place.address, place.port + 1), timeout=_START_S)
        except OSError as error:
            if time.monotonic() > until:
                raise _absent(f"rank 0 at {place.address}:{place.port + 1}") from error
            time.sleep(0.1)


def _absent(who: str) -> TrainingError:
    return TrainingError(
        f"All processes of a training start within {_START_S:.0f} s.",
        received=f"{who} is not there",
        advice="Look at its log, and check MASTER_ADDR, MASTER_PORT and firewalls.",
    )


def _listening(port: int) -> socket.socket:
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(("", port))
    door.listen()
    return door


def _own_host(place: Place) -> str:
    """Return the address under which the others reach this machine: the one that it uses towards rank 0."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((place.address, 9))  # sends nothing
        return probe.getsockname()[0]


def _send(line: socket.socket, message: Mapping[str, Any]) -> None:
    line.sendall(json.dumps(message).encode() + b"\n")


def _receive(line: socket.socket) -> dict[str, Any]:
    with line.makefile("rb") as reader:
        text = reader.readline()
    if not text:
        raise _absent("a process that had begun to start")
    return json.loads(text)


def environment_place() -> Place:
    """Return the place of this process."""
    return place_of(os.environ)
