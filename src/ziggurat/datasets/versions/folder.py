"""Folder of a version while it is built: under a temporary name until complete, with shared record files.

A store never changes once it is written, so a version shares the files of its source datasets through hard links.
They take no space and survive the removal of the other name. On a file system without hard links, the files are
copied.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ziggurat.atomic import storage_errors, sync_path
from ziggurat.entities.rights import folder_mode
from ziggurat.errors import DataError, StorageError
from ziggurat.records.manifest import StoreNote
from ziggurat.records.stores import create_records, open_records
from ziggurat.records.tfrecord import index_path

__all__ = ["VersionFolder", "share_file"]

_BLOCK_BYTES: Final = 1 << 20


class VersionFolder:
    """A folder in the making; use it in a ``with`` statement, at whose end it gets its name or is deleted.

    A process that is killed leaves ``.NAME.partial-…`` beside, which nobody takes for a dataset and anybody may
    delete.

    Args:
        final: the folder's name when it is whole.

    Raises:
        StorageError: where something stands at ``final``, or the disk is full or refuses (also from every method).
    """

    def __init__(self, final: Path) -> None:
        self.final = final
        if os.path.lexists(final):
            raise _occupied(final)
        self.path = final.parent / f".{final.name}.partial-{os.getpid()}-{secrets.token_hex(4)}"
        self._brought: dict[tuple[str, str], StoreNote] = {}
        with storage_errors(final):
            self.path.mkdir(parents=True, mode=folder_mode(final.parent))

    def bring(self, folder: Path, store: StoreNote, *, prefix: str = "") -> StoreNote:
        """Bring a store of another dataset here, once; return its note.

        Args:
            folder: of the other dataset.
            store: its note there.
            prefix: put before its keys; the records are written anew then, as keys stand in the store.

        Raises:
            DataError: where the file is not there, or not of the size that its note says.
        """
        asked = (store.sha256, prefix)
        if asked not in self._brought:
            source = folder / store.path
            if not source.is_file() or source.stat().st_size != store.size_bytes:
                raise DataError(
                    "A version is made of datasets that have all their files, as they were written.",
                    received=f"`{source}`, which is {'of another size' if source.is_file() else 'not there'}",
                    advice="Bring it back, or create the dataset again.",
                )
            target = self._free(store.path)
            with storage_errors(self.final):
                if prefix:
                    self._brought[asked] = _with_prefix(source, target, store, prefix, self.path)
                else:
                    share_file(source, target)
                    if index_path(source).exists():  # the side file of a TFRecord file
                        share_file(index_path(source), index_path(target))
                    name = target.relative_to(self.path).as_posix()
                    self._brought[asked] = replace(store, path=name)
        return self._brought[asked]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._publish()
        finally:
            shutil.rmtree(self.path, ignore_errors=True)

    def _publish(self) -> None:
        with storage_errors(self.final):
            for path in [*self.path.rglob("*"), self.path]:
                sync_path(path)
            if os.path.lexists(self.final):
                raise _occupied(self.final)
            os.rename(self.path, self.final)  # fails where somebody else made a dataset of that name meanwhile
            sync_path(self.final.parent)

    def _free(self, name: str) -> Path:
        """Return a path for a store of a name: its own, or where that is taken, one with a number."""
        wanted = self.path / name
        target, number = wanted, 1
        while target.exists():
            number += 1
            target = wanted.with_name(f"{wanted.stem}-{number}{wanted.suffix}")
        with storage_errors(self.final):
            target.parent.mkdir(parents=True, exist_ok=True)
        return target


def share_file(source: Path, target: Path) -> None:
    """Give a file another name, or copy it where the file system does not permit that."""
    try:
        os.link(source, target)
    except OSError as refused:
        if refused.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        shutil.copyfile(source, target)


def _with_prefix(source: Path, target: Path, store: StoreNote, prefix: str, folder: Path) -> StoreNote:
    with open_records(source) as reader, create_records(target, store.record_format) as writer:
        for key, value in reader:
            writer.append(prefix + key, value)
    digest = hashlib.sha256()
    with target.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return StoreNote(
        path=target.relative_to(folder).as_posix(),
        record_format=store.record_format,
        count=store.count,
        size_bytes=target.stat().st_size,
        sha256=digest.hexdigest(),
    )


def _occupied(path: Path) -> StorageError:
    return StorageError(
        "A version is made in a folder that does not exist yet; nothing is ever overwritten.",
        received=f"`{path}`, which exists",
        advice="Choose another folder.",
        details={"path": str(path)},
    )
