"""Verbs that create a new version of a dataset: labels, samples, classes, splits, merging."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.errors import UsageError
from ziggurat.workspace import dataset_versions

__all__ = ["append", "classes", "exclude", "merge", "move", "relabel", "split"]

_FOLDER = click.argument("folder", type=click.Path(path_type=Path))
_SAMPLES = click.argument("samples", nargs=-1, metavar="SAMPLE...")
_SOME_SAMPLES = click.argument("samples", nargs=-1, required=True, metavar="SAMPLE...")
_OUT = click.option(
    "--out", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="Folder of the new version."
)
_NAME = click.option("--name", default="", help="What people call the new version; else as before.")
_DUPLICATES = click.option("--leave-out-duplicates", is_flag=True, help="Take a content that several have only once.")


@click.command(cls=Command)
@_FOLDER
@_SOME_SAMPLES
@click.option("--label", required=True, help="The right label: name, else number of a class; or JSON.")
@_OUT
@_NAME
@click.pass_obj
def relabel(application: Application, folder: Path, samples: tuple[str, ...], label: str, out: Path, name: str) -> None:
    """Give SAMPLEs (SPLIT/ROW or key) of FOLDER another label."""
    _say(application, out, dataset_versions.relabel(folder, samples, label, out, name))


@click.command(cls=Command)
@_FOLDER
@_SAMPLES
@click.option("--problem", default="", metavar="KIND", help="All samples with this problem as well.")
@click.option("--reason", default="", help="One sentence for the record.")
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
    """Leave SAMPLEs (SPLIT/ROW or key) of FOLDER out."""
    made = dataset_versions.exclude(folder, samples, out, problem=problem, reason=reason, name=name)
    _say(application, out, made)


@click.command(cls=Command)
@_FOLDER
@_SOME_SAMPLES
@click.option("--to", required=True, metavar="SPLIT", help="train, val or test.")
@_OUT
@_NAME
@click.pass_obj
def move(application: Application, folder: Path, samples: tuple[str, ...], to: str, out: Path, name: str) -> None:
    """Move SAMPLEs (SPLIT/ROW or key) of FOLDER to another split."""
    _say(application, out, dataset_versions.move(folder, samples, to, out, name))


@click.command(cls=Command)
@_FOLDER
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Another name; may be repeated.")
@click.option("--merge", "merged", multiple=True, metavar="A,B=NAME", help="One class of several; may be repeated.")
@click.option("--drop", multiple=True, metavar="NAME", help="Leave a class out; may be repeated.")
@click.option("--keep", multiple=True, metavar="NAME", help="Leave all others out; may be repeated.")
@_OUT
@_NAME
@click.pass_obj
def classes(application: Application, folder: Path, out: Path, name: str, **asked: tuple[str, ...]) -> None:
    """Rename, merge, drop or keep classes of FOLDER."""
    changes = {
        "rename": [_pair(text, "--rename") for text in asked["rename"]],
        "merge": [(names.split(","), into) for names, into in (_pair(text, "--merge") for text in asked["merged"])],
        "drop": asked["drop"],
        "keep": asked["keep"],
    }
    _say(application, out, dataset_versions.change_classes(folder, changes, out, name))


@click.command(cls=Command)
@_FOLDER
@click.option("--method", default="share", show_default=True, help="share, group, stem, time, cluster or list.")
@click.option("--val-share", type=float, default=0.25, show_default=True, help="Share for validation.")
@click.option("--test-share", type=float, default=0.0, show_default=True, help="Share for the test.")
@click.option("--pattern", default="", help="For stem: regular expression of what belongs together.")
@click.option("--list", "lists", multiple=True, metavar="SPLIT=FILE", help="For list: names of samples, one a line.")
@click.option("--min-per-class", type=click.IntRange(min=0), default=0, help="Smaller classes are left out.")
@click.option("--max-per-class", type=click.IntRange(min=1), help="Of larger classes, so many by chance.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the choice.")
@_OUT
@_NAME
@click.pass_obj
def split(application: Application, folder: Path, out: Path, name: str, lists: tuple[str, ...], **rule: Any) -> None:
    """Divide the samples of FOLDER anew."""
    rule["lists"] = dict(_pair(text, "--list") for text in lists)
    made, warnings = dataset_versions.split_anew(folder, rule, out, name)
    for warning in warnings:
        application.output.note(f"Warning: {warning}")
    _say(application, out, made)


@click.command(cls=Command)
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDER...")
@_DUPLICATES
@_OUT
@_NAME
@click.pass_obj
def merge(
    application: Application, folders: tuple[Path, ...], leave_out_duplicates: bool, out: Path, name: str
) -> None:
    """Make one dataset of the FOLDERs; classes are matched by their names."""
    if len(folders) < 2:
        raise UsageError("A merge takes two datasets or more.", received=str(len(folders)))
    made = dataset_versions.merge(folders, out, name=name, leave_out_duplicates=leave_out_duplicates)
    _say(application, out, made)


@click.command(cls=Command)
@_FOLDER
@click.argument("other", type=click.Path(path_type=Path))
@_DUPLICATES
@_OUT
@_NAME
@click.pass_obj
def append(
    application: Application, folder: Path, other: Path, leave_out_duplicates: bool, out: Path, name: str
) -> None:
    """Add the samples of OTHER to those of FOLDER."""
    made = dataset_versions.add(folder, other, out, name=name, leave_out_duplicates=leave_out_duplicates)
    _say(application, out, made)


def _say(application: Application, folder: Path, manifest: Any) -> None:
    counts = {split: note.count for split, note in manifest.splits.items()}
    changes = [change for parent in manifest.parents for change in parent.changes]
    content = {"folder": str(folder), "id": manifest.id, "name": manifest.name, "splits": counts, "changes": changes}
    said = ", ".join(f"{split} {count}" for split, count in counts.items())
    application.output.document(content, f"{folder}: {said}. {' '.join(dict.fromkeys(changes))}".rstrip())


def _pair(text: str, option: str) -> tuple[str, str]:
    first, equals, second = text.partition("=")
    if not equals or not first or not second:
        raise UsageError(
            f"`{option}` takes two names with = between them.", received=text, advice=f"As in: {option} OLD=NEW."
        )
    return first, second
