"""Diagnostics for ``ziggurat doctor``: what is installed, what does not work, and how to fix it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil

from ziggurat.entities.jobs import disk_reserve_bytes
from ziggurat.plugins import GROUPS, available
from ziggurat.settings import Settings
from ziggurat.workspace.accelerators import Accelerators
from ziggurat.workspace.doctor_finding import Finding
from ziggurat.workspace.doctor_studio import examine_studio
from ziggurat.workspace.frameworks import why_backend_does_not_work

__all__ = ["Finding", "examine"]

_LITTLE_DISK_BYTES: Final = 2 << 30
_LITTLE_MEMORY_BYTES: Final = 1 << 30

_NOT_SHOWN: Final = ("all", "dev", "docs")
"""Extras that are sums of others, or for those who work on Ziggurat itself."""


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield what is found, section by section. Each backend is asked in a process of its own."""
    yield _python()
    yield from _packages()
    yield from _backends()
    yield from _plugins()
    yield from _machine()
    yield _workspace(settings.workspace)
    yield from examine_studio(settings.workspace, database=settings.database.value, port=settings.port)


def _python() -> Finding:
    version = platform.python_version()
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Finding("python", "Python", "ok", f"{version} at {sys.executable}")
    return Finding("python", "Python", "problem", version, "Use Python 3.11, 3.12 or 3.13.")


def _packages() -> Iterator[Finding]:
    extras: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("ziggurat") or []:
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
        name = re.match(r"[\w.-]+", requirement.strip())
        if name is None or name[0] == "ziggurat":
            continue
        if extra is None:
            yield _package(name[0], requirement.strip())
        elif extra[1] not in _NOT_SHOWN:
            extras.setdefault(extra[1], []).append(name[0])
    for extra_name, names in sorted(extras.items()):
        yield _extra(extra_name, names)


def _package(name: str, requirement: str) -> Finding:
    version = _version(name)
    if version:
        return Finding("packages", name, "ok", version)
    advice = f"Install it with: pip install '{requirement}'"
    return Finding("packages", name, "problem", "is needed and not installed", advice)


def _extra(name: str, packages: list[str]) -> Finding:
    missing = [package for package in packages if not _version(package)]
    if missing:
        advice = f"If you want it: pip install 'ziggurat[{name}]'"
        return Finding("extras", name, "note", f"not installed: {', '.join(missing)}", advice)
    return Finding("extras", name, "ok", ", ".join(f"{package} {_version(package)}" for package in packages))


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _backends() -> Iterator[Finding]:
    for plugin in available("backends"):
        why_not = why_backend_does_not_work(plugin.name)
        owner = f"{plugin.distribution} {plugin.version}"
        if why_not:
            yield Finding("backends", plugin.name, "note", f"does not work ({owner})", why_not)
        else:
            yield Finding("backends", plugin.name, "ok", f"works ({owner})")


def _plugins() -> Iterator[Finding]:
    for group in GROUPS:
        for plugin in available(group):
            if not plugin.is_built_in:
                owner = f"{plugin.distribution} {plugin.version}"
                yield Finding("plugins", f"{group}/{plugin.name}", "ok", f"{plugin.target} ({owner})")


def _machine() -> Iterator[Finding]:
    yield Finding("machine", "system", "ok", f"{platform.system()} {platform.release()}, {platform.machine()}")
    yield Finding("machine", "processor", "ok", f"{len(os.sched_getaffinity(0))} cores for this process")
    memory = psutil.virtual_memory()
    text = f"{_gigabytes(memory.available)} of {_gigabytes(memory.total)} free"
    if memory.available < _LITTLE_MEMORY_BYTES:
        yield Finding("machine", "memory", "problem", text, "End other programs; training needs 1 GB and more.")
    else:
        yield Finding("machine", "memory", "ok", text)
    yield from _devices()


def _devices() -> Iterator[Finding]:
    accelerators = Accelerators(os.environ)
    found = accelerators.read()
    for each in found:
        device = each.device
        name, text = f"GPU {device.index}", f"{device.name}, {_gigabytes(device.free_bytes)} free"
        if device.usable:
            yield Finding("machine", name, "ok", f"{text} of {_gigabytes(device.memory_bytes)}")
        else:
            yield Finding("machine", name, "problem", each.error, "Restart the driver or the machine.")
    if found:
        return
    if Path("/dev/nvidiactl").exists():
        text = f"there are some, and none can be used: {accelerators.why_none}"
        yield Finding("machine", "GPUs", "note", text, "Mend that; until then networks are trained on the processor.")
    else:
        yield Finding("machine", "GPUs", "ok", f"none ({accelerators.why_none}): the processor trains networks")


def _workspace(path: Path) -> Finding:
    there = next(each for each in (path, *path.resolve().parents) if each.is_dir())
    disk = shutil.disk_usage(there)
    free, least = disk.free, max(_LITTLE_DISK_BYTES, disk_reserve_bytes(disk.total))
    text = f"{path}, {_gigabytes(free)} free"
    if not os.access(there, os.W_OK):
        advice = "Mend its rights, or choose another with --workspace or ZIGGURAT_WORKSPACE."
        return Finding("workspace", "folder", "problem", f"{path} cannot be written", advice)
    if free < least:
        advice = "Free some, or choose another disk with --workspace or ZIGGURAT_WORKSPACE."
        text = f"{text}, and {_gigabytes(least)} are needed to start a job"
        return Finding("workspace", "folder", "problem", text, advice)
    return Finding("workspace", "folder", "ok", text)


def _gigabytes(size: float) -> str:
    return f"{size / 2**30:.1f} GB"
