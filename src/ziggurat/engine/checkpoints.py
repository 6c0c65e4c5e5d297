"""Checkpoints on disk: a kill at any moment leaves every complete checkpoint loadable, averaged weights included."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import google_crc32c
import numpy as np

from ziggurat.atomic import check_fence
from ziggurat.engine.run_state import RunState
from ziggurat.errors import CheckpointError, MissingCheckpointError, StorageError
from ziggurat.layout import CHECKPOINT_NAMES, CheckpointFiles, checkpoint_name, checkpoint_step

__all__ = ["AVERAGES", "CheckpointInfo", "CheckpointStore", "with_averages"]

_FORMAT: Final = 1
_TEMPORARY: Final = ".tmp-"
_REPLACED: Final = ".old-"


@dataclass(frozen=True)
class CheckpointInfo:
    """What the folder of a checkpoint tells without reading its arrays.

    Args:
        name: folder name.
        path: folder.
        step: ``global_step``.
        size_bytes: size of its files.
    """

    name: str
    path: Path
    step: int
    size_bytes: int


class CheckpointStore:
    """The checkpoints of one job. One process writes; any number may read.

    A checkpoint is written into a temporary folder, forced to the disk, and renamed. Opening for writing mends what a
    killed writer left. Arrays are stored without pickle.

    Args:
        folder: the folder of checkpoints; made by the first save.
        writable: whether this process is the one that writes.
    """

    def __init__(self, folder: Path, *, writable: bool = True) -> None:
        self.folder = folder
        if writable and folder.is_dir():
            self._mend()

    def save(self, state: RunState) -> CheckpointInfo:
        """Write a checkpoint; one of the same step is replaced.

        Raises:
            StorageError: where the disk is full or not writable; what was there stays.
        """
        name = checkpoint_name(state.meta["global_step"])
        temporary = self.folder / f"{_TEMPORARY}{name}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir()
            _write_files(CheckpointFiles(temporary), state)
            self._put_in_place(temporary, self.folder / name)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            raise StorageError(
                f"A checkpoint must be written to {self.folder}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Free space or mend the folder's rights, then resume the job: the last checkpoint is whole.",
            ) from error
        info = _info(self.folder / name)
        assert info is not None, "only its writer removes a checkpoint"
        return info

    def list(self) -> list[CheckpointInfo]:
        """Return the complete checkpoints, oldest step first."""
        if not self.folder.is_dir():
            return []
        found = (_info(path) for path in self.folder.iterdir() if checkpoint_step(path.name) is not None)
        return sorted((info for info in found if info is not None), key=lambda info: info.step)

    def load(self, name: str) -> RunState:
        """Read one checkpoint and prove its checksums.

        Args:
            name: a folder name (``step-00000042``) or a given name (``best``).

        Raises:
            CheckpointError: where it is not there, is damaged, or is of a newer release.
        """
        name = self.names().get(name, name)
        files = CheckpointFiles(self.folder / name)
        if not files.state.is_file():
            known = ", ".join([info.name for info in self.list()] + sorted(self.names())) or "none"
            raise MissingCheckpointError(
                f"There is no checkpoint `{name}` in {self.folder}.", advice=f"There are: {known}."
            )
        try:
            content = json.loads(files.state.read_bytes())
            _check_format(content, files.path)
            _check_sums(content["files"], files.path)
            return RunState(content["meta"], _read_arrays(files.arrays))
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise _damaged(files.path, str(error)) from error

    def latest(self) -> tuple[CheckpointInfo, RunState, list[CheckpointError]] | None:
        """Return the newest checkpoint that loads, with the errors of newer ones that do not.

        Raises:
            CheckpointError: where there are checkpoints and none of them loads.
        """
        problems: list[CheckpointError] = []
        for info in reversed(self.list()):
            try:
                return info, self.load(info.name), problems
            except CheckpointError as error:
                problems.append(error)
        if problems:
            raise problems[0]
        return None

    def remove(self, name: str) -> None:
        """Remove a checkpoint; one that is not there is no error."""
        path = self.folder / name
        if path.is_dir():
            # Renamed first: a half-removed checkpoint must not look complete.
            doomed = self.folder / f"{_TEMPORARY}removed-{name}"
            shutil.rmtree(doomed, ignore_errors=True)
            check_fence()
            path.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)

    def remove_after(self, step: int) -> list[str]:
        """Remove the checkpoints of later steps than ``step`` (a resumed job makes them again); return their names.

        Names that pointed at them go first.
        """
        later = [info.name for info in self.list() if info.step > step]
        names = self.names()
        kept = {given: name for given, name in names.items() if name not in later}
        if kept != names:
            self._write_names(kept)
        for name in later:
            self.remove(name)
        return later

    def give_name(self, given: str, name: str) -> None:
        """Let ``given`` (``best``, ``min-validation_error``) mean the checkpoint ``name`` from now on, atomically."""
        self._write_names({**self.names(), given: name})

    def names(self) -> dict[str, str]:
        """Return given name → checkpoint; none where the file is damaged: no checkpoint is lost with it."""
        try:
            content = json.loads((self.folder / CHECKPOINT_NAMES).read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _write_names(self, names: Mapping[str, str]) -> None:
        content = json.dumps(names, indent=1).encode()
        temporary = self.folder / f"{_TEMPORARY}{CHECKPOINT_NAMES}"
        try:
            _write_synced(temporary, content)
            check_fence()
            temporary.replace(self.folder / CHECKPOINT_NAMES)
            _sync_folder(self.folder)
        except OSError as error:
            raise StorageError(
                f"The names of checkpoints must be written to {self.folder}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Free space or mend the folder's rights, then resume the job.",
            ) from error

    def _put_in_place(self, temporary: Path, final: Path) -> None:
        replaced = final.with_name(f"{_REPLACED}{final.name}")
        check_fence()
        if final.exists():
            shutil.rmtree(replaced, ignore_errors=True)
            final.rename(replaced)
        temporary.rename(final)
        _sync_folder(self.folder)
        shutil.rmtree(replaced, ignore_errors=True)

    def _mend(self) -> None:
        """Undo what a killed writer left: half-written folders go, a replaced one comes back if its heir never came."""
        for path in self.folder.iterdir():
            if path.name.startswith(_REPLACED):
                final = path.with_name(path.name.removeprefix(_REPLACED))
                if final.exists():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.rename(final)
            elif path.name.startswith(_TEMPORARY):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _write_files(files: CheckpointFiles, state: RunState) -> None:
    with files.arrays.open("wb") as file:
        # One member an array; names may hold slashes, and the zip format stores them as they are.
        members: dict[str, Any] = _numbered(state.arrays)
        np.savez(file, **members)
        file.flush()
        os.fsync(file.fileno())
    content = {
        "format": _FORMAT,
        "meta": state.meta,
        "files": {files.arrays.name: _checksum(files.arrays)},
    }
    _write_synced(files.state, json.dumps(content).encode())
    _sync_folder(files.path)


def _numbered(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    # Keyword names of np.savez must not collide with its own ("file"), so the names themselves go into one array.
    numbered = {f"a{number}": np.asarray(array) for number, array in enumerate(arrays.values())}
    for name, array in zip(arrays, numbered.values(), strict=True):
        if array.dtype.hasobject:  # it would be pickled, and never be read back
            raise CheckpointError(
                "The arrays of a program's state hold numbers or text.",
                received=f"`{name}` of type {array.dtype}",
                advice="Return it from `state()` as an array of numbers.",
            )
    return {"names": np.array(list(arrays), dtype=np.str_), **numbered}


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as content:
        names = [str(name) for name in content["names"]]
        return {name: content[f"a{number}"] for number, name in enumerate(names)}


def _check_format(content: Mapping[str, Any], path: Path) -> None:
    if content["format"] > _FORMAT:
        raise CheckpointError(
            f"The checkpoint {path} has the format {content['format']}; this release reads {_FORMAT} and older.",
            advice="Use a newer release of Ziggurat.",
        )


def _check_sums(sums: Mapping[str, str], path: Path) -> None:
    for name, expected in sums.items():
        if _checksum(path / name) != expected:
            raise _damaged(path, f"the checksum of {name} is another")


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"The checkpoint {path} is damaged: {reason}.", advice="Resume from an older one; this one can be removed."
    )


def _checksum(path: Path) -> str:
    checksum = google_crc32c.Checksum()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum.update(block)
    return checksum.hexdigest().decode()


def _info(path: Path) -> CheckpointInfo | None:
    """Return what a folder tells; None where the writer removes it at this moment."""
    try:
        size_bytes = sum(part.stat().st_size for part in path.iterdir())
    except FileNotFoundError:
        return None
    return CheckpointInfo(path.name, path, checkpoint_step(path.name) or 0, size_bytes)


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


AVERAGES: Final = "ziggurat/averages/"
"""In front of a weight's name: the array of its average."""


def with_averages(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of a checkpoint, each weight that has an average replaced by it.

    So a network that predicts, is evaluated, exported or trained further starts from the averages. A training that
    resumes takes the arrays as they are. Doing it twice changes nothing more.

    Args:
        arrays: name → array, as a program's ``state()`` gave them.
    """
    return {name: arrays.get(f"{AVERAGES}{name}", array) for name, array in arrays.items()}
