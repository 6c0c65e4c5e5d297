"""Commands that start and stop jobs: ``train``, ``resume``, ``stop``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_text import status_text
from ziggurat.cli.spec_flags import SpecFlagsCommand, note_former_names
from ziggurat.cli.studio import open_workspace
from ziggurat.specs import read_content, spec_from_flags, spec_json

__all__ = ["execute", "resume", "stop", "train"]

_FOLDER = click.argument("folder", type=click.Path(path_type=Path))
_DETACH = click.option("--detach", is_flag=True, help="Leave it to itself; `status` and `events` show how it is.")


@click.command(cls=SpecFlagsCommand)
@click.argument("spec", required=False, type=click.Path(path_type=Path))
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), help="Job folder; else a new one.")
@click.option("--set", "assignments", metavar="PATH=VALUE", multiple=True, help="Part of a field; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Print the spec and do nothing.")
@_DETACH
@click.pass_obj
def train(
    application: Application,
    spec: Path | None,
    out: Path | None,
    assignments: tuple[str, ...],
    dry_run: bool,
    detach: bool,
    **flags: str | None,
) -> int:
    """Train a network from a SPEC file, from flags, or from a file that flags change.

    Flags are the fields of the spec; parts of a field are set by --set, as in --set schedule.gamma=0.5.
    `ziggurat spec schema` tells all of them.
    """
    base = None if spec is None else read_content(spec)
    given = {name: text for name, text in flags.items() if text is not None}
    asked = spec_from_flags(given, assignments=assignments, base=base)
    note_former_names(application, base, given, assignments)
    if dry_run:
        click.echo(spec_json(asked), nl=False)
        return 0
    folder = open_workspace(application).start_training(asked, out)
    return execute(application, folder, detach=detach)


@click.command(cls=Command)
@_FOLDER
@_DETACH
@click.pass_obj
def resume(application: Application, folder: Path, detach: bool) -> int:
    """Go on with the job in FOLDER from its newest checkpoint."""
    return execute(application, folder, detach=detach)


@click.command(cls=Command)
@_FOLDER
@click.option("--reason", default="asked to stop by `ziggurat stop`", help="One sentence for the record.")
@click.option("--now", is_flag=True, help="Kill its worker, and all that it started; what is in no checkpoint is lost.")
@click.pass_obj
def stop(application: Application, folder: Path, reason: str, now: bool) -> None:
    """Ask the job in FOLDER to save and end. It can be resumed.

    A studio ends by force a worker that does not end; without one, call it again with --now.
    """
    status = open_workspace(application).stop(folder, reason, now=now)
    if now:
        text = f"{folder}: ended by force."
    else:
        text = f"{folder}: asked to save and end. If it does not end: ziggurat stop {folder} --now"
    application.output.document(status.as_dict(), text)


def execute(application: Application, folder: Path, *, detach: bool = False) -> int:
    """Execute the job in a folder, attended or not; return the worker's exit code."""
    workspace, output = open_workspace(application), application.output
    if detach:
        pid = workspace.detach(folder)
        output.document({"folder": str(folder), "pid": pid}, f"Process {pid} works in {folder}")
        return 0
    output.note(f"Job folder: {folder}")
    extra: dict[str, Any] = {"output": sys.stderr} if application.as_json else {}
    code = workspace.attend(folder, say=output.note, **extra).wait()
    status = workspace.status(folder)
    output.document(status.as_dict(), status_text(status, output))
    return code
