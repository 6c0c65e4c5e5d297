"""Plain-text summary of the state of the studio and its machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ziggurat.cli.output import Output
from ziggurat.formatting import as_bytes, as_time

__all__ = ["studio_text"]


def studio_text(summary: Mapping[str, Any], output: Output) -> str:
    """Return how the studio is in a few lines; ``summary`` is that of ``studio_summary``."""
    machine = summary["machine"]
    disk, memory = machine["disk"], machine["memory"]
    rows = [
        ("studio", _server(summary)),
        ("workspace", summary["workspace"]),
        ("jobs", _jobs(summary["jobs"], output)),
        *_unlisted(summary["unlisted"]),
        *(("device" if index == 0 else "", text) for index, text in enumerate(_devices(machine))),
        ("processor", f"{machine['cpu']['cores']} cores, {machine['cpu']['load']:.0%} busy"),
        ("memory", f"{as_bytes(memory['free_bytes'])} of {as_bytes(memory['total_bytes'])} free"),
        ("disk", f"{as_bytes(disk['free_bytes'])} of {as_bytes(disk['total_bytes'])} free{_warning(disk)}"),
    ]
    return "\n".join(f"{title:<11}{text}" for title, text in rows)


def _server(summary: Mapping[str, Any]) -> str:
    server = summary["server"]
    if server is None:
        return "does not run; start it with: ziggurat up"
    since = as_time(server["started"])
    return f"{server['address']} (process {server['pid']} on {server['host']} since {since}, {server['version']})"


def _unlisted(folders: Sequence[str]) -> Iterator[tuple[str, str]]:
    if folders:
        what = "1 job folder" if len(folders) == 1 else f"{len(folders)} job folders"
        yield "not listed", f"{what}; list them with: ziggurat reindex"


def _jobs(counts: Mapping[str, int], output: Output) -> str:
    return ", ".join(f"{count} {output.word(state)}" for state, count in counts.items()) or "none"


def _devices(machine: Mapping[str, Any]) -> Iterator[str]:
    if not machine["devices"]:
        yield f"none: {machine['why_no_devices']}"
    for device in machine["devices"]:
        if device["error"]:
            yield f"GPU {device['index']} cannot be used: {device['error']}"
            continue
        used = device["memory_bytes"] - device["free_bytes"]
        yield (
            f"GPU {device['index']} {device['name']}: {as_bytes(used)} of {as_bytes(device['memory_bytes'])} used"
            f"{_said(device)}{_processes(device['processes'])}"
        )


def _said(device: Mapping[str, Any]) -> str:
    load = "" if device["load"] is None else f", {device['load']:.0%} busy"
    warmth = "" if device["temperature_c"] is None else f", {device['temperature_c']} °C"
    return load + warmth


def _processes(processes: Iterable[Mapping[str, Any]]) -> str:
    named = [f"process {each['pid']}" + (f" of {each['user']}" if each["user"] else "") for each in processes]
    return f", used by {', '.join(named)}" if named else ""


def _warning(disk: Mapping[str, Any]) -> str:
    if disk["free_bytes"] >= disk["reserve_bytes"]:
        return ""
    return f"; no job starts below {as_bytes(disk['reserve_bytes'])}"
