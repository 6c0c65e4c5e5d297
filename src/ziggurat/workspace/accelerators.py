"""Accelerator readings from the NVIDIA driver: memory, load, temperature, and processes.

Their indices are those of NVML, in the order of the PCI bus: a worker sees the same ones where its environment has
``CUDA_DEVICE_ORDER=PCI_BUS_ID``. Nothing here fails: without a driver there is no accelerator (DIGITS behavior 7).
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psutil

from ziggurat.entities import Device

__all__ = ["Accelerator", "Accelerators", "DeviceProcess", "visible_indices"]

_TRY_AGAIN_S: Final = 60.0
_MODULE: Final = "pynvml"
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_HIDE_ALL: Final = ("", "-1", "NoDevFiles")


@dataclass(frozen=True, kw_only=True)
class DeviceProcess:
    """A process that uses an accelerator.

    Args:
        pid: its number.
        name: of its program; empty where it cannot be seen.
        user: whose it is; empty where it cannot be seen.
        memory_bytes: of the accelerator; None where the driver does not say.
    """

    pid: int
    name: str = ""
    user: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """An accelerator with what only people ask for.

    Args:
        device: as the plan of jobs knows it.
        uuid: by which the driver names it.
        temperature_c: degrees Celsius; None where that is not known.
        processes: that compute on it.
        error: why it cannot be used; empty where it can.
    """

    device: Device
    uuid: str = ""
    temperature_c: int | None = None
    processes: tuple[DeviceProcess, ...] = field(default=())
    error: str = ""


class Accelerators:
    """The accelerators of this machine that this process may use. Call it from one thread at a time.

    Args:
        environment: variables; an empty ``CUDA_VISIBLE_DEVICES`` hides all (DIGITS behavior 10).
        driver: module with the functions of ``pynvml``; the installed one where it is not given.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        driver: Any = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._visible = environment.get(_VISIBLE)
        self._given = driver
        self._monotonic = monotonic
        self._driver: Any = None
        self._tried_at = -_TRY_AGAIN_S
        self.why_none = ""

    def read(self) -> list[Accelerator]:
        """Return the accelerators as they are now; ``why_none`` then says why there is none."""
        if self._visible is not None and self._visible.split(",")[0].strip() in _HIDE_ALL:
            self.why_none = f"{_VISIBLE} hides them all"
            return []
        driver = self._ready_driver()
        if driver is None:
            return []
        try:
            found = [_read(driver, index) for index in range(driver.nvmlDeviceGetCount())]
        except Exception as error:  # the driver was reloaded, or fell over: start anew the next time
            self._driver, self.why_none = None, f"the driver does not answer: {error}"
            return []
        if self._visible is not None:
            chosen = visible_indices(self._visible, [each.uuid for each in found])
            found = [found[index] for index in sorted(chosen)]
        self.why_none = "" if found else "the driver knows none that this process may use"
        return found

    def _ready_driver(self) -> Any:
        if self._driver is None and self._monotonic() - self._tried_at >= _TRY_AGAIN_S:
            self._tried_at = self._monotonic()
            try:
                driver = self._given or importlib.import_module(_MODULE)
                driver.nvmlInit()
                self._driver = driver
            except ImportError:
                self.why_none = "nvidia-ml-py is not installed: pip install 'ziggurat[gpu]'"
            except Exception as error:  # NVML has a family of errors of its own
                self.why_none = f"no NVIDIA driver: {error}"
        return self._driver


def visible_indices(visible: str, uuids: Sequence[str]) -> tuple[int, ...]:
    """Return the indices that ``CUDA_VISIBLE_DEVICES`` names, in its order.

    As in CUDA, an entry that names none hides itself and all behind it; one named twice hides all.

    Args:
        visible: numbers, or beginnings of UUIDs, between commas.
        uuids: of all accelerators, in the order of their indices.
    """
    chosen: list[int] = []
    for entry in (part.strip() for part in visible.split(",")):
        index = _index(entry, uuids)
        if index is None:
            break
        if index in chosen:
            return ()
        chosen.append(index)
    return tuple(chosen)


def _index(entry: str, uuids: Sequence[str]) -> int | None:
    if entry.isdecimal():
        return int(entry) if int(entry) < len(uuids) else None
    matching = [index for index, uuid in enumerate(uuids) if entry and uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None


def _read(driver: Any, index: int) -> Accelerator:
    try:
        handle = driver.nvmlDeviceGetHandleByIndex(index)
        memory = driver.nvmlDeviceGetMemoryInfo(handle)
    except Exception as error:  # one that fell off the bus must not hide the others
        device = Device(index=index, name="unknown", memory_bytes=0, free_bytes=0, usable=False)
        return Accelerator(device=device, error=str(error))
    load = _asked(lambda: driver.nvmlDeviceGetUtilizationRates(handle).gpu / 100)
    name = _text(_asked(lambda: driver.nvmlDeviceGetName(handle)))
    return Accelerator(
        device=Device(index=index, name=name, memory_bytes=int(memory.total), free_bytes=int(memory.free), load=load),
        uuid=_text(_asked(lambda: driver.nvmlDeviceGetUUID(handle))),
        temperature_c=_asked(lambda: int(driver.nvmlDeviceGetTemperature(handle, driver.NVML_TEMPERATURE_GPU))),
        processes=tuple(
            _process(each.pid, each.usedGpuMemory)
            for each in _asked(lambda: driver.nvmlDeviceGetComputeRunningProcesses(handle)) or ()
        ),
    )


def _asked(question: Callable[[], Any]) -> Any:
    """Return the driver's answer, or None: many accelerators do not know everything."""
    try:
        return question()
    except Exception:
        return None


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name or "")


def _process(pid: int, memory_bytes: int | None) -> DeviceProcess:
    name = user = ""
    try:
        process = psutil.Process(pid)
        name, user = process.name(), process.username()
    except (psutil.Error, KeyError):
        pass  # it ended meanwhile, or is of another container
    return DeviceProcess(pid=pid, name=name, user=user, memory_bytes=memory_bytes)
