"""Verbs for this installation: ``settings``, ``plugins``, ``completion``, ``version``."""

from __future__ import annotations

import platform

import click
from click.shell_completion import get_completion_class

from ziggurat import __version__
from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.output import table
from ziggurat.errors import UnknownNameError
from ziggurat.plugins import GROUPS, available
from ziggurat.settings import describe_settings

__all__ = ["completion", "plugins", "settings", "version"]

_SHELLS = ("bash", "fish", "zsh")


@click.group(cls=Group)
def settings() -> None:
    """Show the settings and where they come from."""


@settings.command("show")
@click.pass_obj
def settings_show(application: Application) -> None:
    """List each setting with its value, where that came from, and the variable that changes it."""
    found = application.settings
    parts = [
        (each.name, getattr(found, each.name), found.origins.get(each.name, "default"), each.variable)
        for each in describe_settings()
    ]
    content = {
        name: {"value": value if isinstance(value, bool | int) else str(value), "origin": origin, "variable": variable}
        for name, value, origin, variable in parts
    }
    rows = [
        (name, str(value).lower() if isinstance(value, bool) else str(value), *rest) for name, value, *rest in parts
    ]
    application.output.document(content, table(rows, ("setting", "value", "from", "variable")))


@click.group(cls=Group)
def plugins() -> None:
    """List backends, callbacks, monitors and more."""


@plugins.command("list")
@click.argument("groups", nargs=-1, metavar="[GROUP]...")
@click.pass_obj
def plugins_list(application: Application, groups: tuple[str, ...]) -> None:
    """List what is installed, importing none of it. GROUP is backends, callbacks, monitors, …"""
    found = [plugin for group in groups or GROUPS for plugin in available(group)]
    rows = [(each.group, each.name, f"{each.distribution} {each.version}", each.target) for each in found]
    content = [vars(each) | {"built_in": each.is_built_in} for each in found]
    application.output.document(content, table(rows, ("group", "name", "from", "target")))


@click.command(cls=Command)
@click.argument("shell")
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
