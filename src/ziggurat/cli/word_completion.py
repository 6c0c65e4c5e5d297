"""Completion of words that are known without a studio: choices, and names in the folder of the workspace.

It imports nothing heavy, for commands that start quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from ziggurat.errors import ZigguratError
from ziggurat.settings import load_settings

__all__ = ["Complete", "complete_among", "complete_in_workspace", "given_workspace", "workspace_of"]

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
"""What completes a parameter, as click takes it."""


def complete_among(known: Callable[[], Iterable[str]]) -> Complete:
    """Return what completes the words that a function returns."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with suppress(ZigguratError):
            return [CompletionItem(each) for each in sorted(known()) if each.startswith(incomplete)]
        return []

    return complete


def complete_in_workspace(names: Callable[[Path], Iterable[str]]) -> Complete:
    """Return what completes names in the folder of the workspace."""

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with suppress(ZigguratError, OSError):
            return [
                CompletionItem(each) for each in sorted(names(workspace_of(context))) if each.startswith(incomplete)
            ]
        return []

    return complete


def workspace_of(context: click.Context) -> Path:
    """Return the folder of the workspace of the call that is completed."""
    return load_settings(flags={"workspace": given_workspace(context)}).workspace.expanduser()


def given_workspace(context: click.Context) -> Path | None:
    """Return the workspace that its options name; None if they do not."""
    given = context.find_root().params.get("workspace")
    return Path(given) if given else None
