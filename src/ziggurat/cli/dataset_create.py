"""Verbs that create datasets from sources: ``create``, ``guess``, ``formats``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.dataset_text import format_text, formats_text, guess_text
from ziggurat.cli.spec_flags import DatasetFlagsCommand
from ziggurat.cli.studio import open_workspace
from ziggurat.cli.training import execute
from ziggurat.errors import UsageError
from ziggurat.specs import dataset_spec_from_flags, spec_json
from ziggurat.workspace import datasets
from ziggurat.workspace.new_dataset import check_new_dataset, source_name, stored_source

__all__ = ["create", "format_options", "formats", "guess"]

_OPTION = click.option(
    "--option", "options", metavar="NAME=VALUE", multiple=True, help="Option of the format; may be repeated."
)


@click.command(cls=DatasetFlagsCommand)
@click.argument("source")
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), help="Folder to make; else a new one.")
@_OPTION
@click.option("--val-share", metavar="X", help="Share for validation, as --set splits.val_share=X.")
@click.option("--test-share", metavar="X", help="Share for the test, as --set splits.test_share=X.")
@click.option("--set", "assignments", metavar="PATH=VALUE", multiple=True, help="Part of a field; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Print the spec and do nothing.")
@click.option("--detach", is_flag=True, help="Leave it to itself; `status` and `events` show how it is.")
@click.pass_obj
def create(
    application: Application,
    source: str,
    out: Path | None,
    options: tuple[str, ...],
    assignments: tuple[str, ...],
    dry_run: bool,
    detach: bool,
    **flags: str | None,
) -> int:
    """Make a dataset from SOURCE: a folder, a file, an archive, or an address.

    The format is guessed and shown where --format does not name it; a guess that is less than 50 % sure, or would drop
    labels, is an error that lists the likely formats. `ziggurat resume FOLDER` goes on with one that was stopped.
    """
    shares = {name: flags.pop(name) for name in ("val_share", "test_share")}
    given = {name: text for name, text in flags.items() if text is not None}
    given["source"] = stored_source(source)
    given.setdefault("name", source_name(given["source"]) if out is None else out.absolute().name)
    parts = [*assignments, *(f"splits.{name}={text}" for name, text in shares.items() if text is not None)]
    base = {"kind": "dataset", "version": 1, "options": format_options(options)}
    spec = dataset_spec_from_flags(given, assignments=parts, base=base)
    check_new_dataset(spec, out)
    if dry_run:
        click.echo(spec_json(spec), nl=False)
        return 0
    folder = open_workspace(application).start_dataset(spec, out)
    return execute(application, folder, detach=detach)


@click.command(cls=Command)
@click.argument("source")
@click.pass_obj
def guess(application: Application, source: str) -> None:
    """Say which format SOURCE has, and why; the most confident guess comes first."""
    found = datasets.recognize_source(source)
    application.output.document([vars(each) for each in found.guesses], guess_text(found))


@click.command(cls=Command)
@click.argument("name", required=False)
@click.pass_obj
def formats(application: Application, name: str | None) -> None:
    """List the formats that datasets are made from and written in, or the options of the format NAME."""
    if name is None:
        found = datasets.formats()
        application.output.document(found, formats_text(found))
        return
    one = datasets.format_named(name)
    application.output.document(one, format_text(one))


def format_options(texts: Sequence[str]) -> dict[str, Any]:
    """Return the options of a format: JSON where a text is JSON, else the text."""
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError("`--option` takes NAME=VALUE.", received=text, advice="As in: --option seed=3.")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options
