"""NVIDIA accelerators of this machine, read through NVIDIA's management library (NVML).

Their indices are those of NVML, in the order of the PCI bus: a worker sees the same ones where its environment has
``CUDA_DEVICE_ORDER=PCI_BUS_ID``.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from ziggurat.entities import Device

__all__ = [
    "Accelerator",
    "Accelerators",
    "DeviceProcess",
    "ManagementLibrary",
    "NvidiaError",
    "is_driver_loaded",
    "visible_indices",
]

_TRY_AGAIN_S: Final = 60.0
_MODULE: Final = "pynvml"
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_HIDE_ALL: Final = ("", "-1", "NoDevFiles")
_DRIVER_FILE: Final = Path("/dev/nvidiactl")
_NO_PERMISSION: Final = 4
"""NVML_ERROR_NO_PERMISSION of NVML's interface."""


State = Literal["no library", "no driver", "no permission", "no device", "no answer"]


class NvidiaError(Exception):
    """The accelerators cannot be read; the text says why, as the end of a sentence.

    Args:
        state: ``no library`` (the Python package is not installed), ``no driver``, ``no permission``, ``no device``, or
            ``no answer`` (one accelerator is lost, or does not know what is asked).
        text: why.
    """

    def __init__(self, state: State, text: str) -> None:
        super().__init__(text)
        self.state = state


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


class ManagementLibrary:
    """NVML through the package ``nvidia-ml-py``, which is imported when the library is opened.

    Args:
        module: with the functions of ``pynvml``; the installed one where it is not given.
    """

    def __init__(self, module: Any = None) -> None:
        self._given = module
        self._module: Any = None

    def start(self) -> None:
        """Start the library.

        Raises:
            NvidiaError: where package, driver or permission is missing.
        """
        try:
            module = self._given or importlib.import_module(_MODULE)
            module.nvmlInit()
        except ImportError:
            text = "the package `nvidia-ml-py` is not installed (pip install 'ziggurat[gpu]')"
            raise NvidiaError("no library", text) from None
        except Exception as error:  # NVML has a family of errors of its own
            if getattr(error, "value", None) == _NO_PERMISSION:
                raise NvidiaError("no permission", f"this user may not use the NVIDIA driver: {error}") from None
            raise NvidiaError("no driver", f"no NVIDIA driver: {error}") from None
        self._module = module

    def open(self) -> int:
        """Start the library and return the number of accelerators.

        Raises:
            NvidiaError: where they cannot be read.
        """
        self.start()
        return self.count()

    def count(self) -> int:
        """Return the number of accelerators.

        Raises:
            NvidiaError: where the driver does not answer, such as after it was reloaded.
        """
        try:
            return int(self._module.nvmlDeviceGetCount())
        except Exception as error:
            raise NvidiaError("no answer", f"the driver does not answer: {error}") from None

    def utilization_percent(self, device: int) -> float:
        """Return the share of the last moment in which a device was busy, in [0, 100]."""
        return float(self._ask("nvmlDeviceGetUtilizationRates", device).gpu)

    def used_bytes(self, device: int) -> int:
        """Return the memory in use on a device, by all processes."""
        return int(self._ask("nvmlDeviceGetMemoryInfo", device).used)

    def read(self, device: int) -> Accelerator:
        """Return an accelerator with all that is known of it; one that does not answer has an ``error``."""
        try:
            memory = self._ask("nvmlDeviceGetMemoryInfo", device)
        except NvidiaError as error:  # one that fell off the bus must not hide the others
            lost = Device(index=device, name="unknown", memory_bytes=0, free_bytes=0, usable=False)
            return Accelerator(device=lost, error=str(error.__cause__))
        name, uuid = (_text(self._known(each, device)) for each in ("nvmlDeviceGetName", "nvmlDeviceGetUUID"))
        load = self._known("nvmlDeviceGetUtilizationRates", device)
        temperature = self._known("nvmlDeviceGetTemperature", device, self._module.NVML_TEMPERATURE_GPU)
        processes = self._known("nvmlDeviceGetComputeRunningProcesses", device) or ()
        return Accelerator(
            device=Device(
                index=device,
                name=name,
                memory_bytes=int(memory.total),
                free_bytes=int(memory.free),
                load=None if load is None else load.gpu / 100,
            ),
            uuid=uuid,
            temperature_c=None if temperature is None else int(temperature),
            processes=tuple(_process(each.pid, each.usedGpuMemory) for each in processes),
        )

    def close(self) -> None:
        """Stop the library; closing twice does nothing."""
        module, self._module = self._module, None
        if module is not None:
            module.nvmlShutdown()

    def _ask(self, function: str, device: int, *arguments: Any) -> Any:
        try:
            handle = self._module.nvmlDeviceGetHandleByIndex(device)
            return getattr(self._module, function)(handle, *arguments)
        except Exception as error:
            raise NvidiaError("no answer", f"device {device} does not answer ({error})") from error

    def _known(self, function: str, device: int, *arguments: Any) -> Any:
        """Return what a device answers, or None: many do not know everything."""
        try:
            return self._ask(function, device, *arguments)
        except NvidiaError:
            return None


class Accelerators:
    """The accelerators of this machine that this process may use; without a driver there are none.

    Call it from one thread at a time.

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
        self._library: ManagementLibrary | None = None
        self._tried_at = -_TRY_AGAIN_S
        self.why_none = ""

    def read(self) -> list[Accelerator]:
        """Return the accelerators as they are now; ``why_none`` then says why there is none."""
        if self._visible is not None and self._visible.split(",")[0].strip() in _HIDE_ALL:
            self.why_none = f"{_VISIBLE} hides them all"
            return []
        try:
            library = self._started()
            found = [] if library is None else [library.read(index) for index in range(library.count())]
        except NvidiaError as error:
            self._library, self.why_none = None, str(error)  # start anew the next time
            return []
        if library is None:
            return []
        if self._visible is not None:
            chosen = visible_indices(self._visible, [each.uuid for each in found])
            found = [found[index] for index in sorted(chosen)]
        self.why_none = "" if found else "the driver knows none that this process may use"
        return found

    def _started(self) -> ManagementLibrary | None:
        """Return the library; None where a start failed a moment ago: loading it takes a while."""
        if self._library is None and self._monotonic() - self._tried_at >= _TRY_AGAIN_S:
            self._tried_at = self._monotonic()
            library = ManagementLibrary(self._given)
            library.start()
            self._library = library
        return self._library


def is_driver_loaded() -> bool:
    """Return whether NVIDIA's driver is loaded, whether or not this process can use it."""
    return _DRIVER_FILE.exists()


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


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name or "")


def _process(pid: int, memory_bytes: int | None) -> DeviceProcess:
    name = user = ""
    import psutil  # loaded late: callbacks import this module, and most of them ask for no process

    try:
        process = psutil.Process(pid)
        name, user = process.name(), process.username()
    except (psutil.Error, KeyError):
        pass  # it ended meanwhile, or is of another container
    return DeviceProcess(pid=pid, name=name, user=user, memory_bytes=memory_bytes)
