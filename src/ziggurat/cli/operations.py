"""Command ``call``: every operation of a studio by its name, also those without a command of their own."""

from __future__ import annotations

import json
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_requests import reaches_studio, studio_client
from ziggurat.cli.output import table
from ziggurat.cli.word_completion import complete_among
from ziggurat.errors import UsageError
from ziggurat.operations import OPERATIONS, find_operation

__all__ = ["call"]


@click.command(cls=Command)
@click.argument("operation", required=False, shell_complete=complete_among(lambda: OPERATIONS))
@click.argument("fields", nargs=-1, metavar="[FIELD=TEXT | FIELD:=JSON]...")
@reaches_studio
@click.pass_obj
def call(application: Application, operation: str | None, fields: tuple[str, ...], **studio: Any) -> None:
    """Do an operation of the studio by its name, or list the operations.

    FIELD=TEXT sends a text, FIELD:=JSON a number, a list or any other JSON value. The answer is JSON.

    Example: ziggurat call project.rename name=pets new_name=animals
    """
    if operation is None:
        rows = [(each.name, each.role, each.command, each.rest) for each in OPERATIONS.values()]
        content = [
            {"name": each.name, "role": each.role, "scope": each.scope, "command": each.command, "rest": each.rest}
            for each in OPERATIONS.values()
        ]
        application.output.document(content, table(rows, ("operation", "role", "command", "route")))
        return
    find_operation(operation)
    values = dict(_field(each) for each in fields)
    with studio_client(application, studio) as client:
        answer = client.call(operation, **values)
    application.output.document(answer, "" if answer is None else json.dumps(answer, indent=2, ensure_ascii=False))


def _field(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name.rstrip(":").isidentifier():
        raise UsageError(f"`{text[:80]}` is not a field: these are FIELD=TEXT or FIELD:=JSON.")
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], json.loads(value)
    except ValueError as error:
        raise UsageError(
            f"`{name[:-1]}` is `{value[:80]}`, which is not JSON: {str(error).rstrip('.')}.",
            advice="Use FIELD=TEXT for a text.",
        ) from None
