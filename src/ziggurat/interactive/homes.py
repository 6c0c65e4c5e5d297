"""Choice of the home of a Python session: a studio, or a folder of this machine."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

from ziggurat.client import Client
from ziggurat.errors import UsageError, ZigguratError
from ziggurat.interactive.folder_home import FolderHome
from ziggurat.interactive.home import Home
from ziggurat.interactive.studio_home import StudioHome
from ziggurat.settings import load_settings
from ziggurat.workspace.server_process import running_server

__all__ = ["Connection", "connect", "current_home", "forget_home"]

_chosen: Final[list[Home]] = []
"""Home of this session; empty until one is needed or chosen."""


class Connection:
    """Home that a session works in.

    Args:
        home: the home.
    """

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def title(self) -> str:
        """Address of the studio, or path of the workspace."""
        return self._home.title

    def __repr__(self) -> str:
        kind = "Studio" if isinstance(self._home, StudioHome) else "Workspace"
        return f"{kind}({self.title!r})"


def connect(place: str | Path | None = None, *, token: str | None = None) -> Connection:
    """Choose where runs and datasets are from now on.

    Without a call of it, a session works in the studio that ``ZIGGURAT_SERVER`` or the settings file names, or else in
    the workspace of the settings, without a studio.

    Args:
        place: address of a studio, as ``ziggurat up`` prints it, or the folder of a workspace. By default the studio
            of the settings, or the one that serves the workspace now, or else the workspace.
        token: API token for the studio; that of the settings by default.

    Raises:
        UsageError: if no studio answers at the address.
    """
    home = _home(place, token)
    _chosen[:] = [home]
    return Connection(home)


def current_home() -> Home:
    """Return the home of this session."""
    if not _chosen:
        settings = load_settings()
        _chosen.append(_studio(settings.server, None) if settings.server else FolderHome(settings))
    return _chosen[0]


def forget_home() -> None:
    """Choose the home anew when one is needed next."""
    _chosen.clear()


def _home(place: str | Path | None, token: str | None) -> Home:
    settings = load_settings()
    if isinstance(place, str) and "://" in place:
        return _studio(place, token)
    if place is not None:
        folder = Path(place).expanduser().absolute()
        if folder.exists() and not folder.is_dir():
            raise UsageError(
                f"`{place}` is a file.", advice="Name the folder of a workspace, or the address of a studio."
            )
        # A child process inherits only settings whose origin is not the default.
        origins = {**settings.origins, "workspace": "connect"}
        return FolderHome(dataclasses.replace(settings, workspace=folder, origins=origins))
    if settings.server:
        return _studio(settings.server, token)
    server = running_server(settings.workspace.expanduser())
    return _studio(server.address, token) if server is not None and server.is_here else FolderHome(settings)


def _studio(address: str, token: str | None) -> StudioHome:
    client = Client(address, token)
    try:
        client.version()  # now, and not in the middle of something
    except ZigguratError:
        client.close()
        raise
    return StudioHome(client)
