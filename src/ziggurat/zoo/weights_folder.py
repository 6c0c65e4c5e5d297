"""Pretrained weights in a folder of a workspace: an entry is complete or absent, and is checked when it is used."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ziggurat.atomic import storage_errors, sync_path
from ziggurat.entities.leftovers import owner_tag, remove_leftovers
from ziggurat.entities.pretrained_weights import PretrainedWeights
from ziggurat.errors import CheckpointError, MissingEntryError, UsageError
from ziggurat.layout import WeightsFiles
from ziggurat.zoo.weight_files import check_weights_file, file_sha256, load_weights_file

__all__ = ["WeightsFolder", "check_weights_name"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PARTIAL: Final = ".partial-"


class WeightsFolder:
    """The pretrained weights of a workspace. Processes may use it at the same time.

    Args:
        path: the folder; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> list[PretrainedWeights]:
        """Return the entries by name; one whose description cannot be read is left out."""
        try:
            names = [each.name for each in os.scandir(self.path) if _NAME.fullmatch(each.name) and each.is_dir()]
        except FileNotFoundError:
            return []
        found = (self._read(name) for name in sorted(names, key=lambda name: (name.casefold(), name)))
        return [each for each in found if isinstance(each, PretrainedWeights)]

    def has(self, name: str) -> bool:
        """Return whether there is an entry of that name."""
        return bool(_NAME.fullmatch(name)) and self._files(name).entry.is_file()

    def get(self, name: str) -> PretrainedWeights:
        """Return an entry.

        Raises:
            MissingEntryError: if there is none of that name.
            CheckpointError: if its description is damaged.
        """
        if not self.has(name):
            known = ", ".join(f"`{each.name}`" for each in self.all()[:20])
            raise MissingEntryError(
                f"There are no pretrained weights `{name[:100]}` in this workspace.",
                advice=f"Known: {known}." if known else "Add a file with `ziggurat weights add FILE`.",
            )
        found = self._read(name)
        if isinstance(found, PretrainedWeights):
            return found
        raise CheckpointError(
            f"The description of pretrained weights, `{self._files(name).entry}`, cannot be read: {found}.",
            advice=f"Remove them with `ziggurat weights delete {name}`, and add the file again.",
        )

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return published name → array, after the checksum was compared.

        Raises:
            MissingEntryError: if there is no entry of that name.
            CheckpointError: if the file is not the one that was added.
        """
        entry, path = self.get(name), self._files(name).arrays
        try:
            found = file_sha256(path)
        except OSError as error:
            found = error.strerror or str(error)
        if found != entry.sha256:
            raise CheckpointError(
                f"The file `{path}` is not the one that was added: its checksum is {found}, and not {entry.sha256}.",
                advice=f"Remove them with `ziggurat weights delete {name}`, and add the file again.",
            )
        return load_weights_file(path)

    def remove_partial(self) -> None:
        """Delete the folders that were never completed, because the process that made them was killed."""
        remove_leftovers(self.path, _PARTIAL)

    @contextmanager
    def adding(self) -> Iterator[Path]:
        """Give an empty folder for the files of a new entry; it is deleted at the end, unless ``place`` took it."""
        with storage_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self.remove_partial()
            folder = self.path / f"{_PARTIAL}{owner_tag()}-{secrets.token_hex(8)}"
            folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def place(self, folder: Path, entry: PretrainedWeights) -> PretrainedWeights:
        """Make an entry of a folder from ``adding`` that holds the file of weights; return it.

        Args:
            folder: is renamed.
            entry: checksum, size and counts are those of the file, whatever it says.

        Raises:
            CheckpointError: if the file is damaged.
            UsageError: if the name is not valid or taken.
            StorageError: if it cannot be written.
        """
        check_weights_name(entry.name)
        files = WeightsFiles(folder)
        content = check_weights_file(files.arrays)
        whole = replace(
            entry,
            sha256=file_sha256(files.arrays),
            size_bytes=files.arrays.stat().st_size,
            arrays=len(content.shapes),
            parameters=content.parameters,
        )
        target = self.path / entry.name
        with storage_errors(target):
            files.entry.write_text(json.dumps(whole.as_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            for path in (files.arrays, files.entry, folder):
                sync_path(path)
            self.check_free(entry.name)
            try:
                folder.rename(target)  # never replaces a folder with files in it
            except OSError:
                self.check_free(entry.name)
                raise
            sync_path(self.path)
        return whole

    def check_free(self, name: str) -> None:
        """Raise where a name cannot be that of a new entry.

        Raises:
            UsageError: if it is not valid or taken.
        """
        check_weights_name(name)
        if (self.path / name).exists():
            raise UsageError(
                f"There are pretrained weights of the name `{name}` already.",
                advice="Choose another name, or remove the other weights first.",
                details={"field": "name"},
            )

    def path_of(self, name: str) -> Path:
        """Return the folder of an entry, also of a damaged one.

        Raises:
            MissingEntryError: if there is none of that name.
        """
        if not _NAME.fullmatch(name) or not (self.path / name).is_dir():
            self.get(name)
        return self.path / name

    def remove(self, name: str) -> None:
        """Delete an entry for good.

        Raises:
            MissingEntryError: if there is none of that name.
        """
        place = self.path_of(name)
        gone = self.path / f"{_PARTIAL}{owner_tag()}-{secrets.token_hex(8)}"
        with storage_errors(place):
            place.rename(gone)  # so that none sees half of it
        shutil.rmtree(gone, ignore_errors=True)

    def _files(self, name: str) -> WeightsFiles:
        return WeightsFiles(self.path / name)

    def _read(self, name: str) -> PretrainedWeights | str:
        """Return an entry, or what is wrong with its description."""
        try:
            content = json.loads(self._files(name).entry.read_text(encoding="utf-8"))
            return replace(PretrainedWeights.of_json(content), name=name)
        except (OSError, ValueError, RecursionError) as error:
            return str(error)


def check_weights_name(name: str) -> None:
    """Raise where a text cannot be the name of pretrained weights: it is part of paths and addresses.

    Raises:
        UsageError: it says which names are valid.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:100]!r} is no name of pretrained weights: it has 1 to 100 letters, digits, dots, "
            "dashes and underscores.",
            advice="Begin with a letter or digit, as in `resnet18`.",
            details={"field": "name"},
        )
