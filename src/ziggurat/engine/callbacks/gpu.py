"""GPU utilization and memory tracking; without a GPU it reports that once and never stops training."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from ziggurat.engine.callback import Callback
from ziggurat.engine.monitor import say
from ziggurat.nvidia import ManagementLibrary, NvidiaError

__all__ = ["GPUMemoryTracker", "GPUUtilizationTracker"]


class GPUSensor(Protocol):
    """What the trackers read; ``ziggurat.nvidia.ManagementLibrary`` is one. Its methods raise ``NvidiaError``."""

    def open(self) -> int:
        """Return the number of devices."""
        ...

    def utilization_percent(self, device: int) -> float:
        """Return the share of the last moment in which the device was busy, in [0, 100]."""
        ...

    def used_bytes(self, device: int) -> int:
        """Return the memory in use on the device, by all processes."""
        ...

    def close(self) -> None:
        """Release the devices."""
        ...


class _GPUTracker(Callback):
    """Asks the devices from a thread, and puts one number for each of them after each epoch."""

    def __init__(
        self, devices: Sequence[int] | None = None, *, every_s: float = 1.0, sensor: GPUSensor | None = None
    ) -> None:
        self._given_devices = devices
        self._every_s = every_s
        self._sensor = sensor or ManagementLibrary()
        self._devices: list[int] = []
        self._readings: dict[int, list[float]] = {}
        self._problem = ""
        self._turn = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def read(self, device: int) -> float:
        """Return one reading of a device."""

    @abstractmethod
    def put(self, device: int, readings: Sequence[float]) -> None:
        """Put what the readings of an epoch come to."""

    def before_train(self) -> None:
        """Find the devices and start the thread, or say why not."""
        try:
            count = self._sensor.open()
            self._devices = _chosen(self._given_devices, count)
        except NvidiaError as error:
            self._give_up(str(error))
            return
        self._ended.clear()
        self._thread = threading.Thread(target=self._read_now_and_then, name="gpu-tracker", daemon=True)
        self._thread.start()

    def before_epoch(self) -> None:
        """Forget what was read between epochs."""
        with self._turn:
            self._readings = {}

    def after_epoch(self) -> None:
        """Make sure that there is one reading, however short the epoch was."""
        if self._thread is not None and not self._readings:
            self._read_once()

    def trigger_epoch(self) -> None:
        """Put the readings of the epoch; say why where there can be no more."""
        with self._turn:
            readings, self._readings = self._readings, {}
        for device, values in sorted(readings.items()):
            self.put(device, values)
        if self._problem:
            self._give_up(self._problem)

    def after_train(self) -> None:
        """End the thread and let go of the devices."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._ended.set()
            thread.join()
            self._sensor.close()

    def _read_now_and_then(self) -> None:
        while not self._problem and not self._ended.wait(self._every_s):
            self._read_once()

    def _read_once(self) -> None:
        try:
            readings = {device: self.read(device) for device in self._devices}
        except NvidiaError as error:
            self._problem = str(error)
            return
        with self._turn:
            for device, value in readings.items():
                self._readings.setdefault(device, []).append(value)

    def _give_up(self, reason: str) -> None:
        self._problem = ""
        self.after_train()
        say(self.trainer, f"{type(self).__name__}: nothing is tracked: {reason}. Training goes on.", level="warning")


class GPUUtilizationTracker(_GPUTracker):
    """Puts ``GPUUtil/<device>`` after each epoch: how busy each GPU was on average, in percent.

    A thread asks once a second. Without a GPU, a driver or the package ``nvidia-ml-py`` it says so once.

    Args:
        devices: numbers of the GPUs; None for all.
        every_s: seconds between two readings.
        sensor: what is asked; None for NVIDIA's management library.
    """

    def read(self, device: int) -> float:
        """Return how busy the device was."""
        return self._sensor.utilization_percent(device)

    def put(self, device: int, readings: Sequence[float]) -> None:
        """Put the mean."""
        self.trainer.put(f"GPUUtil/{device}", sum(readings) / len(readings))


class GPUMemoryTracker(_GPUTracker):
    """Puts ``GPUMemory/<device> (GB)`` after each epoch: the most that was in use, in units of 1024³ bytes.

    A thread asks once a second, so a shorter peak may be missed. Without a GPU, a driver or the package
    ``nvidia-ml-py`` it says so once.

    Args:
        devices: numbers of the GPUs; None for all.
        every_s: seconds between two readings.
        sensor: what is asked; None for NVIDIA's management library.
    """

    def read(self, device: int) -> float:
        """Return the memory in use."""
        return self._sensor.used_bytes(device) / 1024**3

    def put(self, device: int, readings: Sequence[float]) -> None:
        """Put the largest."""
        self.trainer.put(f"GPUMemory/{device} (GB)", max(readings))


def _chosen(devices: Sequence[int] | None, count: int) -> list[int]:
    if count == 0:
        raise NvidiaError("no device", "there is no GPU")
    chosen = list(range(count)) if devices is None else list(devices)
    missing = [device for device in chosen if not 0 <= device < count]
    if missing:
        raise NvidiaError("no device", f"there is no GPU {missing[0]}; there are {count}, counted from 0")
    return chosen
