"""JSON of a job as in DIGITS 6."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from ziggurat import __version__
from ziggurat.entities import Job
from ziggurat.workspace.studio import Studio

__all__ = ["brief_shape", "dataset_shape", "model_shape", "status_of", "status_shape"]

_STATUSES: Final[Mapping[str, str]] = {
    "queued": "Initialized",
    "running": "Running",
    "stopping": "Running",
    "done": "Done",
    "failed": "Error",
    "stopped": "Aborted",
}


def status_of(job: Job) -> str:
    """Return DIGITS's name of a job's state; one that waits for another job, or for a device, is ``Waiting``."""
    return "Waiting" if job.state == "queued" and job.reason else _STATUSES[job.state]


def brief_shape(studio: Studio, job: Job) -> dict[str, Any]:
    """Return what lists say of a job: ``id``, ``name``, ``status``, and of a model ``dataset_id``."""
    shape: dict[str, Any] = {"id": job.id, "name": job.name, "status": status_of(job)}
    return shape if job.kind == "dataset" else {**shape, "dataset_id": _dataset_id(studio, job)}


def status_shape(job: Job) -> dict[str, Any]:
    """Return ``status``, ``name``, ``type`` and ``error`` of a job."""
    error = job.error["message"] if job.error and "message" in job.error else job.reason
    kind = "Image Classification Dataset" if job.kind == "dataset" else "Image Classification Model"
    return {
        "status": status_of(job),
        "name": job.name,
        "type": kind,
        "error": error if job.state == "failed" else "",
    }


def dataset_shape(studio: Studio, job: Job) -> dict[str, Any]:
    """Return what DIGITS says of a dataset; counts are there when it is done.

    Width and height are what they are called: DIGITS has them the wrong way round.
    """
    shape = {"id": job.id, "job id": job.id, "name": job.name, "status": status_of(job), "directory": job.folder}
    shape |= {"username": job.owner, "notes": job.notes, "ParseFolderTasks": [], "CreateDbTasks": []}
    if job.state != "done":
        return shape
    found = studio.datasets.describe(job.id)
    counts, image = found["splits"], found.get("image") or {}
    parse = {"name": "Parse Folder", "label_count": len(found["classes"])}
    parse |= {f"{split}_count": counts.get(split, 0) for split in ("train", "val", "test")}
    return {
        **shape,
        "ParseFolderTasks": [parse],
        "CreateDbTasks": [_database(split, count, image, job.spec) for split, count in counts.items()],
    }


def model_shape(studio: Studio, job: Job) -> dict[str, Any]:
    """Return what DIGITS says of a model; ``snapshots`` are the epochs of its checkpoints."""
    checkpoints = studio.jobs.checkpoints(job.id)
    size = (job.spec.get("preprocessing") or {}).get("size")
    return {
        "id": job.id,
        "job id": job.id,
        "name": job.name,
        "status": status_of(job),
        "username": job.owner,
        "notes": job.notes,
        "creation time": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(job.created)),
        "dataset_id": _dataset_id(studio, job),
        "digits version": f"ziggurat {__version__}",
        "framework": job.framework,
        "directory": job.folder,
        "image dimensions": list(size) if size else [],
        "network file": job.network,
        "snapshot file": checkpoints[-1].name if checkpoints else "",
        "snapshots": [_whole(each.epoch) for each in checkpoints],
    }


def _dataset_id(studio: Studio, job: Job) -> str:
    folder = str((job.spec.get("data") or {}).get("source", ""))
    root = str(studio.root / "datasets") + "/"
    return folder.removeprefix(root) if folder.startswith(root) else next(iter(job.depends_on), "")


def _database(split: str, count: int, image: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"Create DB ({split})",
        "entries": count,
        "image_width": image.get("width_px"),
        "image_height": image.get("height_px"),
        "image_channels": image.get("channels"),
        "backend": spec.get("store", "lmdb"),
        "encoding": image.get("encoding", ""),
        "compression": "none",
    }


def _whole(epoch: float) -> float | int:
    return int(epoch) if epoch == int(epoch) else epoch
