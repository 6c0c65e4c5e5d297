"""Verbs of ``ziggurat job`` for the files of a job: ``checkpoints`` and ``download``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_reach import JobId, reaches_studio, studio_client
from ziggurat.cli.output import table
from ziggurat.errors import UsageError

__all__ = ["job_checkpoints", "job_download"]

_ENDINGS = (".tar", ".tar.gz", ".tar.bz2", ".zip")


@click.command("checkpoints", cls=Command)
@click.argument("job_id", metavar="ID", type=JobId())
@reaches_studio
@click.pass_obj
def job_checkpoints(application: Application, job_id: str, **studio: Any) -> None:
    """List the checkpoints of the job ID, the oldest step first."""
    with studio_client(application, studio) as client:
        found = client.checkpoints(job_id)
    rows = [(each["name"], str(each["step"]), f"{each['epoch']:g}", each["reason"]) for each in found]
    application.output.document(found, table(rows, ("checkpoint", "step", "epoch", "reason")))


@click.command("download", cls=Command)
@click.argument("job_id", metavar="ID", type=JobId())
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--checkpoint", metavar="NAME", default="", help="Only this one, such as best; else all of them.")
@reaches_studio
@click.pass_obj
def job_download(application: Application, job_id: str, target: Path, checkpoint: str, **studio: Any) -> None:
    """Write the files of the job ID to FILE: an archive .tar, .tar.gz, .tar.bz2 or .zip. Nothing is overwritten."""
    if not target.name.endswith(_ENDINGS):
        raise UsageError("The name of an archive says its kind.", received=target.name, advice=", ".join(_ENDINGS))
    with studio_client(application, studio) as client:
        client.download(job_id, target, checkpoint=checkpoint)
    content = {"id": job_id, "file": str(target), "size_bytes": target.stat().st_size}
    application.output.document(content, f"{job_id} is in {target}, {content['size_bytes']} bytes.")
