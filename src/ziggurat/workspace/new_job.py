"""New job folders: ids, folders that are made once, and what goes in before the worker starts."""

from __future__ import annotations

import itertools
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ziggurat.atomic import folder_mode, private_umask
from ziggurat.entities.names import check_name
from ziggurat.errors import JobError, NetworkCodeError, StorageError
from ziggurat.layout import JobFolder
from ziggurat.specs import FileNetwork, Spec, TrainSpec, save_spec
from ziggurat.workspace.validation import check_rotation_needs_square

__all__ = ["claim_folder", "create_job", "create_job_in", "new_job_ids", "new_job_names"]


def new_job_ids(now: float) -> Iterator[str]:
    """Yield ids for a new job, such as ``20261121-160512-9f3ac21e``; they sort by time.

    Args:
        now: seconds since 1970.
    """
    stem = time.strftime("%Y%m%d-%H%M%S", time.localtime(now))
    while True:
        yield f"{stem}-{secrets.token_hex(4)}"


def new_job_names(name: str, now: float) -> Iterator[str]:
    """Yield names for the folder of a new job: its name and the time, such as ``lenet-20261121-160512``.

    Args:
        name: what people call the job.
        now: seconds since 1970.
    """
    word = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "job"
    stem = f"{word}-{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}"
    yield stem
    for number in itertools.count(2):
        yield f"{stem}-{number}"


def claim_folder(parent: Path, names: Iterable[str], *, apart_from: Iterable[Path] = ()) -> Path:
    """Make a folder that was not there, and return it; no other process can get the same one.

    Args:
        parent: where; it is made where it is not there.
        names: the first one that is free is taken.
        apart_from: further folders in which the name must be free, such as those of datasets for a training.

    Raises:
        StorageError: where the folder cannot be made.
    """
    try:
        parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        parent.mkdir(exist_ok=True, mode=folder_mode(parent.parent))
        for name in names:
            folder = parent / name
            try:
                folder.mkdir(mode=folder_mode(parent))
            except FileExistsError:
                continue
            # After the folder is made: of two processes that take one name in two places, at least one sees the other.
            if any((place / name).exists() for place in apart_from):
                folder.rmdir()
                continue
            return folder
    except OSError as error:
        raise _not_made(parent, error) from error
    raise StorageError("A new job needs a name that is free.", received=f"none in {parent}", advice="Try again.")


def create_job(spec: Spec, path: Path) -> JobFolder:
    """Write the spec into a folder that a person chose; a network file is taken in: later edits do not change the job.

    Raises:
        JobError: where a job is there already.
        ConfigurationError: where its name has control characters.
        SpecError: where images that are no squares would be turned by quarters.
        NetworkCodeError: where the network file cannot be read.
        StorageError: where the folder cannot be made.
    """
    folder = JobFolder(path)
    if folder.spec.exists():
        raise JobError(
            "A new job must get a folder of its own.",
            received=f"{path} already contains a job",
            advice=f"Go on with that one by: ziggurat resume {path}. Or choose another folder.",
        )
    complete = _complete(spec)
    try:
        path.mkdir(parents=True, exist_ok=True, mode=folder_mode(path.parent))
    except OSError as error:
        raise _not_made(path, error) from error
    _write(complete, folder)
    return folder


def create_job_in(spec: Spec, parent: Path, names: Iterable[str], *, apart_from: Iterable[Path] = ()) -> JobFolder:
    """Make a new folder by one of the names, and write the spec; see ``create_job`` and ``claim_folder``."""
    complete = _complete(spec)  # first: what cannot be made leaves no folder
    folder = JobFolder(claim_folder(parent, names, apart_from=apart_from))
    try:
        _write(complete, folder)
    except BaseException:
        folder.path.rmdir()
        raise
    return folder


def _write(spec: Spec, folder: JobFolder) -> None:
    save_spec(spec, folder.spec)
    folder.spec.chmod(0o666 & ~private_umask(folder.path))


def _complete(spec: Spec) -> Spec:
    check_name(spec.name, "The name of a job")
    if not isinstance(spec, TrainSpec):
        return spec
    check_rotation_needs_square(spec)
    return _with_network_text(spec)


def _not_made(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"The job folder {path} must be made.",
        received=f"{error.strerror} (errno {error.errno})",
        advice="Choose another folder, or mend the rights of this one.",
    )


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
