"""``ziggurat dataset``: the group of verbs for datasets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.dataset_boxes import boxes
from ziggurat.cli.dataset_maps import map_, similar
from ziggurat.cli.dataset_sources import (
    again,
    create,
    format_options,
    formats,
    guess,
    preview,
    problems_text,
    rows_text,
    samples_text,
    show_text,
)
from ziggurat.cli.job_places import DATASET
from ziggurat.cli.output import table
from ziggurat.cli.value_completion import complete_format
from ziggurat.cli.word_completion import complete_among
from ziggurat.errors import UsageError
from ziggurat.workspace import dataset_versions
from ziggurat.workspace.datasets import Datasets, rows, statistics_lines

__all__ = ["dataset"]


_DATASETS = Datasets()
_DATASET_FOLDER = click.argument("folder", metavar="DATASET", type=DATASET)
_SAMPLES = click.argument("samples", nargs=-1, metavar="SAMPLE...")
_SOME_SAMPLES = click.argument("samples", nargs=-1, required=True, metavar="SAMPLE...")
_METHODS = complete_among(lambda: ("share", "group", "stem", "time", "cluster", "list"))
_OUT = click.option(
    "--out", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="Folder of the new version."
)
_NAME = click.option("--name", default="", help="Name of the new version; default: the same.")
_DUPLICATES = click.option("--leave-out-duplicates", is_flag=True, help="Keep equal samples only once.")


@click.command(cls=Command)
@_DATASET_FOLDER
@_SOME_SAMPLES
@click.option("--label", required=True, help="The right label: name, else number of a class; or JSON.")
@_OUT
@_NAME
@click.pass_obj
def relabel(application: Application, folder: Path, samples: tuple[str, ...], label: str, out: Path, name: str) -> None:
    """Give SAMPLEs (SPLIT/ROW or key) of DATASET another label."""
    _say(application, out, dataset_versions.relabel(folder, samples, label, out, name))


@click.command(cls=Command)
@_DATASET_FOLDER
@_SAMPLES
@click.option("--problem", default="", metavar="KIND", help="Also all samples with this problem.")
@click.option("--reason", default="", help="Reason, one sentence.")
@_OUT
@_NAME
@click.pass_obj
def exclude(
    application: Application,
    folder: Path,
    samples: tuple[str, ...],
    problem: str,
    reason: str,
    out: Path,
    name: str,
) -> None:
    """Exclude SAMPLEs (SPLIT/ROW or key) of DATASET."""
    made = dataset_versions.exclude(folder, samples, out, problem=problem, reason=reason, name=name)
    _say(application, out, made)


@click.command(cls=Command)
@_DATASET_FOLDER
@_SOME_SAMPLES
@click.option(
    "--to",
    required=True,
    metavar="SPLIT",
    shell_complete=complete_among(lambda: ("train", "val", "test")),
    help="train, val or test.",
)
@_OUT
@_NAME
@click.pass_obj
def move(application: Application, folder: Path, samples: tuple[str, ...], to: str, out: Path, name: str) -> None:
    """Move SAMPLEs (SPLIT/ROW or key) of DATASET to another split."""
    _say(application, out, dataset_versions.move(folder, samples, to, out, name))


@click.command(cls=Command)
@_DATASET_FOLDER
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="New name; repeatable.")
@click.option(
    "--merge", "merged", multiple=True, metavar="A,B=NAME", help="Merge several classes into one; repeatable."
)
@click.option("--drop", multiple=True, metavar="NAME", help="Remove a class; repeatable.")
@click.option("--keep", multiple=True, metavar="NAME", help="Keep only these classes; repeatable.")
@click.option("--names", default="", metavar="A,B,…", help="Names of all classes, by number.")
@click.option("--colours", default="", metavar="#RRGGBB,…", help="Color of each class in masks, beside --names.")
@_OUT
@_NAME
@click.pass_obj
def classes(application: Application, folder: Path, out: Path, name: str, **asked: Any) -> None:
    """Name, rename, merge, drop or keep classes of DATASET."""
    changes = {
        "rename": [_pair(text, "--rename") for text in asked["rename"]],
        "merge": [(names.split(","), into) for names, into in (_pair(text, "--merge") for text in asked["merged"])],
        "drop": asked["drop"],
        "keep": asked["keep"],
        "names": [text.strip() for text in asked["names"].split(",")] if asked["names"] else [],
        "colours": [_color(text.strip()) for text in asked["colours"].split(",")] if asked["colours"] else [],
    }
    _say(application, out, dataset_versions.change_classes(folder, changes, out, name))


@click.command(cls=Command)
@_DATASET_FOLDER
@click.option(
    "--method",
    default="share",
    show_default=True,
    shell_complete=_METHODS,
    help="share, group, stem, time, cluster or list.",
)
@click.option("--val-share", type=float, default=0.25, show_default=True, help="Share for validation.")
@click.option("--test-share", type=float, default=0.0, show_default=True, help="Share for the test.")
@click.option("--pattern", default="", help="For stem: regular expression of what belongs together.")
@click.option("--list", "lists", multiple=True, metavar="SPLIT=FILE", help="For list: names of samples, one a line.")
@click.option("--min-per-class", type=click.IntRange(min=0), default=0, help="Smaller classes are excluded.")
@click.option("--max-per-class", type=click.IntRange(min=1), help="Maximum per class, chosen at random.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the choice.")
@_OUT
@_NAME
@click.pass_obj
def split(application: Application, folder: Path, out: Path, name: str, lists: tuple[str, ...], **rule: Any) -> None:
    """Split the samples of DATASET again."""
    rule["lists"] = dict(_pair(text, "--list") for text in lists)
    made, warnings = dataset_versions.split_anew(folder, rule, out, name)
    for warning in warnings:
        application.output.note(f"Warning: {warning}")
    _say(application, out, made)


@click.command(cls=Command)
@click.argument("folders", nargs=-1, required=True, type=DATASET, metavar="DATASET...")
@_DUPLICATES
@_OUT
@_NAME
@click.pass_obj
def merge(
    application: Application, folders: tuple[Path, ...], leave_out_duplicates: bool, out: Path, name: str
) -> None:
    """Join DATASETs; classes are matched by name."""
    if len(folders) < 2:
        raise UsageError("There is nothing to merge: a merge takes two datasets or more.", received=str(len(folders)))
    made = dataset_versions.merge(folders, out, name=name, leave_out_duplicates=leave_out_duplicates)
    _say(application, out, made)


@click.command(cls=Command)
@_DATASET_FOLDER
@click.argument("other", type=DATASET)
@_DUPLICATES
@_OUT
@_NAME
@click.pass_obj
def append(
    application: Application, folder: Path, other: Path, leave_out_duplicates: bool, out: Path, name: str
) -> None:
    """Add the samples of OTHER to those of DATASET."""
    made = dataset_versions.add(folder, other, out, name=name, leave_out_duplicates=leave_out_duplicates)
    _say(application, out, made)


def _say(application: Application, folder: Path, manifest: Any) -> None:
    counts = {split: note.count for split, note in manifest.splits.items()}
    changes = [change for parent in manifest.parents for change in parent.changes]
    content = {"folder": str(folder), "id": manifest.id, "name": manifest.name, "splits": counts, "changes": changes}
    said = ", ".join(f"{split} {count}" for split, count in counts.items())
    application.output.document(content, f"{folder}: {said}. {' '.join(dict.fromkeys(changes))}".rstrip())


def _color(text: str) -> tuple[int, ...]:
    try:
        found = tuple(bytes.fromhex(text.removeprefix("#")))
    except ValueError:
        found = ()
    if len(found) != 3:
        raise UsageError(
            f"`{text}` is not a color: write it as #RRGGBB.", advice="Such as: --colours '#000000,#ff0000'."
        )
    return found


def _pair(text: str, option: str) -> tuple[str, str]:
    first, equals, second = text.partition("=")
    if not equals or not first or not second:
        raise UsageError(f"`{text}` is not two names with = between them.", advice=f"As in: {option} OLD=NEW.")
    return first, second


_OFFSET = click.option("--offset", type=click.IntRange(min=0), default=0, help="Number to skip.")
_LIMIT = click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=20, show_default=True, help="Number to show."
)


@click.command("list", cls=Command)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def list_(application: Application, folder: Path | None) -> None:
    """List the datasets below FOLDER; else those of the workspace."""
    found = list(rows(application.settings.workspace, folder))
    application.output.document([asdict(row) for row in found], rows_text(found))


@click.command(cls=Command)
@_DATASET_FOLDER
@click.option("--statistics", is_flag=True, help="Statistics: sizes, boxes, columns, lengths, depending on the kind.")
@click.pass_obj
def show(application: Application, folder: Path, statistics: bool) -> None:
    """Show DATASET: splits, classes, images, problems, origin."""
    content = _DATASETS.describe(str(folder))
    text = show_text(content)
    if statistics:
        found = _DATASETS.statistics(str(folder))
        content["statistics"] = found.as_json()
        text = "\n".join([text, "", *statistics_lines(found)])
    application.output.document(content, text)


@click.command(cls=Command)
@_DATASET_FOLDER
@click.option("--split", shell_complete=complete_among(lambda: ("train", "val", "test")), help="Samples of this split.")
@click.option("--class", "class_name", help="Samples of this class, or with an object of it: name or number.")
@click.option("--text", help="Samples with this in their key.")
@click.option("--problem", metavar="KIND", help="Samples with a problem of this kind; `any` for any.")
@click.option("--group", help="Samples of this group.")
@click.option("--min-width", "min_width_px", type=int, metavar="PX", help="Minimum image width.")
@click.option("--max-width", "max_width_px", type=int, metavar="PX", help="Maximum image width.")
@click.option("--min-height", "min_height_px", type=int, metavar="PX", help="Minimum image height.")
@click.option("--max-height", "max_height_px", type=int, metavar="PX", help="Maximum image height.")
@click.option("--save", metavar="FOLDER", type=click.Path(path_type=Path), help="Folder for the images of the page.")
@_OFFSET
@_LIMIT
@click.pass_obj
def explore(application: Application, folder: Path, save: Path | None, offset: int, limit: int, **chosen: Any) -> None:
    """Show samples of DATASET, page by page."""
    found, names = _DATASETS.explore(str(folder), chosen, offset=offset, limit=limit)
    text = samples_text(found, names, by_problem=chosen["problem"] is not None)
    if save is not None:
        files = _DATASETS.save_images(str(folder), [(entry.split, entry.row or 0) for entry in found.entries], save)
        text = f"{text}\n{len(files)} image{'' if len(files) == 1 else 's'} written to {save}"
    application.output.document(found.as_json(names), text)


@click.command(cls=Command)
@_DATASET_FOLDER
@click.option("--kind", help="Only problems of this kind.")
@_OFFSET
@_LIMIT
@click.pass_obj
def problems(application: Application, folder: Path, kind: str | None, offset: int, limit: int) -> None:
    """List the problems in the source of DATASET."""
    found = _DATASETS.problems(str(folder), kind, offset=offset, limit=limit)
    text = problems_text(found, _DATASETS.problem_counts(str(folder)), kind, offset)
    application.output.document([asdict(each) for each in found], text)


@click.command(cls=Command)
@_DATASET_FOLDER
@click.option("--verify", is_flag=True, help="Read every record, and compare every checksum.")
@click.option(
    "--predictions",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Class probabilities of a model (.npz, .csv), to find wrong labels.",
)
@click.pass_obj
def check(application: Application, folder: Path, verify: bool, predictions: Path | None) -> None:
    """Check a dataset: duplicates, leaks, unusual sizes and boxes, rare classes, wrong labels."""
    report = _DATASETS.check(str(folder), verify=verify, predictions=predictions)
    application.output.document(report.as_json(), report.as_text())


@click.command(cls=Command)
@_DATASET_FOLDER
@click.option("--format", "format_name", required=True, shell_complete=complete_format, help="Format to write.")
@click.option("--out", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="New or empty folder.")
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True, help="Option of the format.")
@click.pass_obj
def export(application: Application, folder: Path, format_name: str, out: Path, options: tuple[str, ...]) -> None:
    """Export DATASET in another format."""
    report = _DATASETS.export(str(folder), format_name, out, format_options(options))
    counts = ", ".join(f"{split} {count}" for split, count in report.counts.items())
    lines = [f"{out}: {counts} samples as {report.format}", *(f"  note: {note}" for note in report.notes)]
    if report.problems:
        count, first = len(report.problems), report.problems[0].reason
        lines.append(f"  {count} samples could not be written whole, the first: {first}")
    application.output.document({"folder": str(out), **asdict(report)}, "\n".join(lines))


@click.command(cls=Command)
@_DATASET_FOLDER
@click.option("--differences", "other", metavar="DATASET", type=DATASET, help="Dataset to compare with.")
@click.pass_obj
def versions(application: Application, folder: Path, other: Path | None) -> None:
    """Show the history of DATASET, newest first; or its differences from another one."""
    if other is not None:
        found = asdict(dataset_versions.what_differs(folder, other))
        rows = [(name, str(count), ", ".join(found[name][:3])) for name, count in found["counts"].items()]
        application.output.document(found, table(rows, ("samples", "count", "such as")))
        return
    notes = dataset_versions.versions(folder)
    rows = [(each.name, each.id[:16], str(each.folder or "not found"), " ".join(each.changes)) for each in notes]
    content = [{**asdict(each), "folder": None if each.folder is None else str(each.folder)} for each in notes]
    application.output.document(content, table(rows, ("name", "id", "folder", "made by")))


@click.group(cls=Group)
def dataset() -> None:
    """Create, explore, check, change and export datasets.

    A dataset is a folder that never changes; every change makes a new one.
    """


for _command in (create, again, guess, preview, formats, list_, show, explore, problems, check, export, versions):
    dataset.add_command(_command)
for _command in (relabel, exclude, move, classes, boxes, split, merge, append, map_, similar):
    dataset.add_command(_command)
