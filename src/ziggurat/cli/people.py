"""Commands on the studio's own files: ``user``, ``token`` and ``reindex``; they need no running server."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any, Final

import click

from ziggurat.cli.application import Application, studio_module
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.output import table
from ziggurat.cli.server import chosen_database, database_option
from ziggurat.cli.word_completion import complete_among
from ziggurat.entities import ROLES, SCOPES
from ziggurat.errors import UnknownNameError, UsageError
from ziggurat.formatting import as_time

__all__ = ["reindex", "token", "user"]

_DAY_S: Final = 86400.0
_LONGEST_PASSWORD: Final = 4096

_password_option = click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input instead of asking for it."
)


@click.group(cls=Group)
def user() -> None:
    """Create, list and change the users of the studio."""


@user.command("add")
@click.argument("name")
@click.option(
    "--role",
    default="trainer",
    show_default=True,
    shell_complete=complete_among(lambda: ROLES),
    help="viewer, trainer or admin; the first is an admin.",
)
@click.option("--no-password", is_flag=True, help="Allow login by token only.")
@_password_option
@database_option
@click.pass_obj
def user_add(
    application: Application, name: str, role: str, no_password: bool, password_stdin: bool, database: str | None
) -> None:
    """Create an account; from the first one on, a login is required."""
    _check_known("role", role, ROLES)
    if no_password and password_stdin:
        raise UsageError("`--no-password` and `--password-stdin` exclude each other.", advice="Leave one of them out.")
    with _people(application, database) as people:
        password = None if no_password else _read_password(name, from_stdin=password_stdin)
        made = people.create_user(name, password, role=role, by=_shell())
    application.output.document(asdict(made), f"{made.name} is a user now, with the role {made.role}.")


@user.command("list")
@database_option
@click.pass_obj
def user_list(application: Application, database: str | None) -> None:
    """List all users, with their roles and when they were last seen."""
    with _people(application, database) as people:
        found = people.users()
    rows = [(each.name, each.role, "disabled" if each.disabled else "", _moment(each.last_seen)) for each in found]
    text = table(rows, ("name", "role", "state", "last seen"))
    application.output.document([asdict(each) for each in found], text)


@user.command("role")
@click.argument("name")
@click.argument("role", shell_complete=complete_among(lambda: ROLES))
@database_option
@click.pass_obj
def user_role(application: Application, name: str, role: str, database: str | None) -> None:
    """Give a user another ROLE: viewer, trainer or admin."""
    _check_known("role", role, ROLES)
    with _people(application, database) as people:
        changed = people.set_role(name, role, by=_shell())
    application.output.document(asdict(changed), f"{changed.name} has the role {changed.role} now.")


@user.command("disable")
@click.argument("name")
@click.option("--undo", is_flag=True, help="Enable the user again.")
@database_option
@click.pass_obj
def user_disable(application: Application, name: str, undo: bool, database: str | None) -> None:
    """Disable a user, which ends their sessions and tokens at once; their jobs stay."""
    with _people(application, database) as people:
        changed = people.set_disabled(name, not undo, by=_shell())
    text = f"{changed.name} is shut out." if changed.disabled else f"{changed.name} may come in again."
    application.output.document(asdict(changed), text)


@user.command("password")
@click.argument("name")
@_password_option
@database_option
@click.pass_obj
def user_password(application: Application, name: str, password_stdin: bool, database: str | None) -> None:
    """Set a password; it ends all sessions of that user."""
    with _people(application, database) as people:
        found = people.user(name)
        people.set_password(found.name, _read_password(name, from_stdin=password_stdin), by=_shell())
    application.output.document({"name": found.name}, f"{found.name} has a new password; all sessions have ended.")


@click.group(cls=Group)
def token() -> None:
    """Create, list and revoke tokens for programs."""


@token.command("create")
@click.argument("name")
@click.option("--user", "user_name", required=True, metavar="USER", help="User; the user's role limits the token.")
@click.option(
    "--scope",
    default="write",
    show_default=True,
    shell_complete=complete_among(lambda: SCOPES),
    help="Scope: read, write or admin.",
)
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Lifetime in days; default: unlimited.")
@database_option
@click.pass_obj
def token_create(
    application: Application, name: str, user_name: str, scope: str, days: float | None, database: str | None
) -> None:
    """Create a token called NAME and print it; it is not stored."""
    _check_known("scope", scope, SCOPES)
    good_for_s = None if days is None else days * _DAY_S
    with _people(application, database) as people:
        made, secret = people.create_token(user_name, name, scope=scope, by=_shell(), good_for_s=good_for_s)
    until = "" if made.expires is None else f" until {_moment(made.expires)}"
    application.output.note(
        f"Token {made.id} of {user_name}, scope {made.scope}, is good{until}. It is shown only now."
    )
    application.output.document(asdict(made) | {"secret": secret}, secret)


@token.command("list")
@click.option("--user", "user_name", metavar="USER", help="Only of this user.")
@database_option
@click.pass_obj
def token_list(application: Application, user_name: str | None, database: str | None) -> None:
    """List tokens, newest first; never their secrets."""
    with _people(application, database) as people:
        names = {each.id: each.name for each in people.users()}
        found = people.tokens(None if user_name is None else people.user(user_name))
    now = time.time()
    rows = [
        (str(each.id), each.name, names[each.user_id], each.scope, _token_state(each, now), _moment(each.last_used))
        for each in found
    ]
    content = [asdict(each) | {"user": names[each.user_id]} for each in found]
    application.output.document(content, table(rows, ("id", "name", "user", "scope", "state", "last used")))


@token.command("revoke")
@click.argument("token_id", metavar="ID", type=int)
@database_option
@click.pass_obj
def token_revoke(application: Application, token_id: int, database: str | None) -> None:
    """Revoke the token with the number ID, at once."""
    with _people(application, database) as people:
        people.revoke_token(token_id, by=_shell())
    application.output.document({"id": token_id, "revoked": True}, f"Token {token_id} is good for nothing any more.")


@click.command(cls=Command)
@database_option
@click.pass_obj
def reindex(application: Application, database: str | None) -> int:
    """Rebuild the studio's list of jobs from their folders, while no server runs.

    Users, tokens and settings stay. Exit code 1 where a folder could not be read.
    """
    report = studio_module("ziggurat.workspace.studio.bootstrap").reindex(
        application.settings, chosen_database(application, database)
    )
    lines = [
        f"{len(report.added)} jobs added, {len(report.renewed)} read again, {report.events} events.",
        *(
            f"The folder of {job_id} is gone; the job stays in the list until it is deleted."
            for job_id in report.missing
        ),
        *(f"Not read: {folder}: {reason}" for folder, reason in report.damaged.items()),
    ]
    application.output.document(asdict(report), "\n".join(lines))
    return int(bool(report.damaged))


def _people(application: Application, database: str | None) -> AbstractContextManager[Any]:
    opening = studio_module("ziggurat.workspace.studio.bootstrap")
    return opening.open_people(application.settings, chosen_database(application, database))


def _shell() -> Any:
    """Return the acting identity: a user who may read the files of the studio."""
    return studio_module("ziggurat.workspace.accounts").LOCAL


def _check_known(kind: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UnknownNameError(kind, name, known)


def _read_password(name: str, *, from_stdin: bool) -> str:
    """Return a password; never from the command line, where others could read it."""
    if from_stdin:
        line = sys.stdin.readline(_LONGEST_PASSWORD)
        return line.removesuffix("\n").removesuffix("\r")
    if not sys.stdin.isatty():
        raise UsageError(
            "There is no terminal to ask for the password in.", advice="Without one, use --password-stdin."
        )
    return click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True, err=True)


def _token_state(each: Any, now: float) -> str:
    if each.revoked:
        return "revoked"
    if each.expires is None:
        return "good"
    return f"good until {_moment(each.expires)}" if each.expires > now else "expired"


def _moment(seconds: float | None) -> str:
    return "never" if seconds is None else as_time(seconds)
