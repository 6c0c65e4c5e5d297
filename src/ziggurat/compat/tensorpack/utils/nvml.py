"""NVIDIA's GPUs, as a program asks for them by Tensorpack's ``NVMLContext``."""

from __future__ import annotations

from typing import Any, Self

from ziggurat.nvidia import ManagementLibrary

__all__ = ["NVMLContext", "NvidiaDevice"]


class NvidiaDevice:
    """A GPU.

    Args:
        library: the open library.
        number: of the GPU.
    """

    def __init__(self, library: ManagementLibrary, number: int) -> None:
        self._library = library
        self._number = number

    def memory(self) -> dict[str, int]:
        """Return ``total``, ``used`` and ``free`` memory, in bytes."""
        device = self._library.read(self._number).device
        free = device.free_bytes or 0
        return {"total": device.memory_bytes, "used": device.memory_bytes - free, "free": free}

    def utilization(self) -> dict[str, int]:
        """Return the share of the last moment in which it was busy, ``gpu``, in percent."""
        return {"gpu": int(self._library.utilization_percent(self._number))}

    def name(self) -> str:
        """Return its name."""
        return self._library.read(self._number).device.name


class NVMLContext:
    """Opens NVIDIA's management library inside a block.

    Raises:
        NvidiaError: where there is no GPU or no driver.
    """

    def __init__(self) -> None:
        self._library = ManagementLibrary()

    def __enter__(self) -> Self:
        self._library.start()
        return self

    def __exit__(self, *_error: Any) -> None:
        self._library.close()

    def num_devices(self) -> int:
        """Return the number of GPUs."""
        return self._library.count()

    def device(self, idx: int) -> NvidiaDevice:
        """Return a GPU by its number."""
        return NvidiaDevice(self._library, idx)

    def devices(self) -> list[NvidiaDevice]:
        """Return all GPUs."""
        return [self.device(number) for number in range(self.num_devices())]
