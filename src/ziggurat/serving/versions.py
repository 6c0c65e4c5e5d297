"""Versions of models for serving, as folders of a workspace: name → versions → aliases.

``models/NAME/3/`` is an export, which never changes; ``models/NAME/aliases.json`` gives versions names, such as
``{"champion": 3}``. Whoever serves the workspace reads these files, and needs no database.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ziggurat.atomic import atomic_write_text, storage_errors
from ziggurat.errors import ConfigurationError, MissingEntryError, UnknownNameError
from ziggurat.layout import MODELS_FOLDER
from ziggurat.serving.manifest import MANIFEST_NAME, check_export

__all__ = ["CHAMPION", "ModelVersion", "ModelVersions"]

CHAMPION: Final = "champion"
"""Alias that a model is served by if nothing else is asked; the first version gets it."""

_ALIASES: Final = "aliases.json"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ALIAS: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,49}")


class ModelVersion(NamedTuple):
    """A version of a model.

    Args:
        name: of the model.
        version: number, from 1.
        folder: the export.
    """

    name: str
    version: int
    folder: Path


class ModelVersions:
    """The versions of all models of a workspace.

    Args:
        workspace: its folder.
    """

    def __init__(self, workspace: Path) -> None:
        self._folder = workspace / MODELS_FOLDER

    def names(self) -> list[str]:
        """Return the names of the models, in order."""
        found = self._folder.iterdir() if self._folder.is_dir() else ()
        return sorted(path.name for path in found if _NAME.fullmatch(path.name) and self.versions(path.name))

    def versions(self, name: str) -> list[ModelVersion]:
        """Return the versions of a model, oldest first; empty if there is none."""
        folder = self._folder / name
        if not _NAME.fullmatch(name) or not folder.is_dir():
            return []
        found = (path for path in folder.iterdir() if path.name.isdecimal())
        # A folder without a manifest is being made just now.
        numbers = sorted(int(path.name) for path in found if (path / MANIFEST_NAME).is_file())
        return [ModelVersion(name, number, folder / str(number)) for number in numbers]

    def aliases(self, name: str) -> Mapping[str, int]:
        """Return alias → version of a model.

        Raises:
            ConfigurationError: if the file of aliases is damaged.
        """
        path = self._folder / name / _ALIASES
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            return {str(alias): int(version) for alias, version in content.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                f"The aliases `{path}` of a model cannot be read: {str(error).rstrip('.')}.", advice="Restore the file."
            ) from error

    def resolve(self, name: str, which: str = "") -> ModelVersion:
        """Return the version of a number or alias.

        Args:
            name: of the model.
            which: a number, or an alias; empty for the champion, or else the newest version.

        Raises:
            UnknownNameError: if there is no such model, version or alias.
        """
        versions = {each.version: each for each in self.versions(name)}
        if not versions:
            raise UnknownNameError("model with versions", name, self.names())
        aliases = self.aliases(name)
        if not which:
            return versions.get(aliases.get(CHAMPION, -1), versions[max(versions)])
        number = int(which) if which.isascii() and which.isdecimal() and len(which) < 10 else aliases.get(which, -1)
        if number not in versions:
            raise UnknownNameError(f"version or alias of {name}", which, [*map(str, versions), *aliases])
        return versions[number]

    def add(self, name: str, export: Path) -> ModelVersion:
        """Copy an export as the next version of a model; the first version becomes the champion.

        Raises:
            ConfigurationError: if the name is none, or the folder is no export.
            ChangedExportError: if a file of the export was changed.
            StorageError: if it cannot be written.
        """
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"{name[:50]!r} is no name of a model: it has letters, digits, dots, dashes and "
                "underscores, since it is a part of URLs.",
                advice="Such as clothing-v2.",
            )
        check_export(export)
        folder = self._folder / name
        partial = folder / f".{os.getpid()}.partial"
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(partial, ignore_errors=True)
            try:
                shutil.copytree(export, partial, symlinks=True)
                check_export(partial)
                made = self._named(name, partial)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        if len(self.versions(name)) == 1:
            self.set_alias(name, CHAMPION, made.version)
        return made

    def set_alias(self, name: str, alias: str, version: int | None) -> None:
        """Let an alias name a version; None removes the alias. Servers that follow it switch within seconds.

        Raises:
            ConfigurationError: if the alias is no name.
            UnknownNameError: if there is no such version.
            MissingEntryError: if an alias is to be removed that is not there.
            StorageError: if it cannot be written.
        """
        if not _ALIAS.fullmatch(alias):
            raise ConfigurationError(
                f"{alias[:50]!r} is no alias: it begins with a letter, and has letters, digits, dashes and "
                "underscores.",
                advice="Such as champion or candidate.",
            )
        aliases = dict(self.aliases(name))
        if version is not None:
            aliases[alias] = self.resolve(name, str(version)).version
        elif aliases.pop(alias, None) is None:
            raise MissingEntryError(
                f"The model {name} has no alias `{alias}`.", advice=f"It has: {', '.join(aliases) or 'none'}."
            )
        text = json.dumps(aliases, indent=1, sort_keys=True) + "\n"
        atomic_write_text(self._folder / name / _ALIASES, text, "The aliases of a model")

    def _named(self, name: str, partial: Path) -> ModelVersion:
        """Give a folder the next number; another process may take the same at the same time."""
        number = max((each.version for each in self.versions(name)), default=0) + 1
        while True:
            target = self._folder / name / str(number)
            try:
                target.mkdir()  # only one process makes it; a folder that is there may be replaced while it is empty
            except FileExistsError:
                number += 1
                continue
            partial.rename(target)
            return ModelVersion(name, number, target)
