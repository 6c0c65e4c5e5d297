"""Resources of this machine: accelerators, CPU, memory, disk, frameworks; and the limits that an admin sets on them."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import psutil

from ziggurat.entities import NodeResources
from ziggurat.entities.jobs import disk_reserve_bytes
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.nvidia import Accelerator, Accelerators
from ziggurat.workspace.frameworks import Frameworks

__all__ = ["UPLOADS_KEPT_S", "Limit", "Limits", "Machine"]

UPLOADS_KEPT_S: Final = 7 * 24 * 3600
"""Default lifetime of uploaded files that did not become a dataset."""

_KEPT_S: Final = 1.0
_SIDE, _PRODUCTS = 64, 400
_FIRST_LOOK_S: Final = 0.1
_JOBS_MEMORY_SHARE: Final = 0.9
_MEMORY_LIMIT: Final = Path("/sys/fs/cgroup/memory.max")
_MOST: Final = 1 << 53

_LEAST: Final = {
    "cpu_slots": 1,
    "dataset_slots": 1,
    "memory_bytes": 1 << 28,
    "disk_reserve_bytes": 0,
    "uploads_kept_s": 3600,
}
"""Name → smallest value: with less, no job would ever start, or uploads would be gone at once."""

_HELP: Final = {
    "cpu_slots": "Jobs that run on the CPU at a time; typical: half of the cores.",
    "dataset_slots": "Datasets created at a time; typical: 1, as two on one disk slow each other down.",
    "memory_bytes": "Memory that all jobs together may request; typical: 90 % of the machine's.",
    "disk_reserve_bytes": "Free disk space below which no job starts; typical: 2 % of the disk, 1 to 5 GiB.",
    "uploads_kept_s": "How long uploaded files are kept before they become a dataset; typical: a week.",
}


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """What was found at one moment."""

    accelerators: tuple[Accelerator, ...]
    why_no_devices: str
    cpu_load: float
    memory_free_bytes: int
    disk_total_bytes: int
    disk_free_bytes: int


class Machine:
    """This machine, read at most once a second. Any thread may call any method.

    Args:
        workspace: folder whose disk is watched; it need not exist yet.
        environment: variables; those of this process where it is not given.
        driver: module with the functions of ``pynvml``; the installed one where it is not given.
        frameworks: that are looked for.
        monotonic: seconds of a clock that never goes back.
        settings: returns the numbers that an administrator chose, as ``resources`` takes them.
        disk_reserve_mib: the setting of this name.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        environment: Mapping[str, str] | None = None,
        driver: Any = None,
        frameworks: Frameworks | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        settings: Callable[[], Mapping[str, Any]] = dict,
        disk_reserve_mib: int | None = None,
    ) -> None:
        self.workspace = workspace
        self._disk_reserve_mib = disk_reserve_mib
        self.frameworks = frameworks or Frameworks()
        self._accelerators = Accelerators(
            os.environ if environment is None else environment, driver=driver, monotonic=monotonic
        )
        self._monotonic = monotonic
        self._settings = settings
        self._lock = threading.Lock()
        self._reading: _Reading | None = None
        self._read_at = 0.0
        self.cores = len(os.sched_getaffinity(0))
        self.memory_bytes = _memory_bytes()

    @cached_property
    def multiply_adds_per_s(self) -> float:
        """Multiply-adds of all cores in a second, in matrix products of 32-bit floats; it takes some milliseconds once.

        It is the quickest of many products that one core computes within microseconds: what else runs on the machine
        does not slow that down, as it would many threads that wait for each other.
        """
        factor = np.ones((_SIDE, _SIDE), np.float32)
        product, took_s = np.empty_like(factor), []
        for _ in range(_PRODUCTS):
            began = time.perf_counter()
            np.matmul(factor, factor, out=product)
            took_s.append(time.perf_counter() - began)
        return self.cores * _SIDE**3 / max(min(took_s), 1e-9)

    def resources(self, settings: Mapping[str, Any] | None = None) -> NodeResources:
        """Return the machine's resources for jobs, in use or not.

        Args:
            settings: ``cpu_slots``, ``dataset_slots``, ``memory_bytes``, ``disk_reserve_bytes``: numbers that an
                administrator chose; each has a default.

        Raises:
            ConfigurationError: where one of them is no such number.
        """
        reading, chosen = self._read(), settings or {}
        return NodeResources(
            devices=tuple(each.device for each in reading.accelerators),
            cpu_slots=_number(chosen, "cpu_slots", max(1, self.cores // 2)),
            memory_bytes=_number(chosen, "memory_bytes", int(self.memory_bytes * _JOBS_MEMORY_SHARE)),
            dataset_slots=_number(chosen, "dataset_slots", 1),
            disk_free_bytes=reading.disk_free_bytes,
            disk_reserve_bytes=self._disk_reserve_bytes(chosen, reading),
        )

    def threads_of_a_job(self, settings: Mapping[str, Any]) -> int:
        """Return the cores for each of the jobs that may run on the CPU at a time.

        Args:
            settings: as in ``resources``.

        Raises:
            ConfigurationError: where ``cpu_slots`` is no number.
        """
        return max(1, self.cores // max(1, _number(settings, "cpu_slots", max(1, self.cores // 2))))

    def strip(self) -> dict[str, Any]:
        """Return what the strip on every page shows, as JSON values; frameworks once they were checked."""
        reading = self._read()
        return {
            "devices": [_device_content(each) for each in reading.accelerators],
            "why_no_devices": reading.why_no_devices,
            "cpu": {"cores": self.cores, "load": reading.cpu_load},
            "memory": {"total_bytes": self.memory_bytes, "free_bytes": reading.memory_free_bytes},
            "disk": {
                "path": str(self.workspace),
                "total_bytes": reading.disk_total_bytes,
                "free_bytes": reading.disk_free_bytes,
                "reserve_bytes": self._disk_reserve_bytes(self._settings(), reading),
            },
            "frameworks": [asdict(each) | {"sentence": each.sentence} for each in self.frameworks.known or ()],
        }

    def _disk_reserve_bytes(self, chosen: Mapping[str, Any], reading: _Reading) -> int:
        default = disk_reserve_bytes(reading.disk_total_bytes, self._disk_reserve_mib)
        return _number(chosen, "disk_reserve_bytes", default)

    def _read(self) -> _Reading:
        with self._lock:
            now = self._monotonic()
            if self._reading is None or now - self._read_at >= _KEPT_S:
                self._reading, self._read_at = self._read_now(), now
            return self._reading

    def _read_now(self) -> _Reading:
        accelerators = tuple(self._accelerators.read())
        disk = shutil.disk_usage(_nearest_folder(self.workspace))
        return _Reading(
            accelerators=accelerators,
            why_no_devices=self._accelerators.why_none,
            # Since the last reading; the first one has to watch for a moment.
            cpu_load=round(psutil.cpu_percent(interval=_FIRST_LOOK_S if self._reading is None else None) / 100, 3),
            memory_free_bytes=min(psutil.virtual_memory().available, self.memory_bytes),
            disk_total_bytes=disk.total,
            disk_free_bytes=disk.free,
        )


def _number(settings: Mapping[str, Any], name: str, default: int) -> int:
    value = settings.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigurationError(f"The studio's setting `{name}` is {value!r}, not a whole number from 0.")
    return value


def _memory_bytes() -> int:
    """Return the memory that this process may use: a container may have less than the machine."""
    total = psutil.virtual_memory().total
    try:
        return min(total, int(_MEMORY_LIMIT.read_text()))
    except (OSError, ValueError):  # no such file, or the word `max`
        return total


def _nearest_folder(path: Path) -> Path:
    return next(each for each in (path, *path.absolute().parents) if each.is_dir())


def _device_content(accelerator: Accelerator) -> dict[str, Any]:
    return asdict(accelerator.device) | {
        "uuid": accelerator.uuid,
        "temperature_c": accelerator.temperature_c,
        "processes": [asdict(each) for each in accelerator.processes],
        "error": accelerator.error,
    }


class _Settings(Protocol):
    def all(self) -> dict[str, Any]: ...

    def set(self, name: str, value: Any) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Limit:
    """A number that may be chosen.

    Args:
        name: of it; its end says the unit (``_bytes``, ``_s``), others are counts.
        value: that holds.
        default: that holds if none is chosen.
        is_chosen: whether an admin chose it.
        least: smallest that may be chosen.
        help: what it does and what is usual.
    """

    name: str
    value: int
    default: int
    is_chosen: bool
    least: int
    help: str


class Limits:
    """The numbers; a change holds from the next look at the queue on, without starting anything again.

    Args:
        settings: of the studio; they keep what was chosen.
        resources: returns what this machine has for jobs under given settings.
    """

    def __init__(self, settings: _Settings, resources: Callable[[Mapping[str, Any]], NodeResources]) -> None:
        self._settings = settings
        self._resources = resources

    def all(self) -> list[Limit]:
        """Return every number."""
        chosen, machine = self._settings.all(), self._resources({})
        defaults = {name: getattr(machine, name, UPLOADS_KEPT_S) for name in _LEAST}
        return [
            Limit(
                name=name,
                value=defaults[name] if chosen.get(name) is None else chosen[name],
                default=defaults[name],
                is_chosen=chosen.get(name) is not None,
                least=least,
                help=_HELP[name],
            )
            for name, least in _LEAST.items()
        ]

    def choose(self, values: Mapping[str, int | None]) -> None:
        """Choose numbers, all or none of them; None goes back to the default.

        Raises:
            UnknownNameError: where a name is none.
            ConfigurationError: where a number is too small or no whole number; ``details["field"]`` names it.
        """
        for name, value in values.items():
            if name not in _LEAST:
                raise UnknownNameError("limit of the studio", name, _LEAST)
            if value is not None:
                _check(name, value)
        for name, value in values.items():
            self._settings.set(name, value)


def _check(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not _LEAST[name] <= value <= _MOST:
        raise ConfigurationError(
            f"`{name}` is {repr(value)[:50]}, not a whole number from {_LEAST[name]}.",
            advice=_HELP[name],
            details={"field": name},
        )
