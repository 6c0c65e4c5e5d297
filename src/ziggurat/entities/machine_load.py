"""Load of the machine while a job runs: samples of the worker in its job folder, and curves made of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import file_signature
from ziggurat.entities.json_lines import read_lines

__all__ = ["MOST_SAMPLES", "QUANTITIES", "LoadCurve", "MachineFacts", "MachineLoad", "read_machine_load", "thinned"]

MOST_SAMPLES: Final = 1440
"""Maximum number of samples in a file; beyond it, neighbors are averaged."""

QUANTITIES: Final[dict[str, tuple[str, str]]] = {
    "job_cpu_percent": ("CPU, this job", "%"),
    "machine_cpu_percent": ("CPU, machine", "%"),
    "job_memory_bytes": ("Memory, this job", "bytes"),
    "machine_memory_bytes": ("Memory, machine", "bytes"),
    "disk_read_bytes_per_s": ("Disk read", "bytes/s"),
    "disk_write_bytes_per_s": ("Disk written", "bytes/s"),
    "disk_free_bytes": ("Disk free", "bytes"),
    "images_per_s": ("Throughput", "samples/s"),
}
"""Name of a quantity → title and unit. CPU shares are of all cores together; the memory of a job is that of its
processes, pages that they share counted in each."""

_GPU: Final = {"utilization_percent": ("GPU {} utilization", "%"), "memory_bytes": ("GPU {} memory", "bytes")}
_GPU_NAME: Final = re.compile(r"gpu_(\d{1,4})_(\w+)", re.ASCII)  # a user's code can write into the folder of its job
_UNITS: Final = frozenset({"time", "attempt", "step"})


@dataclass(frozen=True, kw_only=True)
class MachineFacts:
    """Hardware of the machine of a job.

    Args:
        host: its name; empty if unknown.
        cores: that the job may use; 0 if unknown.
        memory_bytes: of the machine; 0 if unknown.
        disk_bytes: of the disk with the job folder; 0 if unknown.
        gpus: index, name and memory (``memory_bytes``) of each GPU that the job may use.
    """

    host: str = ""
    cores: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    gpus: tuple[Mapping[str, Any], ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class LoadCurve:
    """One quantity over time.

    Args:
        name: such as ``job_cpu_percent`` or ``gpu_0_memory_bytes``.
        title: displayed name.
        unit: ``%``, ``bytes``, ``bytes/s`` or ``samples/s``.
        values: one for each time; None where it was not measured.
        limit: largest possible value, in the same unit; None if there is none.
    """

    name: str
    title: str
    unit: str
    values: tuple[float | None, ...]
    limit: float | None = None

    @property
    def last(self) -> float | None:
        """Newest value that was measured; None if there is none."""
        return next((value for value in reversed(self.values) if value is not None), None)


@dataclass(frozen=True, kw_only=True)
class MachineLoad:
    """The load of the machine over the attempts of a job; empty for a job that ran before it was recorded.

    Args:
        machine: of the newest attempt.
        times: of the samples, in seconds since 1970.
        steps: ``global_step`` of each.
        attempts: start time of the attempt of each: lines of a chart end where it changes.
        curves: one for each quantity that was measured.
    """

    machine: MachineFacts = field(default_factory=MachineFacts)
    times: tuple[float, ...] = ()
    steps: tuple[int, ...] = ()
    attempts: tuple[float, ...] = ()
    curves: tuple[LoadCurve, ...] = ()


def read_machine_load(path: Path) -> MachineLoad:
    """Return the load in the file of a job: empty if the file is missing; damaged lines are skipped."""
    try:
        signature = file_signature(path)
    except (FileNotFoundError, NotADirectoryError):
        return MachineLoad()
    return _read(path, signature)


@lru_cache(maxsize=16)  # each request of a job page reads it, and a full file takes 30 ms
def _read(path: Path, _signature: tuple[int, ...]) -> MachineLoad:
    machine, samples = MachineFacts(), []
    for line in read_lines(path):
        if "machine" in line:
            machine = _facts(line["machine"])
        elif _number(line.get("time")) is not None:
            samples.append(line)
    names = dict.fromkeys(name for sample in samples for name in sample if name not in _UNITS)
    order = [name for name in QUANTITIES if name in names]
    order += sorted(filter(_GPU_NAME.fullmatch, names), key=_gpu_place)
    return MachineLoad(
        machine=machine,
        times=tuple(float(each["time"]) for each in samples),
        steps=tuple(int(_number(each.get("step")) or 0) for each in samples),
        attempts=tuple(float(_number(each.get("attempt")) or 0) for each in samples),
        curves=tuple(_curve(name, samples, machine) for name in order),
    )


def thinned(samples: Sequence[Mapping[str, Any]], most: int = MOST_SAMPLES // 2) -> list[dict[str, Any]]:
    """Return at most ``most`` samples: means over equal parts of time, never across two attempts.

    Args:
        samples: in the order of their times.
        most: maximum number to return; more if there are more attempts.
    """
    if len(samples) <= most:
        return [dict(each) for each in samples]
    width_s = max(1.0, (samples[-1]["time"] - samples[0]["time"]) / most)
    while True:
        parts: dict[tuple[Any, int], list[Mapping[str, Any]]] = {}
        for each in samples:
            parts.setdefault((each.get("attempt"), math.floor(each["time"] / width_s)), []).append(each)
        if len(parts) <= most or all(len(part) == 1 for part in parts.values()) or width_s > _LONGEST_S:
            return [_mean(part) for part in parts.values()]
        width_s *= 2


_LONGEST_S: Final = 1e9


def _mean(part: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    last = part[-1]
    mean: dict[str, Any] = {name: last[name] for name in ("time", "attempt", "step") if name in last}
    for name in dict.fromkeys(name for each in part for name in each if name not in _UNITS):
        values = [value for each in part if (value := _number(each.get(name))) is not None]
        if values:
            mean[name] = round(sum(values) / len(values), 3)
    return mean


def _curve(name: str, samples: Iterable[Mapping[str, Any]], machine: MachineFacts) -> LoadCurve:
    title, unit, limit = _described(name, machine)
    return LoadCurve(
        name=name, title=title, unit=unit, limit=limit, values=tuple(_number(each.get(name)) for each in samples)
    )


def _described(name: str, machine: MachineFacts) -> tuple[str, str, float | None]:
    gpu = _GPU_NAME.fullmatch(name)
    if gpu is not None:
        index, quantity = gpu.groups()
        title, unit = _GPU.get(quantity, (quantity, ""))
        memory = next((each.get("memory_bytes") for each in machine.gpus if str(each.get("index")) == index), None)
        return title.format(index), unit, 100.0 if unit == "%" else _number(memory)
    title, unit = QUANTITIES[name]
    limits = {"%": 100, "bytes": machine.disk_bytes if name.startswith("disk") else machine.memory_bytes}
    return title, unit, float(limits[unit]) if limits.get(unit) else None


def _gpu_place(name: str) -> tuple[int, str]:
    _, index, quantity = name.split("_", 2)
    return int(index), quantity


def _facts(content: Any) -> MachineFacts:
    known = content if isinstance(content, dict) else {}
    gpus = known.get("gpus")
    return MachineFacts(
        host=str(known.get("host", "")),
        cores=int(_number(known.get("cores")) or 0),
        memory_bytes=int(_number(known.get("memory_bytes")) or 0),
        disk_bytes=int(_number(known.get("disk_bytes")) or 0),
        gpus=tuple(each for each in gpus if isinstance(each, dict)) if isinstance(gpus, list) else (),
    )


def _number(value: Any) -> float | None:
    # JSON gives exact types; `isinstance` would take a bool for a number.
    return float(value) if type(value) in (float, int) and math.isfinite(value) else None
