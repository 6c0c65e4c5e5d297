"""Processes of one training: who they are, how they find each other, and sums over all of them.

They are started with the variables that ``torchrun`` sets: ``RANK``, ``WORLD_SIZE``, ``LOCAL_RANK``, ``MASTER_ADDR``
and ``MASTER_PORT``. A process whose peer ends gets an error from the step under way.
"""

from __future__ import annotations

import json
import os
import socket
import sys
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
_LOST_S = 20.0
"""How long a process may take to stop after another one was lost, before it is ended."""


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

    def told_by_all(self, own: Any) -> list[Any]:
        """Return what every process says, in the order of their ranks; every process calls it equally often.

        Args:
            own: what this process says, as JSON values.

        Raises:
            TrainingError: where a process has ended.
        """
        return [own] if self._meeting is None else self._meeting.exchanged(own)

    def watch(self, stop: Callable[[], None]) -> None:
        """Call ``stop``, from a thread, when a process ends without a word: a sum under way would wait for it.

        Some calls of TensorFlow repeat for ever what the lost process no longer answers, and a closed session does not
        cancel them. If this process has not left after ``_LOST_S`` seconds, it ends with exit code 1.
        """

        def lost(rank: int) -> None:
            self.lost = rank
            stop()

        def stuck() -> None:
            sys.stderr.write(f"{self.peer_lost()}\n")
            sys.stderr.flush()
            os._exit(1)

        if self._meeting is not None:
            self._meeting.watch(lost, stuck)

    def peer_lost(self, received: str = "") -> TrainingError:
        """Return the error of a training that has lost a process.

        Args:
            received: what is known instead of the rank.
        """
        return TrainingError(
            "All processes of a training take every step together: another process of the training has ended.",
            received=received if self.lost is None else f"rank {self.lost}",
            advice="Look at the log of the process that ended; resume all of them from their last checkpoints.",
        )

    def leave(self, *, in_order: bool) -> None:
        """End the meeting.

        Args:
            in_order: whether this process has done its part; otherwise the others miss it.
        """
        if self._meeting is None:
            return
        if in_order:
            self._meeting.leave()
            return
        self._meeting.break_off()
        if self.lost is not None:
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

    def taken_from_first(self, variables: Sequence[Any], name: str) -> Any:
        """Return an operation that gives variables the values that they have in process 0.

        Args:
            variables: the same ones in every process.
            name: tells it from other operations over all processes.
        """
        numbers = [each for each in variables if each.dtype.base_dtype.is_floating or each.dtype.base_dtype.is_integer]
        values = [each.read_value() for each in numbers]
        # Zeros, and not the own values times zero: these may be infinite.
        own = values if self.place.rank == 0 else [tf.zeros_like(each) for each in values]
        totals = self.reduce(own, name, average=False)
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
        self._watches: list[threading.Thread] = []
        self._left = threading.Event()
        self.said: list[str] = self._answered(own) if place.rank else self._gathered(own)
        """What every process said, in the order of their ranks."""

    def exchanged(self, own: Any) -> list[Any]:
        """Return what every process says now, in the order of their ranks; before they watch each other."""
        for line in self._lines.values():
            line.settimeout(None)  # others may build for long; the line of one that ends breaks off
        try:
            if self._place.rank:
                _send(self._lines[0], {"says": own})
                return _receive(self._lines[0])["all"]
            said = [own, *(_receive(self._lines[rank])["says"] for rank in range(1, self._place.size))]
            for line in self._lines.values():
                _send(line, {"all": said})
        except OSError as error:
            raise _absent("a process that had begun to start") from error
        return said

    def watch(self, lost: Callable[[int], None], stuck: Callable[[], None]) -> None:
        """Watch for processes that end without a word, from threads.

        Args:
            lost: called with the rank of such a process.
            stuck: called if this process has not left ``_LOST_S`` seconds later.
        """
        for rank, line in self._lines.items():
            line.settimeout(None)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            watch = threading.Thread(
                target=self._wait, args=(rank, line, lost, stuck), name=f"rank-{rank}", daemon=True
            )
            self._watches.append(watch)
            watch.start()

    def leave(self) -> None:
        """Say that this process has done its part; the others do not miss it."""
        self._left.set()
        for line in self._lines.values():
            with suppress(OSError):
                line.sendall(_DONE)
                line.shutdown(socket.SHUT_WR)

    def break_off(self) -> None:
        """Leave without a word: the others miss this process at once, and not when it ends."""
        self._left.set()
        for line in self._lines.values():
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Wait a moment for threads that stop this process: the interpreter must not end beneath them."""
        until = time.monotonic() + _END_S
        for watch in self._watches:
            watch.join(max(0.0, until - time.monotonic()))

    def _wait(self, rank: int, line: socket.socket, lost: Callable[[int], None], stuck: Callable[[], None]) -> None:
        try:
            word = line.recv(1)
        except OSError:
            word = b""
        if word == _DONE or self._left.is_set():  # the line stays open for the word of this process
            return
        end = threading.Thread(target=self._end_stuck, args=(stuck,), name=f"rank-{rank}-lost", daemon=True)
        end.start()  # a thread of its own: to close a session may take for ever, too
        lost(rank)

    def _end_stuck(self, stuck: Callable[[], None]) -> None:
        if not self._left.wait(_LOST_S):
            stuck()

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
        f"{who} did not start within {_START_S:.0f} s, as all processes of a training do.",
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
