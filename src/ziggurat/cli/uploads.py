"""Command ``uploads``: files that were sent to a studio and wait to become datasets."""

from __future__ import annotations

from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Group
from ziggurat.cli.job_requests import reaches_studio, studio_client
from ziggurat.cli.output import table
from ziggurat.cli.value_completion import complete_upload
from ziggurat.formatting import as_bytes

__all__ = ["uploads"]


@click.group(cls=Group)
def uploads() -> None:
    """Files that were sent to the studio and wait to become datasets: list, delete."""


@uploads.command("list")
@reaches_studio
@click.pass_obj
def uploads_list(application: Application, **studio: Any) -> None:
    """List the uploads, newest first."""
    with studio_client(application, studio) as client:
        found = client.datasets.uploads()
    rows = [(each["id"], each["name"], str(each["files"]), as_bytes(each["size_bytes"])) for each in found]
    application.output.document(found, table(rows, ("id", "name", "files", "size")))


@uploads.command("delete")
@click.argument("upload_id", metavar="UPLOAD", shell_complete=complete_upload)
@click.option("--forever", is_flag=True, help="Removes it from the disk at once, also a deleted one.")
@reaches_studio
@click.pass_obj
def uploads_delete(application: Application, upload_id: str, forever: bool, **studio: Any) -> None:
    """Delete the upload of an id; `ziggurat restore` brings it back."""
    with studio_client(application, studio) as client:
        client.datasets.delete_upload(upload_id, forever=forever)
    back = "" if forever else f" Bring it back with: ziggurat restore {upload_id}"
    application.output.document({"removed": upload_id}, f"{upload_id} was removed.{back}")
