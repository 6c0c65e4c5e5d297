"""Access of commands to the workspace; a separate module, so that the help of ``ziggurat`` need not import it."""

from __future__ import annotations

from ziggurat.cli.application import Application
from ziggurat.workspace import Workspace

__all__ = ["open_workspace"]


def open_workspace(application: Application) -> Workspace:
    """Return the workspace of this call."""
    if application.worker_command is None:
        return Workspace(application.settings)
    return Workspace(application.settings, worker_command=application.worker_command)
