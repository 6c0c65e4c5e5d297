"""Shared state of one command-line call: settings, output, and import of studio modules."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ziggurat.cli.output import Output
from ziggurat.errors import MissingDependencyError
from ziggurat.settings import Settings, load_settings

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["Application", "studio_module"]

_PACKAGES: Final = {"argon2": "argon2-cffi", "multipart": "python-multipart"}
"""Module → name of its package, where they differ."""


class Application:
    """One call of ``ziggurat``; ``main`` sets ``as_json`` and ``wants_traceback`` from its words.

    Args:
        worker_command: what starts a worker, for tests; the usual one where it is not given.
    """

    def __init__(self, *, worker_command: Sequence[str] | None = None) -> None:
        self.worker_command = worker_command
        self.as_json = False
        self.wants_traceback = False
        self._settings: Settings | None = None

    def load_settings(self, file: Path | None, flags: Mapping[str, Any]) -> Settings:
        """Read the settings once, before the command."""
        self._settings = load_settings(file=file, flags=flags)
        return self._settings

    def use_workspace(self, workspace: Path) -> None:
        """Take another workspace than the settings say, for the rest of this call."""
        # A child process inherits only settings whose origin is not the default.
        origins = {**self.settings.origins, "workspace": "--workspace"}
        self._settings = dataclasses.replace(self.settings, workspace=workspace, origins=origins)

    @property
    def settings(self) -> Settings:
        """The settings of this call."""
        return self._settings or load_settings()

    @property
    def debug(self) -> bool:
        """Whether errors show their traceback. Asked also where the settings themselves were wrong."""
        return self.wants_traceback or (self._settings is not None and self._settings.debug)

    @property
    def output(self) -> Output:
        """Where the command writes."""
        color = self._settings is not None and self._settings.use_color(sys.stdout)
        return Output(sys.stdout, sys.stderr, as_json=self.as_json, color=color)


def studio_module(name: str) -> Any:
    """Import a module of Ziggurat that needs the extra ``studio``; other commands must work without it.

    Raises:
        MissingDependencyError: where a package is not installed.
    """
    try:
        module: ModuleType = import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "ziggurat"):
            raise
        raise MissingDependencyError(_PACKAGES.get(missing, missing), extra="studio", purpose="the studio") from None
    return module
