"""Commands on weights in files: ``checkpoint strip``, ``checkpoint average``, ``dump-model-params``, and helpers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.output import table
from ziggurat.formatting import as_bytes
from ziggurat.layout import JobFolder
from ziggurat.workspace.tasks import Tasks

__all__ = ["average", "dump_model_params", "is_job", "show_differences", "show_weights", "strip"]

_OUT_HELP = "An .npz file, or the prefix of a TensorFlow checkpoint."


def is_job(path: Path) -> bool:
    """Return whether a path is the folder of a job, and no file of weights."""
    return JobFolder(path).spec.is_file()


def show_weights(application: Application, path: Path) -> None:
    """Print the names, shapes and types of the weights in a file or folder."""
    found = _tasks(application).weights("list", [path])
    rows = [
        (each["name"], str(tuple(each["shape"])), each["dtype"], f"{each['size_bytes']:,}") for each in found["arrays"]
    ]
    total = as_bytes(sum(each["size_bytes"] for each in found["arrays"]))
    text = table(rows, ("array", "shape", "type", "bytes"))
    application.output.document(found, f"{found['source']}: {len(rows)} arrays, {total}\n{text}")


def show_differences(application: Application, first: Path, second: Path) -> None:
    """Print how the weights in two files differ."""
    found = _tasks(application).weights("diff", [first, second])["differences"]
    rows = [(each["name"], each["kind"], _number(each.get("largest")), _number(each.get("mean"))) for each in found]
    application.output.document(found, table(rows, ("array", "difference", "largest", "mean")))


@click.command(cls=Command)
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("out", metavar="OUT")
@click.option("--meta", metavar="FILE", help="Metagraph that names what prediction needs; default: judge by the names.")
@click.option("--keep", metavar="REGEX", help="Keep only arrays whose whole name it fits.")
@click.pass_obj
def strip(application: Application, path: Path, out: str, meta: str | None, keep: str | None) -> None:
    """Write the weights in PATH to OUT, without what only a training needs.

    PATH is a TensorFlow checkpoint, an npz file, a checkpoint of Ziggurat or the folder of a job. OUT is an npz file,
    or the prefix of a TensorFlow checkpoint.
    """
    _show_written(application, _tasks(application).weights("strip", [path], out=out, meta=meta, keep=keep))


@click.command(cls=Command)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--out", required=True, metavar="OUT", help=_OUT_HELP)
@click.pass_obj
def average(application: Application, paths: tuple[Path, ...], out: str) -> None:
    """Write the mean of the weights in several files; counters are those of the last one."""
    _show_written(application, _tasks(application).weights("average", paths, out=out))


@click.command(cls=Command)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("output", metavar="OUTPUT")
@click.option("--meta", metavar="FILE", default="nearest", help="Metagraph; default: the newest beside MODEL.")
@click.pass_obj
def dump_model_params(application: Application, model: Path, output: str, meta: str) -> None:
    """Write the variables of MODEL that prediction needs to OUTPUT, usually an npz file.

    MODEL is a TensorFlow checkpoint, such as model-100. A metagraph says what is needed: trained variables and model
    variables.
    """
    _show_written(application, _tasks(application).weights("strip", [model], out=output, meta=meta))


def _tasks(application: Application) -> Tasks:
    return Tasks(application.settings)


def _show_written(application: Application, found: dict[str, Any]) -> None:
    left_out = f", {len(found['left_out'])} left out" if found["left_out"] else ""
    application.output.document(found, f"{found['written']}: {len(found['kept'])} arrays{left_out}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
