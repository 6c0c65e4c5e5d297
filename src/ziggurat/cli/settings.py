"""Commands for settings: ``settings show``, the allowed folders of a studio, and the key that signs its exports."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any

import click

from ziggurat.cli.application import Application, studio_module
from ziggurat.cli.commands import Group
from ziggurat.cli.output import table
from ziggurat.cli.server import chosen_database, database_option
from ziggurat.settings import describe_settings
from ziggurat.workspace.signing_keys import SigningKeys

__all__ = ["settings"]


@click.group(cls=Group)
def settings() -> None:
    """Show the settings and where they come from; change the allowed folders and the key of exports."""


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


@settings.command("folders")
@database_option
@click.pass_obj
def settings_folders(application: Application, database: str | None) -> None:
    """List the folders of this machine whose files the users of the studio may use."""
    with _paths(application, database, must_exist=True) as (paths, _people):
        _show_folders(application, paths)


@settings.command("allow")
@click.argument("path")
@database_option
@click.pass_obj
def settings_allow(application: Application, path: str, database: str | None) -> None:
    """Allow a folder: users of the studio may make datasets of the files in it. A running studio follows at once."""
    with _paths(application, database) as (paths, people):
        folder = _operations().allow_root(SimpleNamespace(paths=paths, people=people), _shell(), os.path.abspath(path))
        application.output.note(f"Allowed: {folder}")
        _show_folders(application, paths)


@settings.command("key")
@click.pass_obj
def settings_key(application: Application) -> None:
    """Show the public key of the workspace, by which others check its exports, and its fingerprint."""
    found = SigningKeys(application.settings.workspace.expanduser()).describe()
    text = f"{found['public_key']}Fingerprint: {found['fingerprint']}"
    application.output.document(found, text if found["fingerprint"] else "None yet: the first export makes one.")


@settings.command("rotate-key")
@database_option
@click.pass_obj
def settings_rotate_key(application: Application, database: str | None) -> None:
    """Make a new key for exports. What earlier keys signed stays known here; give the new public key to others."""
    keys = SigningKeys(application.settings.workspace.expanduser())
    with _paths(application, database, must_exist=True) as (_, people):
        fingerprint = _operations().rotate_signing_key(SimpleNamespace(signing_keys=keys, people=people), _shell())
    application.output.document(keys.describe(), f"New exports are signed by the key {fingerprint}.")


@settings.command("disallow")
@click.argument("folder")
@database_option
@click.pass_obj
def settings_disallow(application: Application, folder: str, database: str | None) -> None:
    """Remove a folder from the allowed ones; datasets made from it stay."""
    with _paths(application, database, must_exist=True) as (paths, people):
        studio = SimpleNamespace(paths=paths, people=people)
        _operations().remove_root(studio, _shell(), os.path.abspath(folder))
        _show_folders(application, paths)


def _show_folders(application: Application, paths: Any) -> None:
    folders = list(paths.chosen)
    application.output.document({"folders": folders}, "\n".join(folders) or "Only the folders of the studio itself.")


def _paths(application: Application, database: str | None, *, must_exist: bool = False) -> AbstractContextManager[Any]:
    opening = studio_module("ziggurat.workspace.studio.bootstrap")
    return opening.open_paths(application.settings, chosen_database(application, database), must_exist=must_exist)


def _operations() -> Any:
    return studio_module("ziggurat.operations.administration")


def _shell() -> Any:
    """Return the identity that the audit log shows for commands of this machine."""
    return studio_module("ziggurat.workspace.accounts").LOCAL
