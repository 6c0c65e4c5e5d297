"""Owns making a job folder: where it stands, what goes in before the worker starts."""

from __future__ import annotations

import re
import time
from pathlib import Path

from ziggurat.errors import JobError, NetworkCodeError, StorageError
from ziggurat.layout import JobFolder
from ziggurat.specs import FileNetwork, Spec, TrainSpec, save_spec
from ziggurat.workspace.quarter_turns import refuse_turned_oblongs

__all__ = ["create_job", "new_job_path"]


def new_job_path(jobs: Path, name: str, now: float) -> Path:
    """Return a folder for a new job that is not there yet: its name and the time, such as ``lenet-20261121-160512``.

    Args:
        jobs: folder of all jobs.
        name: what people call the job.
        now: seconds since 1970.
    """
    word = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "job"
    stem = f"{word}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}"
    path, number = jobs / stem, 1
    while path.exists():
        number += 1
        path = jobs / f"{stem}-{number}"
    return path


def create_job(spec: Spec, path: Path) -> JobFolder:
    """Make the folder and write the spec; a network file is taken in, so that a later edit does not change the job.

    Raises:
        JobError: where a job is there already.
        SpecError: where pictures that are no squares would be turned by quarters.
        NetworkCodeError: where the network file cannot be read.
        StorageError: where the folder cannot be made.
    """
    folder = JobFolder(path)
    if folder.spec.exists():
        raise JobError(
            "A new job must get a folder of its own.",
            received=f"{path}, which holds a job",
            advice=f"Go on with that one by: ziggurat resume {path}. Or choose another folder.",
        )
    if isinstance(spec, TrainSpec):
        refuse_turned_oblongs(spec)
    complete = _with_network_text(spec) if isinstance(spec, TrainSpec) else spec
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The job folder {path} must be made.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Choose another folder, or mend the rights of this one.",
        ) from error
    save_spec(complete, folder.spec)
    return folder


def _with_network_text(spec: TrainSpec) -> TrainSpec:
    network = spec.network
    if not isinstance(network, FileNetwork) or network.text is not None:
        return spec
    path = Path(network.path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkCodeError(
            "The network file must be readable Python text.",
            received=f"{path}: {error}",
            advice="Check the path; a relative one starts at the current folder.",
            details={"file": str(path)},
        ) from None
    taken = network.model_copy(update={"path": str(path.resolve()), "text": text})
    return spec.model_copy(update={"network": taken})
