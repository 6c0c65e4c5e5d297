"""Connection of ``ziggurat job`` to a studio: its URL, its token, and suggestions for a mistyped id."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.studio_parts import studio_module
from ziggurat.errors import JobError, MissingJobError, UsageError, ZigguratError, nearest_names
from ziggurat.workspace.server_state import running_server

__all__ = ["JobId", "known_better", "reaches_studio", "studio_client"]

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LOOKED_AT: Final = 2000
"""Jobs among which the one that was meant is looked for, newest first."""


class JobId(click.ParamType):
    """An id of a job; anything else would be another place in the REST API."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id.

        Raises:
            JobError: where it cannot be one.
        """
        if not _ID.fullmatch(value):
            raise MissingJobError(
                "There is no such job.", received=repr(value), advice="List them with: ziggurat job list"
            )
        return value


def reaches_studio(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that say which studio it asks; ``studio_client`` takes them."""
    for option in (
        click.option(
            "--token-file", type=click.Path(path_type=Path), help="File with a token; others may not read it."
        ),
        click.option("--token", metavar="SECRET", help="A token; others may see it on the command line."),
        click.option("--server", metavar="URL", help="Address of the studio; else the one that serves the workspace."),
    ):
        command = option(command)
    return command


@contextmanager
def studio_client(application: Application, studio: dict[str, Any]) -> Iterator[Any]:
    """Give a client for the studio that flags and settings name.

    Args:
        application: of this call.
        studio: values of the flags of ``reaches_studio``, which are taken out; further values stay.
    """
    server, token, file = studio.pop("server"), studio.pop("token"), studio.pop("token_file")
    if token and file:
        raise UsageError("`--token` and `--token-file` exclude each other.", advice="Leave one of them out.")
    address = server or _address(application)
    secret = _secret(file) if file else token or application.settings.token_for(address)
    with studio_module("ziggurat.client").Client(address, secret) as client:
        try:
            yield client
        except JobError as error:
            raise known_better(error, client) from None


def known_better(error: JobError, client: Any) -> JobError:
    """Return the error of a job that is not there with what may have been meant; any other one as it is."""
    if error.details.get("status") != 404 or error.received is None:
        return error
    try:
        jobs = list(islice(client.jobs(limit=1000), _LOOKED_AT))
    except ZigguratError:  # what is said of the job counts more
        return error
    asked = error.received
    meant = [each["id"] for each in jobs if each["name"] == asked] or nearest_names(
        asked, [each["id"] for each in jobs]
    )
    names = {each["id"]: each["name"] for each in jobs}
    shown = " or ".join(f"`{each}` ({names[each]})" for each in meant[:3])
    advice = f"Did you mean {shown}?" if shown else "List them with: ziggurat job list"
    return JobError(error.rule, received=asked, advice=advice, details={**error.details, "nearest": meant[:3]})


def _address(application: Application) -> str:
    """Return the address of the studio that the settings name, or of the one that serves the workspace."""
    settings = application.settings
    asked_here = settings.origins.get("workspace") == "--workspace" and settings.origins.get("server") != "--server"
    if settings.server and not asked_here:
        return settings.server
    state = running_server(settings.workspace)
    if state is None or not state.is_here:
        where = f" here, not on {state.host}" if state is not None else ""
        raise JobError(
            f"A studio must serve {settings.workspace}{where} to be asked.",
            advice="Start one with `ziggurat up`, or name another one by --server URL.",
        )
    return state.address


def _secret(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError("The file of a token must be readable.", received=f"{file}: {error}") from None
