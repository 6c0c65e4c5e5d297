"""Process on a node of a Ray cluster that holds the worker of a job, and what a node says of itself."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import psutil

from ziggurat import __version__
from ziggurat.cluster.node_cache import NodeCache
from ziggurat.cluster.node_worker import NodeWorker, cache_of
from ziggurat.entities import Device
from ziggurat.entities.jobs import disk_reserve_bytes
from ziggurat.nvidia import Accelerators

__all__ = ["RayWorker", "describe_node", "node_folder"]

_FRAMEWORKS: Final = ("torch", "tensorflow")
_MEMORY_SHARE: Final = 0.8
_UNKNOWN_BYTES: Final = 1 << 40
"""Memory of an accelerator that the cluster declares and no driver describes."""


def node_folder(workspace: str) -> Path:
    """Return the folder of this machine for jobs of a studio: in the cache of its user."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "ziggurat" / "nodes" / hashlib.sha256(workspace.encode()).hexdigest()[:16]


class RayWorker(NodeWorker):
    """A ``NodeWorker`` whose folder is on the machine where it is made.

    Args:
        workspace: of the studio; jobs of several studios do not meet.
        node: name of the node.
        job_id: name of the job folder.
        attempt: number of the attempt.
        cache_bytes: largest size of the node's cache.
        rank: number of the process, in a job over several nodes.
    """

    def __init__(self, workspace: str, node: str, job_id: str, attempt: int, cache_bytes: int, rank: int) -> None:
        super().__init__(node_folder(workspace) / node, job_id, attempt, cache_bytes=cache_bytes, rank=rank)

    def host(self) -> str:
        """Return the address of this machine in the cluster."""
        import ray

        return ray.util.get_node_ip_address()

    def accelerators(self, devices: Sequence[int]) -> list[int]:
        """Return the accelerators that Ray set aside, which may be others of as many as were asked for."""
        import ray

        ids = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
        given = [int(each) for each in ids if each.isdigit()]
        return given if len(given) == len(devices) else list(devices)

    def start(self, devices: Sequence[int], environment: Mapping[str, str]) -> dict[str, Any]:
        """Start the worker on the accelerators that Ray set aside."""
        return super().start(self.accelerators(devices), environment)


def describe_node(workspace: str, node: str, proof: str, secret: str, declared_gpus: int) -> dict[str, Any]:
    """Return what this machine says of itself.

    Args:
        workspace: of the studio.
        node: name of the node.
        proof: path of a file in the workspace.
        secret: its content; a machine that does not read it there does not see the workspace.
        declared_gpus: accelerators that the cluster gives away here.
    """
    try:
        sees_workspace = Path(proof).read_text(encoding="utf-8") == secret
    except OSError:
        sees_workspace = False
    found = [each.device for each in Accelerators({}).read()][:declared_gpus]
    names = range(len(found), declared_gpus)
    declared = [
        Device(index=index, name="declared GPU", memory_bytes=_UNKNOWN_BYTES, free_bytes=_UNKNOWN_BYTES)
        for index in names
    ]
    versions = {"python": platform.python_version(), "ziggurat": __version__}
    for name in _FRAMEWORKS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            pass
    disk = shutil.disk_usage(Path.home())
    return {
        "sees_workspace": sees_workspace,
        "cached": sorted(NodeCache(cache_of(node_folder(workspace) / node), 0).keys()),
        "devices": [asdict(device) for device in [*found, *declared]],
        "versions": versions,
        "memory_bytes": int(psutil.virtual_memory().total * _MEMORY_SHARE),
        "disk_free_bytes": disk.free,
        "disk_reserve_bytes": disk_reserve_bytes(disk.total),
    }
