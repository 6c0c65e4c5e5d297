"""Verbs that show datasets, check them, and export them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.dataset_create import format_options
from ziggurat.cli.dataset_text import problems_text, rows_text, samples_text, show_text
from ziggurat.cli.output import table
from ziggurat.workspace import dataset_versions, datasets

__all__ = ["check", "explore", "export", "list_", "problems", "show", "versions"]

_FOLDER = click.argument("folder", type=click.Path(path_type=Path))
_OFFSET = click.option("--offset", type=click.IntRange(min=0), default=0, help="How many to leave out first.")
_LIMIT = click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=20, show_default=True, help="How many to show."
)


@click.command("list", cls=Command)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def list_(application: Application, folder: Path | None) -> None:
    """List the datasets below FOLDER; else those of the workspace."""
    rows = list(datasets.rows(application.settings.workspace, folder))
    application.output.document([asdict(row) for row in rows], rows_text(rows))


@click.command(cls=Command)
@_FOLDER
@click.option("--statistics", is_flag=True, help="Sizes, boxes, columns, lengths: whatever the kind has.")
@click.pass_obj
def show(application: Application, folder: Path, statistics: bool) -> None:
    """Show what the dataset in FOLDER is: splits, classes, images, problems, where it came from."""
    content = datasets.describe(folder)
    text = show_text(content)
    if statistics:
        found, lines = datasets.statistics(folder)
        content["statistics"] = found.as_json()
        text = f"{text}\n\n{lines}"
    application.output.document(content, text)


@click.command(cls=Command)
@_FOLDER
@click.option("--split", help="Samples of this split.")
@click.option("--class", "class_name", help="Samples of this class, or with an object of it: name or number.")
@click.option("--text", help="Samples with this in their key.")
@click.option("--problem", metavar="KIND", help="Samples with a problem of this kind; `any` for any.")
@click.option("--group", help="Samples of this group.")
@click.option("--min-width", "min_width_px", type=int, metavar="PX", help="Images at least this wide.")
@click.option("--max-width", "max_width_px", type=int, metavar="PX", help="Images at most this wide.")
@click.option("--min-height", "min_height_px", type=int, metavar="PX", help="Images at least this high.")
@click.option("--max-height", "max_height_px", type=int, metavar="PX", help="Images at most this high.")
@click.option("--save", metavar="FOLDER", type=click.Path(path_type=Path), help="Write the images of the page there.")
@_OFFSET
@_LIMIT
@click.pass_obj
def explore(application: Application, folder: Path, save: Path | None, offset: int, limit: int, **chosen: Any) -> None:
    """Show samples of the dataset in FOLDER, page by page."""
    found, names = datasets.explore(folder, chosen, offset=offset, limit=limit)
    text = samples_text(found, names, by_problem=chosen["problem"] is not None)
    if save is not None:
        files = datasets.save_pictures(folder, [(entry.split, entry.row or 0) for entry in found.entries], save)
        text = f"{text}\n{len(files)} image{'' if len(files) == 1 else 's'} written to {save}"
    application.output.document(found.as_json(names), text)


@click.command(cls=Command)
@_FOLDER
@click.option("--kind", help="Only problems of this kind.")
@_OFFSET
@_LIMIT
@click.pass_obj
def problems(application: Application, folder: Path, kind: str | None, offset: int, limit: int) -> None:
    """List what was wrong with the source of the dataset in FOLDER, each with its reason."""
    found = datasets.problems(folder, kind, offset=offset, limit=limit)
    text = problems_text(found, datasets.problem_counts(folder), kind, offset)
    application.output.document([asdict(each) for each in found], text)


@click.command(cls=Command)
@_FOLDER
@click.option("--verify", is_flag=True, help="Read every record, and compare every checksum.")
@click.option(
    "--predictions",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A model's (.npz, .csv), to find wrong labels.",
)
@click.pass_obj
def check(application: Application, folder: Path, verify: bool, predictions: Path | None) -> None:
    """Look for what spoils a training: duplicates, leaks, odd sizes and boxes, rare classes, wrong labels."""
    report = datasets.check(folder, verify=verify, predictions=predictions)
    application.output.document(report.as_json(), report.as_text())


@click.command(cls=Command)
@_FOLDER
@click.option("--format", "format_name", required=True, help="Format to write.")
@click.option("--out", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="New or empty folder.")
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True, help="Option of the format.")
@click.pass_obj
def export(application: Application, folder: Path, format_name: str, out: Path, options: tuple[str, ...]) -> None:
    """Write the dataset in FOLDER in a format of others."""
    report = datasets.export(folder, format_name, out, format_options(options))
    counts = ", ".join(f"{split} {count}" for split, count in report.counts.items())
    lines = [f"{out}: {counts} samples as {report.format}", *(f"  note: {note}" for note in report.notes)]
    if report.problems:
        count, first = len(report.problems), report.problems[0].reason
        lines.append(f"  {count} samples could not be written whole, the first: {first}")
    application.output.document({"folder": str(out), **asdict(report)}, "\n".join(lines))


@click.command(cls=Command)
@_FOLDER
@click.option("--differences", "other", metavar="FOLDER", type=click.Path(path_type=Path), help="What differs from it.")
@click.pass_obj
def versions(application: Application, folder: Path, other: Path | None) -> None:
    """Show what the dataset in FOLDER was made of, newest first; or what differs from another one."""
    if other is not None:
        found = asdict(dataset_versions.what_differs(folder, other))
        rows = [(name, str(count), ", ".join(found[name][:3])) for name, count in found["counts"].items()]
        application.output.document(found, table(rows, ("samples", "count", "such as")))
        return
    notes = dataset_versions.versions(folder)
    rows = [(each.name, each.id[:16], str(each.folder or "not found"), " ".join(each.changes)) for each in notes]
    content = [{**asdict(each), "folder": None if each.folder is None else str(each.folder)} for each in notes]
    application.output.document(content, table(rows, ("name", "id", "folder", "made by")))
