"""Commands ``trash`` and ``restore``: what was deleted in a studio, of every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.job_requests import reaches_studio, studio_client
from ziggurat.cli.output import table
from ziggurat.cli.value_completion import complete_deleted
from ziggurat.errors import MissingEntryError, UsageError, ZigguratError
from ziggurat.formatting import as_ago, as_bytes, as_job_kind, plural

__all__ = ["restore", "trash"]

_ITEMS = click.argument("items", nargs=-1, required=True, metavar="ITEM...", shell_complete=complete_deleted)


@click.group(cls=Group)
def trash() -> None:
    """Deleted jobs, datasets, evaluations, weights, uploads, saved views and presets: list, delete for good.

    `ziggurat restore` brings them back.
    """


@trash.command("list")
@reaches_studio
@click.pass_obj
def trash_list(application: Application, **studio: Any) -> None:
    """List what can be restored, newest first."""
    with studio_client(application, studio) as client:
        found = client.trash()
    rows = [
        (each["id"], as_job_kind(each["kind"]), each["name"], as_bytes(each["size_bytes"]), as_ago(each["deleted"]))
        for each in found
    ]
    application.output.document(found, table(rows, ("id", "kind", "name", "size", "deleted")))


@trash.command("delete")
@_ITEMS
@reaches_studio
@click.pass_obj
def trash_delete(application: Application, items: tuple[str, ...], **studio: Any) -> int:
    """Remove each ITEM (id, or name) of the trash from the disk now. Exit code 10 if that failed for one of them."""
    with studio_client(application, studio) as client:
        actions: Mapping[str, Callable[[str], Any]] = {
            "weights": lambda item_id: client.weights.remove(item_id, forever=True),
            "upload": lambda item_id: client.datasets.delete_upload(item_id, forever=True),
            "view": lambda item_id: client.saved.delete("view", item_id, forever=True),
            "preset": lambda item_id: client.saved.delete("preset", item_id, forever=True),
        }
        jobs = lambda item_id: client.delete(item_id, forever=True)  # noqa: E731
        return _for_each(
            application, client.trash(), items, lambda kind: actions.get(kind, jobs), "removed from the disk"
        )


@trash.command("empty")
@reaches_studio
@click.pass_obj
def trash_empty(application: Application, **studio: Any) -> None:
    """Remove everything in the trash from the disk now."""
    with studio_client(application, studio) as client:
        removed = client.empty_trash()
    application.output.document({"removed": removed}, f"{plural(len(removed), 'item')} removed from the disk.")


@click.command(cls=Command)
@_ITEMS
@reaches_studio
@click.pass_obj
def restore(application: Application, items: tuple[str, ...], **studio: Any) -> int:
    """Put each ITEM that was deleted back: a job, a dataset, weights, an upload, a saved view, by its id or name.

    Exit code 10 if that was not possible for one of them.
    """
    with studio_client(application, studio) as client:
        actions: Mapping[str, Callable[[str], Any]] = {
            "weights": client.weights.restore,
            "upload": client.datasets.restore_upload,
            "view": lambda item_id: client.saved.restore("view", item_id),
            "preset": lambda item_id: client.saved.restore("preset", item_id),
        }
        return _for_each(application, client.trash(), items, lambda kind: actions.get(kind, client.restore), "back")


def _for_each(
    application: Application,
    deleted: Sequence[Mapping[str, Any]],
    items: Sequence[str],
    action_of: Callable[[str], Callable[[str], Any]],
    state: str,
) -> int:
    """Do something with each item, whatever happens with the others; return the exit code."""
    code = 0
    for text in items:
        try:
            item = _find(deleted, text)
            action_of(item["kind"])(item["id"])
            shown = {name: item[name] for name in ("id", "kind", "name")}
            application.output.line(shown | {"state": state}, f"{item['name'] or item['id']} is {state}.")
        except ZigguratError as error:
            code = 10
            application.output.line(error.as_dict() | {"id": text}, f"{text}: {error}")
    return code


def _find(deleted: Sequence[Mapping[str, Any]], text: str) -> Mapping[str, Any]:
    """Return the deleted item of an id or a name.

    Raises:
        MissingEntryError: if there is none.
        UsageError: if several have the name.
    """
    found = [each for each in deleted if each["id"] == text][:1] or [each for each in deleted if each["name"] == text]
    if not found:
        raise MissingEntryError(
            f"`{text}` is not in the trash.",
            advice="List what can be restored with: ziggurat trash list. The rest is removed from the disk.",
        )
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} deleted items are called `{text}`.",
            received=", ".join(f"{each['id']} ({as_job_kind(each['kind'])})" for each in found[:5]),
            advice="Give the id of one of them.",
        )
    return found[0]
