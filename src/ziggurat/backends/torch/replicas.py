"""Replicas as the first process of a training sees them: it starts them, hands them work, and ends them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Final

import numpy as np

from ziggurat.backends.torch.device_group import DeviceGroup, LostProcessError, Meeting
from ziggurat.backends.torch.shards import ShardMemory
from ziggurat.dataflow.parallel.worker import Fault
from ziggurat.engine.backend import ProgramRequest
from ziggurat.errors import TrainingError, ZigguratError

__all__ = ["ReplicaSettings", "ReplicaTraceback", "Replicas", "Watch"]

_MODULE: Final = "ziggurat.backends.torch.replica"
_BUILT_WITHIN_S: Final = 600.0
_LAST_WORDS_S: Final = 1.0
"""How long the first process looks for the reason why another one is lost."""

_WATCH_S: Final = 0.25

_FIRST_STEP: Final = 10
"""How many times the patience the first step may take, in which a network may be compiled."""

_WAITING: Final = "device_group.py"
"""What the stack of a process shows that waits for another one."""


@dataclass(frozen=True)
class ReplicaSettings:
    """What a replica is told at its start.

    Args:
        request: of the whole training, with its own device alone.
        rank: its number, from 1.
        size: number of processes, the first one included.
        patience_s: how long it waits for the others in a step.
        threads: of the processor that it may use; 0 for PyTorch's choice.
        import_path: ``sys.path`` of the first process, for what a network file imports.
    """

    request: ProgramRequest
    rank: int
    size: int
    patience_s: float
    threads: int = 0
    import_path: tuple[str, ...] = ()


class ReplicaTraceback(Exception):  # noqa: N818 - it is the cause of another error, and carries a text
    """The traceback of an error of another process."""

    def __init__(self, text: str) -> None:
        super().__init__(text)

    def __str__(self) -> str:
        return f"\n{self.args[0].rstrip()}"


@dataclass
class _Replica:
    device: str
    process: subprocess.Popen[bytes]
    line: Connection
    memory: ShardMemory
    log: io.BufferedRandom
    sender: threading.Thread
    is_built: bool = False
    told: tuple[Any, ...] | None = None
    """Message about an error that was read before the cause was asked for."""

    def tail(self) -> str:
        """Return the end of what the process wrote to its standard error."""
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), 8000, max(0, size - 8000)).decode("utf-8", "replace").strip()

    def stack(self) -> str:
        """Return where the threads of the process are, as far as it can still say so."""
        before = os.fstat(self.log.fileno()).st_size
        try:
            self.process.send_signal(signal.SIGUSR1)
        except OSError:
            return ""
        for _ in range(10):
            time.sleep(0.05)
            if os.fstat(self.log.fileno()).st_size > before:
                break
        time.sleep(0.05)
        return os.pread(self.log.fileno(), 16000, before).decode("utf-8", "replace").strip()


class Replicas:
    """The further processes of a training; they end with this one, however it ends.

    Args:
        settings: of each of them.
        devices: their names, for errors.
    """

    def __init__(self, settings: Sequence[ReplicaSettings], devices: Sequence[str]) -> None:
        self._replicas: list[_Replica] = []
        self._finalizer = weakref.finalize(self, _end_all, self._replicas, within_s=0.0)
        self._watch: Watch | None = None
        for each, device in zip(settings, devices, strict=True):
            self._replicas.append(_started(each, device))

    @property
    def pids(self) -> list[int]:
        """Process numbers of those that have not been ended."""
        return [each.process.pid for each in self._replicas]

    def meet(self, group: DeviceGroup) -> None:
        """Wait until every replica has built its program, and let them and this process find each other.

        Args:
            group: of this process.

        Raises:
            LostProcessError: where one failed or takes too long; ``cause`` says why.
        """
        until = time.monotonic() + _BUILT_WITHIN_S
        waiting = {each.line: each for each in self._replicas}
        while waiting:
            ready = wait(list(waiting), max(0.0, until - time.monotonic()))
            if not ready:
                raise LostProcessError("a process that builds its network takes too long")
            for line in ready:
                assert isinstance(line, Connection)
                if not line.poll() or self._received(waiting[line])[0] != "built":
                    raise LostProcessError("a process failed while it built its network")
                replica = waiting.pop(line)
                replica.sender.join()
                replica.is_built = True
        meeting = Meeting(group.size)
        self.tell("meet", meeting.port)
        group.meet(meeting.store)

    def connect(self, _position: Any) -> None:
        """Do nothing: they get their rows with each step."""

    def tell_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Give every replica the state of the program.

        Raises:
            LostProcessError: where one has ended.
        """
        self.tell("state", dict(state))

    def tell(self, *message: Any) -> None:
        """Send the same to every replica.

        Raises:
            LostProcessError: where one has ended.
        """
        for each in self._replicas:
            self._send(each, message)

    def hand_out(self, batch: Sequence[Any], ranges: Sequence[Sequence[tuple[int, int]]], share: Any) -> None:
        """Give every replica its rows of a batch, which it is done with before the gradients are added up.

        Args:
            batch: arrays, each with one row for each sample.
            ranges: rows of each replica.
            share: what they are told beside their rows.

        Raises:
            LostProcessError: where one has ended.
        """
        for each, own in zip(self._replicas, ranges, strict=True):
            layout = each.memory.write(batch, own)
            self._send(each, ("step", layout, tuple(end - first for first, end in own), share))

    def collect(self) -> list[Any]:
        """Return what each replica has to say of the step, in their order.

        Raises:
            LostProcessError: where one has ended.
        """
        return [self._received(each, "rows")[1] for each in self._replicas]

    def watch(self, break_off: Callable[[], None], patience_s: float) -> None:
        """Call a function where a replica ends, or where a step takes too long: for waiting that nothing else ends."""
        self._watch = Watch([each.process for each in self._replicas], break_off, patience_s)

    def step_begins(self) -> None:
        """Let the time of a step begin for ``watch``."""
        if self._watch is not None:
            self._watch.step_begins()

    def step_ends(self) -> None:
        """Let the time of a step end for ``watch``.

        Raises:
            LostProcessError: where a replica was lost meanwhile.
        """
        if self._watch is not None:
            self._watch.step_ends()

    def cause(self, lost: BaseException) -> BaseException:
        """Return why a replica is lost, and end all of them.

        Args:
            lost: what this process noticed.
        """
        until = time.monotonic() + _LAST_WORDS_S
        found = [_last_words(each, until) for each in self._replicas]
        error = min(found, key=lambda each: each[0])[1] if found else None
        self.close(within_s=0.0)
        return error or TrainingError(f"A process of the training cannot be reached: {lost}.", advice="Resume the job.")

    def close(self, within_s: float) -> None:
        """End them; closing twice does nothing.

        Args:
            within_s: how long they may take to end by themselves.
        """
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        _end_all(self._replicas, within_s)

    def _send(self, replica: _Replica, message: tuple[Any, ...]) -> None:
        try:
            replica.line.send(message)
        except OSError as error:
            raise LostProcessError(f"the process on {replica.device} has ended") from error

    def _received(self, replica: _Replica, kind: str = "") -> tuple[Any, ...]:
        """Return the next message; one that tells an error stays for ``cause``."""
        try:
            message: tuple[Any, ...] = replica.line.recv()
        except (EOFError, OSError) as error:
            raise LostProcessError(f"the process on {replica.device} has ended") from error
        if message[0] in ("error", "lost"):
            replica.told = message
            raise LostProcessError(f"the process on {replica.device} has failed")
        assert not kind or message[0] == kind
        return message


class Watch:
    """A thread that sees a process end, or a step take too long.

    Args:
        processes: those whose end is seen.
        break_off: called then.
        patience_s: how long a step may take.
    """

    def __init__(
        self, processes: Sequence[subprocess.Popen[bytes]], break_off: Callable[[], None], patience_s: float
    ) -> None:
        self._began: float | None = None
        self._has_lost = False
        self._processes = processes
        self._break_off = break_off
        self._patience_s = patience_s
        self._limit_s = _FIRST_STEP * patience_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="ziggurat-replicas", daemon=True)
        self._thread.start()

    def step_begins(self) -> None:
        """Let the time of a step begin."""
        self._began = time.monotonic()

    def step_ends(self) -> None:
        """Let the time of a step end.

        Raises:
            LostProcessError: if a process was lost meanwhile.
        """
        self._began, self._limit_s = None, self._patience_s
        if self._has_lost:
            raise LostProcessError("a process has ended")

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(_WATCH_S):
            began = self._began
            is_late = began is not None and time.monotonic() - began > self._limit_s
            if is_late or any(each.poll() is not None for each in self._processes):
                self._has_lost = True
                self._break_off()
                return


def _started(settings: ReplicaSettings, device: str) -> _Replica:
    ends: Any = Pipe(duplex=True)
    own, other = ends
    memory = ShardMemory()
    log = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the replica
    # The kernel ends a process with the thread that started it; only the main thread surely lives as long as we do.
    is_lasting = threading.current_thread() is threading.main_thread()
    numbers = [str(each) for each in (other.fileno(), memory.file, os.getpid(), int(is_lasting))]
    with other:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE, *numbers],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # what a network file prints, the first process prints
            stderr=log,
            pass_fds=(other.fileno(), memory.file),
        )
    # A pretrained model does not fit into the pipe, and the process reads it when it has imported PyTorch.
    sender = threading.Thread(target=_give_settings, args=(own, settings), daemon=True)
    sender.start()
    return _Replica(device, process, own, memory, log, sender)


def _give_settings(line: Connection, settings: ReplicaSettings) -> None:
    try:
        line.send(settings)
    except OSError:
        pass  # it has ended, which is noticed where its answer is awaited


def _last_words(replica: _Replica, until: float) -> tuple[int, BaseException | None]:
    """Return why a replica is lost, and how good a reason that is: the smaller the number, the better."""
    message = replica.told
    try:
        while message is None and replica.line.poll(max(0.0, until - time.monotonic())):
            heard = replica.line.recv()
            message = heard if heard[0] in ("error", "lost") else None
    except (EOFError, OSError):
        return 1, _ended(replica)
    if message is None:
        stack = replica.stack()
        return 3 if _WAITING in stack else 2, _hung(replica, stack)
    if message[0] == "error":
        return 0, _error_of(replica, message[1])
    return 4, None


def _error_of(replica: _Replica, fault: Fault) -> BaseException:
    error = fault.exception()
    if not isinstance(error, ZigguratError):
        error = TrainingError(
            f"A step failed on {replica.device}: {fault.failure.sentence().rstrip('.')}.",
            advice="Its traceback is in the log of the job.",
        )
    error.__cause__ = ReplicaTraceback(fault.failure.traceback)
    error.details.setdefault("device", replica.device)
    return error


def _ended(replica: _Replica) -> TrainingError:
    try:
        code = replica.process.wait(_LAST_WORDS_S)
    except subprocess.TimeoutExpired:
        code = None
    how = "it has closed its pipe" if code is None else f"it ended with code {code}"
    if code is not None and code < 0:
        how = f"it was ended by {signal.Signals(-code).name}"
    advice = "Resume the job, which goes on from its last checkpoint."
    if code == -signal.SIGKILL:
        advice += " Where it happens again, the machine may be out of memory: make `batch_size` smaller."
    error = TrainingError(
        f"The process of the training on {replica.device} has ended: {how}.",
        advice=advice,
        details={"device": replica.device},
    )
    said = replica.tail()
    error.__cause__ = ReplicaTraceback(said) if said else None
    return error


def _hung(replica: _Replica, stack: str) -> TrainingError:
    error = TrainingError(
        f"The process on {replica.device} did not answer.",
        advice="Where its part takes that long, set `device_timeout_s` in `backend_options`.",
        details={"device": replica.device},
    )
    error.__cause__ = ReplicaTraceback(stack) if stack else None
    return error


def _end_all(replicas: list[_Replica], within_s: float) -> None:
    for each in replicas:
        if not within_s or not each.is_built:
            each.process.kill()
            continue
        try:
            each.line.send(("end",))
        except OSError:
            pass
    until = time.monotonic() + within_s
    while replicas:
        each = replicas.pop()
        try:
            each.process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            each.process.kill()
            each.process.wait()
        each.sender.join()
        each.line.close()
        each.memory.close()
        each.log.close()
