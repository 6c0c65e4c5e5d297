"""Processes of one training, as ``torchrun`` starts them: who they are, and what they tell each other."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import torch
from torch import distributed
from torch.distributed import PrefixStore, Store, TCPStore, distributed_c10d  # pyright: ignore[reportPrivateImportUsage]
from torch.distributed.constants import default_pg_timeout

from ziggurat.errors import ConfigurationError, TrainingError

__all__ = ["Processes", "join_processes"]

_MEETING: Final = timedelta(minutes=10)
"""How long processes wait for each other to start."""

_JOINING = timedelta(minutes=2)
"""How long processes that have met wait for each other to connect: a lost one is noticed only after that."""

_PAUSE_S: Final = 0.02

_PATIENCE: Final = timedelta(days=7)
"""How long a process waits for the first one, which alone validates and saves; one that has ended is noticed."""


@dataclass(frozen=True)
class Processes:
    """The processes of a training.

    Args:
        rank: number of this one, from 0.
        size: how many there are.
        device: where this one computes.
        line: over which they tell each other numbers and objects; None for a single process.
    """

    rank: int
    size: int
    device: torch.device
    line: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and calls callbacks for all of them."""
        return self.rank == 0

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Return the sum of each number over all processes; all of them call it.

        Raises:
            TrainingError: where another process has ended.
        """
        values = torch.tensor(numbers, dtype=torch.float64)
        with lost_processes():
            distributed.all_reduce(values, group=self.line)
        return values.tolist()

    def from_first(self, value: Any) -> Any:
        """Return what the first process gives; all of them call it.

        Raises:
            TrainingError: where another process has ended.
        """
        held = [value if self.is_first else None]
        with lost_processes():
            distributed.broadcast_object_list(held, src=0, group=self.line)
        return held[0]

    def add_up(self, values: torch.Tensor) -> None:
        """Replace a tensor on the device by its sum over all processes.

        Raises:
            TrainingError: where another process has ended.
        """
        with lost_processes():
            distributed.all_reduce(values)


_joined: Processes | None = None  # of the process: PyTorch has one default group


def join_processes(device: torch.device | str | None = None) -> Processes:
    """Return the processes of this training; a single one where no launcher has set ``RANK`` and ``WORLD_SIZE``.

    Several meet by gloo on processors and by NCCL on GPUs; the process takes the GPU of its ``LOCAL_RANK``.

    Args:
        device: where to compute; None for a GPU where there is one.

    Raises:
        ConfigurationError: where the variables of the launcher do not fit together.
        TrainingError: where the processes do not find each other.
    """
    global _joined
    if "WORLD_SIZE" not in os.environ and "RANK" not in os.environ:
        return Processes(0, 1, _device(device, 0))
    if _joined is None:
        _joined = _met(_device(device, _number("LOCAL_RANK", "RANK")))
    return _joined


@contextmanager
def lost_processes() -> Iterator[None]:
    """Raise what it means for a training that processes do not reach each other."""
    try:
        yield
    except (RuntimeError, ConnectionError) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        known = ("gloo", "nccl", "connection", "peer", "socket", "timed out", "broken pipe", "store")
        if not any(word in str(error).lower() for word in known):
            raise
        raise TrainingError(
            "All processes of a training take every step together: another process of the training has ended.",
            received=text,
            advice="Look at the log of the process that ended; start all of them again, with `resume=True`.",
        ) from error


def _met(device: torch.device) -> Processes:
    missing = [
        name for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name, "").strip()
    ]
    if missing:
        raise ConfigurationError(
            "Processes of one training are told by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.",
            received=f"no {', '.join(missing)}",
            advice="Start them with `torchrun`, which sets all of them.",
        )
    rank, size = _number("RANK"), _number("WORLD_SIZE")
    if not 0 <= rank < size:
        raise ConfigurationError("RANK is below WORLD_SIZE.", received=f"{rank} of {size}", advice="Use `torchrun`.")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    try:
        if not distributed.is_initialized():
            _begin(device, rank, size)
        line: Any = distributed.new_group(backend="gloo", timeout=_JOINING)
        distributed_c10d._set_pg_timeout(_PATIENCE, line)
        return Processes(rank, size, device, line)
    except (RuntimeError, ValueError) as error:
        raise TrainingError(
            "Processes of a training reach each other.",
            received=str(error).splitlines()[0],
            advice="Check MASTER_ADDR, MASTER_PORT and firewalls.",
        ) from error


def _begin(device: torch.device, rank: int, size: int) -> None:
    """Make PyTorch's default group."""
    store = _store(rank, size)
    if device.type == "cuda":
        distributed.init_process_group("nccl", store=store, rank=rank, world_size=size)
        return
    distributed.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=_JOINING)
    distributed_c10d._set_pg_timeout(default_pg_timeout)


def _store(rank: int, size: int) -> Store:
    """Return the store by which processes find each other.

    The store of ``torchrun`` outlives a restart of its processes, with the addresses of those that have ended. So the
    first process invents a prefix in each attempt, and tells it to the others: each shows a token that it has invented
    itself, and takes what is said to this token alone.
    """
    host, port = os.environ["MASTER_ADDR"], _number("MASTER_PORT")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return TCPStore(host, port, size, is_master=rank == 0, multi_tenant=True, timeout=_MEETING)
    store, own = TCPStore(host, port, is_master=False, timeout=_MEETING), secrets.token_hex(8)
    if rank:
        store.set(f"ziggurat/token/{rank}", own)
        prefix = store.get(f"ziggurat/answer/{own}").decode()
        store.set(f"ziggurat/{prefix}/{rank}", "heard")
        return PrefixStore(prefix, store)
    until, silent = time.monotonic() + _MEETING.total_seconds(), set(range(1, size))
    while silent:
        for other in silent:
            if store.check([f"ziggurat/token/{other}"]):
                store.set(f"ziggurat/answer/{store.get(f'ziggurat/token/{other}').decode()}", own)
        silent = {other for other in silent if not store.check([f"ziggurat/{own}/{other}"])}
        if time.monotonic() > until:
            raise RuntimeError(f"rank {', '.join(map(str, sorted(silent)))} is not there")
        time.sleep(_PAUSE_S)
    return PrefixStore(own, store)


def _number(*names: str) -> int:
    for name in names:
        text = os.environ.get(name, "").strip()
        if text:
            try:
                return int(text)
            except ValueError:
                raise ConfigurationError(
                    f"{name} is a whole number.", received=text, advice="Start the processes with `torchrun`."
                ) from None
    return 0


def _device(given: torch.device | str | None, local_rank: int) -> torch.device:
    if given is not None:
        chosen = torch.device(given)
        return torch.device("cuda", local_rank) if chosen.type == "cuda" and chosen.index is None else chosen
    if not torch.cuda.is_available():
        return torch.device("cpu")
    if local_rank >= torch.cuda.device_count():
        raise ConfigurationError(
            "Each process of a machine has a GPU of its own.",
            received=f"process {local_rank} and {torch.cuda.device_count()} GPUs",
            advice="Start as many processes as there are GPUs, or give `device='cpu'`.",
        )
    return torch.device("cuda", local_rank)
