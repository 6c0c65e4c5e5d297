"""Arguments that take the folder of a job or a dataset, or the id or name of one of the workspace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from ziggurat.cli.application import Application
from ziggurat.cli.value_completion import complete_folder
from ziggurat.workspace.folder_names import named_folder

__all__ = ["DATASET", "JOB", "JOB_OR_FILE", "JobPlace"]


class JobPlace(click.Path):
    """A path, or the id or name of a job of the workspace.

    Args:
        kind: of the job; empty for all.
        suggests: whether similar names are an error; not where a path may be of what is no job.
    """

    name = "folder"

    def __init__(self, kind: str = "", *, suggests: bool = True) -> None:
        super().__init__(path_type=Path)
        self._kind = kind
        self._suggests = suggests

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; a text that is none there becomes the path of the job of that id or name.

        Raises:
            UsageError: if several jobs have the name.
            ZigguratError: if only similar ones are there.
        """
        path = super().convert(value, param, ctx)
        if path.exists() or ctx is None or not isinstance(ctx.obj, Application):
            return path
        workspace = ctx.obj.settings.workspace.expanduser()
        return named_folder(workspace, os.fspath(value), self._kind, suggests=self._suggests) or path

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return ids and names of the workspace that begin with a text, and its paths."""
        return complete_folder(ctx, incomplete, self._kind)


JOB = JobPlace()
DATASET = JobPlace("dataset")
JOB_OR_FILE = JobPlace(suggests=False)
