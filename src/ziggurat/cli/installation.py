"""Owns the verbs about this installation: ``settings``, ``plugins``, ``doctor``, ``completion``, ``version``."""

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
from ziggurat.workspace.doctor import examine

__all__ = ["completion", "doctor", "plugins", "settings", "version"]

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
        name: {"value": value if isinstance(value, bool) else str(value), "origin": origin, "variable": variable}
        for name, value, origin, variable in parts
    }
    rows = [(name, str(value).lower() if value in (True, False) else str(value), *rest) for name, value, *rest in parts]
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
@click.pass_obj
def doctor(application: Application) -> int:
    """Find out what does not work on this machine, and how to mend it; exit code 1 where there is a problem."""
    findings, output = [], application.output
    for finding in examine(application.settings):
        findings.append(finding)
        if not application.as_json:
            advice = f"\n{'':20}{finding.advice}" if finding.advice else ""
            line = f"{finding.section:<11}{output.word(finding.level):<9}{finding.name}: {finding.text}{advice}"
            output.line(None, line)
    if application.as_json:
        output.document([finding.as_dict() for finding in findings], "")
    return int(any(finding.level == "problem" for finding in findings))


@click.command(cls=Command)
@click.argument("shell")
@click.pass_obj
def completion(application: Application, shell: str) -> None:
    """Print what makes SHELL (bash, fish, zsh) complete words.

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
