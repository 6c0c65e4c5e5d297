"""Queries to NVIDIA's management library (NVML); a missing library is a valid answer, not a failure."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["GPUSensor", "NVMLSensor", "SensorError"]


class SensorError(Exception):
    """The devices cannot be asked; the text says why, to end the sentence "… is not tracked: …"."""


class GPUSensor(Protocol):
    """What the trackers ask."""

    def open(self) -> int:
        """Return the number of devices.

        Raises:
            SensorError: where they cannot be asked.
        """
        ...

    def utilization_percent(self, device: int) -> float:
        """Return the share of the last moment in which the device was busy, in [0, 100]."""
        ...

    def used_bytes(self, device: int) -> int:
        """Return the memory in use on the device, by all processes."""
        ...

    def close(self) -> None:
        """Let go of the devices."""
        ...


class NVMLSensor:
    """Asks NVIDIA's management library through the package ``nvidia-ml-py``."""

    def __init__(self) -> None:
        self._library: Any = None
        self._devices: list[Any] = []

    def open(self) -> int:
        """Start the library; return the number of devices.

        Raises:
            SensorError: where package, driver or device is missing.
        """
        try:
            import pynvml
        except ImportError:
            raise SensorError("the package `nvidia-ml-py` is not installed (pip install 'ziggurat[gpu]')") from None
        try:
            pynvml.nvmlInit()
            count = pynvml.nvmlDeviceGetCount()
            self._devices = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(count)]
        except pynvml.NVMLError as error:
            raise SensorError(f"there is no NVIDIA driver to ask ({error})") from None
        self._library = pynvml
        return count

    def utilization_percent(self, device: int) -> float:
        """Return how busy the device was."""
        return float(self._ask("nvmlDeviceGetUtilizationRates", device).gpu)

    def used_bytes(self, device: int) -> int:
        """Return the memory in use."""
        return int(self._ask("nvmlDeviceGetMemoryInfo", device).used)

    def close(self) -> None:
        """Stop the library; closing twice does nothing."""
        library, self._library = self._library, None
        if library is not None:
            library.nvmlShutdown()

    def _ask(self, question: str, device: int) -> Any:
        try:
            return getattr(self._library, question)(self._devices[device])
        except self._library.NVMLError as error:
            raise SensorError(f"device {device} does not answer ({error})") from None
