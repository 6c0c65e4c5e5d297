"""Verbs for this installation: ``plugins``, ``completion``, ``version``."""

from __future__ import annotations

import platform

import click
from click.shell_completion import get_completion_class

from ziggurat import __version__
from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.output import table
from ziggurat.cli.word_completion import complete_among
from ziggurat.errors import UnknownNameError
from ziggurat.plugins import GROUPS, available

__all__ = ["completion", "plugins", "version"]

_SHELLS = ("bash", "fish", "zsh")


@click.group(cls=Group)
def plugins() -> None:
    """List backends, callbacks, monitors and more."""


@plugins.command("list")
@click.argument("groups", nargs=-1, metavar="[GROUP]...", shell_complete=complete_among(lambda: GROUPS))
@click.pass_obj
def plugins_list(application: Application, groups: tuple[str, ...]) -> None:
    """List what is installed, importing none of it. GROUP is backends, callbacks, monitors, …"""
    found = [plugin for group in groups or GROUPS for plugin in available(group)]
    rows = [(each.group, each.name, f"{each.distribution} {each.version}", each.target) for each in found]
    content = [vars(each) | {"built_in": each.is_built_in} for each in found]
    application.output.document(content, table(rows, ("group", "name", "from", "target")))


@click.command(cls=Command)
@click.argument("shell", shell_complete=complete_among(lambda: _SHELLS))
@click.pass_obj
def completion(application: Application, shell: str) -> None:
    """Print the completion script for SHELL (bash, fish, zsh).

    For bash: eval "$(ziggurat completion bash)" in ~/.bashrc.
    """
    found = get_completion_class(shell) if shell in _SHELLS else None
    if found is None:
        raise UnknownNameError("shell", shell, _SHELLS)
    source = found(click.Command("ziggurat"), {}, "ziggurat", "_ZIGGURAT_COMPLETE").source()
    application.output.document({"shell": shell, "source": source}, source)


@click.command(cls=Command)
@click.pass_obj
def version(application: Application) -> None:
    """Print the version."""
    content = {"ziggurat": __version__, "python": platform.python_version()}
    application.output.document(content, f"ziggurat {__version__}")
