"""Group of processes that train together, on the devices of one machine or of several, and what they add up."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

import torch
from torch import distributed

__all__ = ["DeviceGroup", "LostProcessError", "Meeting", "gloo_processes", "lost_is_told"]

_LOOPBACK: Final = "127.0.0.1"
_ONLY_HERE: Final = {"hostname": _LOOPBACK}
_MEETING: Final = timedelta(minutes=5)
"""How long processes wait for each other at the beginning."""

_NCCL_MORE: Final = timedelta(hours=1)


class LostProcessError(RuntimeError):
    """Raised where another process of the group does not answer: it has ended, or takes too long."""


class Meeting:
    """The place where the processes of a group meet: a port of the loopback device, which other machines cannot reach.

    Only the first process makes one.

    Args:
        size: number of processes.
    """

    def __init__(self, size: int) -> None:
        listening = socket.create_server((_LOOPBACK, 0), backlog=size)
        self.port: int = listening.getsockname()[1]
        self.store: Any = distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
            _LOOPBACK,
            self.port,
            size,
            is_master=True,
            timeout=_MEETING,
            wait_for_workers=False,
            master_listen_fd=listening.detach(),
        )


class DeviceGroup:
    """Sums of tensors over processes: by NCCL between GPUs, by gloo between processors.

    It is no default group of ``torch.distributed``: a process may have several, one for each program.

    Args:
        rank: number of this process, from 0.
        size: how many there are.
        device: where this one computes.
        patience_s: how long one waits for the others in a step.
        interface: by which the others reach this process: ``hostname`` or ``interface`` and its name.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        device: torch.device,
        patience_s: float,
        interface: Mapping[str, str] = _ONLY_HERE,
    ) -> None:
        self.rank = rank
        self.size = size
        self.device = device
        self._interface = interface
        self._patience = timedelta(seconds=patience_s)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        self._processes: Any = None

    def meet(self, store: Any) -> None:
        """Find the others; all processes call it.

        Args:
            store: PyTorch store that all processes reach; or the port, on this machine, of the store of a ``Meeting``.

        Raises:
            LostProcessError: where not all come.
        """
        with lost_is_told():
            store = self._reach(store) if isinstance(store, int) else store
            self._processes = self._by_nccl(store) if self.device.type == "cuda" else self._by_gloo(store)

    def add_up(self, values: torch.Tensor) -> None:
        """Replace a tensor on the device by its sum over all processes; all of them call it.

        Raises:
            LostProcessError: where another process does not answer.
        """
        self.wait(self.begin_sum(values))

    def begin_sum(self, values: torch.Tensor) -> Any:
        """Begin to replace a tensor by its sum; return what ``wait`` takes. All processes begin in the same order."""
        with lost_is_told():
            return self._processes.allreduce([values])

    def wait(self, sum_under_way: Any) -> None:
        """Wait for a sum; on a GPU, let the operations to come wait for it.

        Raises:
            LostProcessError: where another process does not answer.
        """
        with lost_is_told():
            sum_under_way.wait()

    def take_from_first(self, values: torch.Tensor) -> None:
        """Replace a tensor on the device by that of the first process; all of them call it.

        Raises:
            LostProcessError: where another process does not answer.
        """
        with lost_is_told():
            self._processes.broadcast([values], distributed.BroadcastOptions()).wait()

    def break_off(self) -> None:
        """End waiting that does not end by itself. Any thread may call it."""
        if self._processes is not None and self.device.type == "cuda":  # gloo notices that a process has ended
            self._processes.abort()

    def close(self) -> None:
        """Let go of the others."""
        self._processes = None

    def _reach(self, port: int) -> Any:
        return distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
            _LOOPBACK, port, self.size, is_master=False, timeout=_MEETING
        )

    def _by_gloo(self, store: Any) -> Any:
        return gloo_processes(store, self.rank, self.size, self._patience, self._interface)

    def _by_nccl(self, store: Any) -> Any:
        nccl: Any = distributed.ProcessGroupNCCL  # pyright: ignore[reportAttributeAccessIssue]
        options = nccl.Options()
        options._timeout = self._patience + _NCCL_MORE  # NCCL's own limit ends the whole process
        return nccl(store, self.rank, self.size, options)


@contextmanager
def lost_is_told() -> Iterator[None]:
    """Raise a ``LostProcessError`` for what PyTorch raises if another process does not answer."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcessError(str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def gloo_processes(store: Any, rank: int, size: int, patience: timedelta, interface: Mapping[str, str]) -> Any:
    """Return PyTorch's group of processes that reach each other by gloo.

    Args:
        store: PyTorch store that all processes reach.
        rank: number of this process.
        size: number of processes.
        patience: how long one waits for the others.
        interface: ``hostname`` or ``interface`` and the name of it, on this machine.
    """
    gloo: Any = distributed.ProcessGroupGloo  # pyright: ignore[reportAttributeAccessIssue]
    options = gloo._Options()
    options._timeout = patience
    options._devices = [gloo.create_device(**interface)]
    return gloo(store, rank, size, options)
