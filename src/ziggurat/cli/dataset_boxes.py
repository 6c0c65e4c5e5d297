"""``ziggurat dataset boxes``: corrections of boxes, image by image."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.job_places import DATASET
from ziggurat.cli.output import table
from ziggurat.errors import DataError
from ziggurat.workspace.box_corrections import BoxCorrections, ImageBoxes
from ziggurat.workspace.datasets import Datasets

__all__ = ["boxes"]

_BOXES: Final = BoxCorrections(Datasets())
_FOLDER = click.argument("folder", metavar="DATASET", type=DATASET)
_SAMPLE = click.argument("sample")
_ON = click.option(
    "--on", type=click.IntRange(min=0), help="Number of the state that is changed, as `show` gives it; default: newest."
)


@click.group(cls=Group)
def boxes() -> None:
    """Correct the boxes of a detection dataset.

    Corrections stand beside the dataset until `version` makes a dataset of them.
    """


@click.command(cls=Command)
@_FOLDER
@_SAMPLE
@click.pass_obj
def show(application: Application, folder: Path, sample: str) -> None:
    """Show the boxes of SAMPLE (SPLIT/ROW or key) in DATASET as they stand."""
    _say(application, _BOXES.get(str(folder), sample))


@click.command("set", cls=Command)
@_FOLDER
@_SAMPLE
@click.argument("file", type=click.Path(path_type=Path))
@_ON
@click.pass_obj
def set_(application: Application, folder: Path, sample: str, file: Path, on: int | None) -> None:
    """Replace the boxes of SAMPLE by those in FILE.

    FILE is JSON: a list of objects with `class`, `box` (left, top, right, bottom) and `source`, or what `show --json`
    writes.
    """
    content = _content(file)
    objects, version = (content["objects"], content.get("version")) if isinstance(content, dict) else (content, None)
    version = version if on is None else on
    _say(application, _BOXES.save(str(folder), sample, objects, version=_version(folder, sample, version)))


@click.command(cls=Command)
@_FOLDER
@_SAMPLE
@_ON
@click.pass_obj
def undo(application: Application, folder: Path, sample: str, on: int | None) -> None:
    """Undo the newest change of the boxes of SAMPLE."""
    _say(application, _BOXES.undo(str(folder), sample, version=_version(folder, sample, on)))


@click.command(cls=Command)
@_FOLDER
@_SAMPLE
@_ON
@click.pass_obj
def discard(application: Application, folder: Path, sample: str, on: int | None) -> None:
    """Take the boxes of SAMPLE as the dataset has them; `undo` brings the corrections back."""
    _say(application, _BOXES.discard(str(folder), sample, version=_version(folder, sample, on)))


@click.command("list", cls=Command)
@_FOLDER
@click.pass_obj
def list_(application: Application, folder: Path) -> None:
    """List the images of DATASET with corrected boxes that are not a version yet."""
    found = _BOXES.pending(str(folder))
    rows = [(f"{each.split}/{each.row}", each.key, each.changes, each.user) for each in found]
    text = table(rows, ("sample", "key", "changes", "user")) if rows else "No boxes are corrected."
    application.output.document([asdict(each) for each in found], text)


@click.command(cls=Command)
@_FOLDER
@click.argument("samples", nargs=-1, metavar="[SAMPLE]...")
@click.option(
    "--out", required=True, metavar="FOLDER", type=click.Path(path_type=Path), help="Folder of the new version."
)
@click.option("--name", default="", help="Name of the new version; default: the same.")
@click.pass_obj
def version(application: Application, folder: Path, samples: tuple[str, ...], out: Path, name: str) -> None:
    """Make a version of the corrected boxes of SAMPLEs of DATASET, or of all."""
    made = _BOXES.apply(str(folder), out, samples=samples, new_name=name)
    changes = [change for parent in made.parents for change in parent.changes]
    counts = {split: note.count for split, note in made.splits.items()}
    content = {"folder": str(out), "id": made.id, "name": made.name, "splits": counts, "changes": changes}
    application.output.document(content, f"{out}: {' '.join(changes)}")


for _command in (show, set_, undo, discard, list_, version):
    boxes.add_command(_command)


def _version(folder: Path, sample: str, on: int | None) -> int:
    return _BOXES.get(str(folder), sample).state.version if on is None else on


def _content(file: Path) -> Any:
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"`{file}` cannot be read as JSON: {error}.") from None
    objects = content.get("objects") if isinstance(content, dict) else content
    if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
        raise DataError(
            f"`{file}` has no boxes: it is neither a list of objects nor an object with `objects`.",
            advice="`ziggurat dataset boxes show DATASET SAMPLE --json` shows the form.",
        )
    return content


def _say(application: Application, found: ImageBoxes) -> None:
    content = found.as_json()
    rows = [
        (str(place), _class(found, each["class"]), *(f"{side:g}" for side in each["box"]), _notes(each))
        for place, each in enumerate(content["objects"])
    ]
    titles = ("box", "class", "left", "top", "right", "bottom", "notes")
    changes = content["changes"] or "as in the dataset"
    title = f"{found.split}/{found.row} ({found.key}), state {found.state.version}: {changes}"
    application.output.document(content, f"{title}\n{table(rows, titles)}" if rows else f"{title}\nno boxes")


def _class(found: ImageBoxes, number: int) -> str:
    return found.class_names[number] if 0 <= number < len(found.class_names) else "ignored"


def _notes(content: dict[str, Any]) -> str:
    notes = [name for name in ("crowd", "difficult", "polygons", "mask") if content.get(name)]
    return ", ".join([*(["new"] if content["source"] is None else []), *notes])
