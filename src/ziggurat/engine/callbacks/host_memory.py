"""Host memory tracking."""

from __future__ import annotations

from ziggurat.engine.callback import Callback

__all__ = ["HostMemoryTracker"]

_GIGABYTE = 1024**3


class HostMemoryTracker(Callback):
    """Puts ``HostFreeMemory (GB)`` and ``ProcessMemory (GB)`` after each epoch, in units of 1024³ bytes.

    The first is what programs may still take without swapping, the second what this process holds (without its
    children).
    """

    def trigger(self) -> None:
        """Put both."""
        import psutil

        self.trainer.put("HostFreeMemory (GB)", psutil.virtual_memory().available / _GIGABYTE)
        self.trainer.put("ProcessMemory (GB)", psutil.Process().memory_info().rss / _GIGABYTE)
