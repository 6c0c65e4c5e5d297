"""Line between the processes of a training over several nodes: JSON values and arrays, from rank 0 to all and back.

Nothing that is read from it can run code: who reaches the port of rank 0 could send anything.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import numpy as np
import torch
from torch import distributed

from ziggurat.backends.torch.device_group import LostProcessError, gloo_processes, lost_is_told
from ziggurat.engine.backend import ProcessPlace

__all__ = ["Arrays", "NodeLine"]

Arrays = Mapping[str, np.ndarray]

_MEETING_S: Final = 3600.0
"""How long processes wait for each other: one may still prepare its copy of the data."""

_PATIENCE: Final = timedelta(days=30)
"""How long a process waits for rank 0, which alone validates and saves; one that has ended is noticed."""

_AGAIN_S: Final = 0.05
_HEAD_BYTES: Final = 4096
"""Sent of every message at first: nearly all of them are shorter."""

_SIZE_BYTES: Final = 8
_ERROR: Final = "ziggurat/error/{}"
_READY: Final = "ziggurat/ready"
_VARIABLE: Final = "GLOO_SOCKET_IFNAME"


class NodeLine:
    """What the processes of a training tell each other beside the sums of their gradients.

    Args:
        place: of this process.
    """

    def __init__(self, place: ProcessPlace) -> None:
        self._place = place
        self._store: Any = None
        self._processes: Any = None

    @property
    def interface(self) -> dict[str, str]:
        """What the others reach this process by: the variable GLOO_SOCKET_IFNAME, else the way to rank 0."""
        chosen = os.environ.get(_VARIABLE, "").partition(",")[0].strip()
        return {"interface": chosen} if chosen else {"hostname": _own_address(self._place)}

    def meet(self) -> Any:
        """Wait until all processes are there; return PyTorch's store, which all of them reach.

        Raises:
            LostProcessError: if they do not come.
        """
        place, patience = self._place, timedelta(seconds=_MEETING_S)
        with lost_is_told():
            store = self._store = distributed.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
                place.address,
                place.port,
                place.size,
                is_master=place.rank == 0,
                timeout=patience,
                wait_for_workers=False,
            )
            store.add(_READY, 1)
            self._await(lambda: store.add(_READY, 0) >= place.size)
            apart = distributed.PrefixStore("line", store)  # pyright: ignore[reportPrivateImportUsage]
            self._processes = gloo_processes(apart, place.rank, place.size, _PATIENCE, self.interface)
            return distributed.PrefixStore("sums", store)  # pyright: ignore[reportPrivateImportUsage]

    def tell(self, message: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Send JSON values and arrays from rank 0 to all.

        Raises:
            LostProcessError: if another process has ended.
        """
        data = _packed(message, arrays or {})
        head = torch.zeros(_HEAD_BYTES, dtype=torch.uint8)
        short = data[: _HEAD_BYTES - _SIZE_BYTES]
        head[:_SIZE_BYTES] = _size_tensor(len(data))
        head[_SIZE_BYTES : _SIZE_BYTES + len(short)] = short
        self._broadcast(head)
        if len(data) > len(short):
            self._broadcast(data[len(short) :])

    def hear(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the next message of rank 0 and its arrays.

        Raises:
            LostProcessError: if rank 0 has ended.
        """
        head = torch.empty(_HEAD_BYTES, dtype=torch.uint8)
        self._broadcast(head)
        size = _size_of(head[:_SIZE_BYTES])
        short = head[_SIZE_BYTES : _SIZE_BYTES + size]
        if size == len(short):
            return _unpacked(short)
        data = torch.empty(size, dtype=torch.uint8)
        data[: len(short)] = short
        self._broadcast(data[len(short) :])
        return _unpacked(data)

    def answer(self, message: Mapping[str, Any], arrays: Arrays) -> None:
        """Send JSON values and arrays to rank 0.

        Raises:
            LostProcessError: if it has ended.
        """
        data = _packed(message, arrays)
        with lost_is_told():
            self._processes.send([_size_tensor(len(data))], 0, 0).wait()
            self._processes.send([data], 0, 0).wait()

    def answer_of(self, rank: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what another process sends to rank 0.

        Raises:
            LostProcessError: if it has ended.
        """
        with lost_is_told():
            size = torch.empty(_SIZE_BYTES, dtype=torch.uint8)
            self._processes.recv([size], rank, 0).wait()
            data = torch.empty(_size_of(size), dtype=torch.uint8)
            self._processes.recv([data], rank, 0).wait()
        return _unpacked(data)

    def report(self, text: str) -> None:
        """Let rank 0 know the error that ends this process, as far as it can be reached."""
        try:
            if self._store is not None:
                self._store.set(_ERROR.format(self._place.rank), text)
        except RuntimeError:
            pass  # rank 0 has ended, too

    def errors(self) -> dict[int, str]:
        """Return rank → error of each process that has reported one to this one, which is rank 0."""
        store, found = self._store, dict[int, str]()
        if store is None:
            return found
        for rank in range(1, self._place.size):
            if store.check([_ERROR.format(rank)]):
                found[rank] = store.get(_ERROR.format(rank)).decode("utf-8", "replace")
        return found

    def close(self) -> None:
        """Let go of the others; closing twice does nothing."""
        self._processes = None

    def _await(self, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + _MEETING_S
        while not is_so():
            if time.monotonic() > until:
                raise LostProcessError("not all processes of the training have come")
            time.sleep(_AGAIN_S)

    def _broadcast(self, data: torch.Tensor) -> None:
        with lost_is_told():
            self._processes.broadcast([data], distributed.BroadcastOptions()).wait()


def _own_address(place: ProcessPlace) -> str:
    """Return the address of this machine on the network on which rank 0 is; nothing is sent."""
    kind, _, _, _, target = socket.getaddrinfo(place.address, place.port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(kind, socket.SOCK_DGRAM) as way:
        way.connect(target)
        return str(way.getsockname()[0])


def _packed(message: Mapping[str, Any], arrays: Arrays) -> torch.Tensor:
    """Return the size of the JSON values, those, and the arrays, in bytes."""
    whole = {name: np.ascontiguousarray(each).reshape(each.shape) for name, each in arrays.items()}
    layout = [[name, each.dtype.str, list(each.shape)] for name, each in whole.items()]
    text = json.dumps({"message": dict(message), "arrays": layout}).encode()
    parts = [len(text).to_bytes(_SIZE_BYTES, "little"), text, *(each.tobytes() for each in whole.values())]
    return torch.frombuffer(bytearray(b"".join(parts)), dtype=torch.uint8)


def _unpacked(data: torch.Tensor) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    start = _SIZE_BYTES + _size_of(data[:_SIZE_BYTES])
    content = json.loads(data[_SIZE_BYTES:start].numpy().tobytes())
    arrays = {}
    for name, kind, shape in content["arrays"]:
        dtype = np.dtype(kind)
        end = start + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(bytearray(data[start:end].numpy()), dtype).reshape(shape)
        start = end
    return content["message"], arrays


def _size_tensor(size: int) -> torch.Tensor:
    return torch.frombuffer(bytearray(size.to_bytes(_SIZE_BYTES, "little")), dtype=torch.uint8)


def _size_of(data: torch.Tensor) -> int:
    return int.from_bytes(data.numpy().tobytes(), "little")
