"""``ziggurat checkpoint``: list, show, compare and remove the checkpoints of a job."""

from __future__ import annotations

from pathlib import Path

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Group
from ziggurat.cli.output import table
from ziggurat.cli.studio import open_workspace
from ziggurat.workspace.checkpoint_files import CheckpointSummary

__all__ = ["checkpoint"]

_FOLDER = click.argument("folder", type=click.Path(path_type=Path))
_NAME = click.argument("name", default="latest")


@click.group(cls=Group)
def checkpoint() -> None:
    """List, show, compare and remove the checkpoints of a job.

    NAME is a folder name such as step-00000042, a given name such as best, or latest.
    """


@checkpoint.command()
@_FOLDER
@click.pass_obj
def ls(application: Application, folder: Path) -> None:
    """List the checkpoints of the job in FOLDER, oldest first."""
    found = open_workspace(application).outputs.checkpoints(str(folder))
    rows = [(each.name, str(each.step), f"{each.size_bytes:,}", _names(each)) for each in found]
    text = table(rows, ("checkpoint", "step", "bytes", "names"))
    application.output.document([each.as_dict() for each in found], text)


@checkpoint.command()
@_FOLDER
@_NAME
@click.pass_obj
def show(application: Application, folder: Path, name: str) -> None:
    """Show what a checkpoint holds: step, scalars, and its arrays."""
    found = open_workspace(application).outputs.checkpoint(str(folder), name)
    rows = [(each.name, str(each.shape), each.dtype, f"{each.size_bytes:,}") for each in found.arrays]
    scalars = ", ".join(f"{tag} {value:.5g}" for tag, value in found.scalars.items())
    head = f"{found.summary.name}: step {found.summary.step}, epoch {found.epoch}. {scalars}".rstrip()
    application.output.document(found.as_dict(), f"{head}\n{table(rows, ('array', 'shape', 'type', 'bytes'))}")


@checkpoint.command()
@_FOLDER
@click.argument("first")
@click.argument("second", default="latest")
@click.option("--other", metavar="FOLDER", type=click.Path(path_type=Path), help="Job of the second; else the same.")
@click.pass_obj
def diff(application: Application, folder: Path, first: str, second: str, other: Path | None) -> None:
    """Compare the arrays of two checkpoints."""
    found = open_workspace(application).outputs.checkpoint_differences(str(folder), first, str(other or folder), second)
    rows = [(each.name, each.kind, _number(each.largest), _number(each.mean)) for each in found]
    text = table(rows, ("array", "difference", "largest", "mean"))
    application.output.document([each.as_dict() for each in found], text)


@checkpoint.command()
@_FOLDER
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.pass_obj
def remove(application: Application, folder: Path, names: tuple[str, ...]) -> None:
    """Remove checkpoints of a job that is not running."""
    outputs = open_workspace(application).outputs
    for name in names:
        removed = outputs.remove_checkpoint(str(folder), name)
        application.output.line({"removed": removed}, f"Removed {removed}")


def _names(found: CheckpointSummary) -> str:
    """Return the names of a checkpoint, and of the best one by what it is that."""
    best = [f"best by {found.best_by}"] if found.best_by else []
    return ", ".join([*(name for name in found.given_names if name != "best" or not best), *best])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
