"""Verbs for the source of a dataset: ``create``, ``guess``, ``preview``, ``formats``; and text output for datasets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_folders import execute, open_workspace
from ziggurat.cli.job_places import DATASET
from ziggurat.cli.output import table
from ziggurat.cli.spec import DatasetFlagsCommand
from ziggurat.cli.value_completion import complete_format
from ziggurat.errors import UsageError
from ziggurat.specs import dataset_spec_from_flags, spec_json
from ziggurat.workspace import datasets
from ziggurat.workspace.datasets import DatasetRow, Page, check_new_dataset, source_name, stored_source
from ziggurat.workspace.previews import preview_dataset

__all__ = [
    "again",
    "create",
    "format_options",
    "formats",
    "guess",
    "preview",
    "problems_text",
    "rows_text",
    "samples_text",
    "show_text",
]

_OPTION = click.option(
    "--option", "options", metavar="NAME=VALUE", multiple=True, help="Option of the format; repeatable."
)


@click.command(cls=DatasetFlagsCommand)
@click.argument("source")
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), help="Folder to create; default: a new one.")
@_OPTION
@click.option("--val-share", metavar="X", help="Share for validation, as --set splits.val_share=X.")
@click.option("--test-share", metavar="X", help="Share for the test, as --set splits.test_share=X.")
@click.option("--set", "assignments", metavar="PATH=VALUE", multiple=True, help="Part of a field; repeatable.")
@click.option("--strict", is_flag=True, help="Refuse any loss of labels, samples or names, as --losses none.")
@click.option("--dry-run", is_flag=True, help="Print the spec and exit.")
@click.option("--detach", is_flag=True, help="Run it in the background; `status` and `events` show its progress.")
@click.pass_obj
def create(
    application: Application,
    source: str,
    out: Path | None,
    options: tuple[str, ...],
    assignments: tuple[str, ...],
    dry_run: bool,
    detach: bool,
    **flags: Any,
) -> int:
    """Create a dataset from SOURCE: a folder, a file, an archive, or a URL.

    The format is guessed and shown where --format does not name it; a guess that is less than 50 % sure, or would drop
    labels, is an error that lists the likely formats. `ziggurat resume DATASET` goes on with one that was stopped.
    """
    is_strict = flags.pop("strict")
    shares = {name: flags.pop(name) for name in ("val_share", "test_share")}
    given = {name: text for name, text in flags.items() if text is not None}
    if is_strict and given.setdefault("losses", "none") != "none":
        raise UsageError(
            f"`--strict` and `--losses {given['losses']}` say different things.", advice="Give one of them."
        )
    given["source"] = stored_source(source)
    given.setdefault("name", source_name(given["source"]) if out is None else out.absolute().name)
    parts = [*assignments, *(f"splits.{name}={text}" for name, text in shares.items() if text is not None)]
    base = {"kind": "dataset", "version": 1, "options": format_options(options)}
    spec = dataset_spec_from_flags(given, assignments=parts, base=base)
    # Before a dry run ends: it prints only specs of datasets that can be made.
    check_new_dataset(spec, out)
    if dry_run:
        click.echo(spec_json(spec), nl=False)
        return 0
    folder = open_workspace(application).jobs.create(spec, out)
    return execute(application, folder, detach=detach)


@click.command(cls=Command)
@click.argument("folder", metavar="DATASET", type=DATASET)
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), help="Folder to create; default: a new one.")
@click.option("--name", default="", help="Name of the new dataset; default: the same.")
@click.option("--detach", is_flag=True, help="Run it in the background; `status` and `events` show its progress.")
@click.pass_obj
def again(application: Application, folder: Path, out: Path | None, name: str, detach: bool) -> int:
    """Create DATASET again: the same source and spec, read by the rules of this release.

    `ziggurat dataset check DATASET` says what would be otherwise. DATASET stays, as its parent.
    """
    spec = datasets.Datasets().again(str(folder))
    spec = spec.model_copy(update={"name": name or spec.name})
    check_new_dataset(spec, out)
    return execute(application, open_workspace(application).jobs.create(spec, out), detach=detach)


@click.command(cls=Command)
@click.argument("source")
@click.pass_obj
def guess(application: Application, source: str) -> None:
    """Guess the format of SOURCE, best guess first, with reasons."""
    found = datasets.recognize_source(source)
    application.output.document([vars(each) for each in found.guesses], guess_text(found))


@click.command(cls=Command)
@click.argument("source")
@click.option(
    "--format",
    "format_name",
    metavar="NAME",
    shell_complete=complete_format,
    help="Format of the source; guessed by default.",
)
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True, help="Option of the format.")
@click.option("--set", "assignments", metavar="PATH=VALUE", multiple=True, help="Field of the dataset's spec.")
@click.option("--samples", type=click.IntRange(0, 200), default=10, show_default=True, help="Number to show.")
@click.option(
    "--time-limit", type=click.FloatRange(0.1, 120), default=10.0, metavar="SECONDS", help="Time limit of the scan."
)
@click.pass_obj
def preview(
    application: Application,
    source: str,
    format_name: str | None,
    options: tuple[str, ...],
    assignments: tuple[str, ...],
    samples: int,
    time_limit: float,
) -> None:
    """Preview the dataset of SOURCE: counts, classes, some samples, problems. Nothing is created."""
    base = {"kind": "dataset", "version": 1, "options": format_options(options)}
    flags = {"source": stored_source(source), **({} if format_name is None else {"format": format_name})}
    spec = dataset_spec_from_flags(flags, assignments=assignments, base=base)
    found = preview_dataset(
        open_workspace(application).tasks, spec.model_dump(mode="json"), samples=samples, time_limit_s=time_limit
    )
    application.output.document(found, _preview_text(found))


@click.command(cls=Command)
@click.argument("name", required=False, shell_complete=complete_format)
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
            raise UsageError(f"`{text}` is not NAME=VALUE, which `--option` takes.", advice="As in: --option seed=3.")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def guess_text(found: Any) -> str:
    """Return what importers think of a source, and which guess `dataset create` takes."""
    nearest = "".join(f"\n{each}." for each in found.obstacles)
    if not found.guesses:
        return f"No format is recognized; `ziggurat dataset formats` lists those that can be read.{nearest}"
    rows = [(each.format, each.kind, f"{each.confidence:.0%}", _why(each)) for each in found.guesses]
    shown = table(rows, ("format", "kind", "sure", "why"))
    if found.chosen is None:
        return f"{shown}\nNone is taken by itself: choose one with `dataset create --format NAME`.{nearest}"
    where = f", for the folder {found.chosen.folder}, which alone holds data" if found.chosen.folder else ""
    return f"{shown}\n`dataset create` takes {found.chosen.format}{where}." if where else shown


def formats_text(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the formats that can be read and written."""
    rows = [
        (each["name"], each["title"], ", ".join(each["kinds"]), ", ".join(each["exports"]) or "-") for each in found
    ]
    return table(rows, ("format", "title", "kinds that are read", "kinds that are written"))


def format_text(one: Mapping[str, Any]) -> str:
    """Return one format with its options."""
    rows = [(each["name"], each["type"], json.dumps(each["default"]), each["help"]) for each in one["options"]]
    text = f"{one['title']}\n\n{table(rows, ('option', 'type', 'default', 'help'))}"
    names = ", ".join(one["export_options"])
    return f"{text}\n\nOptions of `ziggurat dataset export --format {one['name']}`: {names}." if names else text


def rows_text(rows: Sequence[DatasetRow]) -> str:
    """Return a list of datasets."""
    cells = [
        (row.name, row.kind, row.state, _splits(row.splits), str(row.classes), str(row.problems), row.folder)
        for row in rows
    ]
    return table(cells, ("name", "kind", "state", "samples", "classes", "problems", "folder"))


def show_text(content: Mapping[str, Any]) -> str:
    """Return what a dataset is."""
    image = content["image"]
    lines = [
        f"{content['name']}: {content['kind']}, {_splits(content['splits'])}",
        f"  folder     {content['folder']}",
        f"  id         {content['id'][:16]}",
        f"  stored in  {', '.join(content['stores'])}",
    ]
    if content["source"]:
        lines.append(f"  source     {content['source']['uri']} ({content['source']['format']})")
    if image:
        one_size = image["height_px"] and image["width_px"]
        size = f"{image['height_px']} x {image['width_px']}" if one_size else "of their own sizes"
        color = {1: "gray", 3: "color"}.get(image["channels"], "gray and color")
        lines.append(f"  images   {size}, {color}, {image['encoding']}")
    lines += [f"  made of    {parent['name']}: {' '.join(parent['changes'])}" for parent in content["parents"]]
    lost = [each["text"] for each in content["losses"]]
    lines += [f"  lost       {text}" for text in lost]
    lines += [f"  warning    {text}" for text in content["warnings"] if text not in lost]
    if content["test_openings"]:
        times = "once" if content["test_openings"] == 1 else f"{content['test_openings']} times"
        lines.append(f"  test       opened {times}")
    if content["problems"]:
        lines += ["", table([(kind, str(count)) for kind, count in content["problems"].items()], ("problem", "count"))]
    if content["classes"]:
        splits = list(content["splits"])
        found = content["classes"]
        rows = [(str(each["number"]), each["name"], *(str(each[split]) for split in splits)) for each in found]
        lines += ["", table(rows, ("class", "name", *splits))]
    return "\n".join(lines)


def page_text(page: Page, class_names: Sequence[str]) -> str:
    """Return a page of samples."""
    rows: list[tuple[str, ...]] = []
    for entry in page.entries:
        size = f"{entry.height_px} x {entry.width_px}" if entry.height_px else ""
        kinds = ", ".join(sorted({problem.kind for problem in page.problems.get(entry.key, ())}))
        rows.append((f"{entry.split}/{entry.row}", entry.key, _label(entry, class_names), size, kinds))
    shown = table(rows, ("sample", "key", "label", "size", "problems"))
    return f"{shown}\n{_place(page.offset, len(rows), page.total)}"


def problems_text(found: Sequence[Any], counts: Mapping[str, int], kind: str | None, offset: int) -> str:
    """Return some of the problems of a source, and how many there are."""
    rows = [(each.kind, each.key, "left out" if each.left_out else "", each.reason) for each in found]
    total = sum(counts.values()) if kind is None else counts.get(kind, 0)
    text = f"{table(rows, ('kind', 'key', '', 'reason'))}\n{_place(offset, len(rows), total)}"
    kinds = ", ".join(counts)
    return text if total or not kinds else f"{text}\nKinds of problems here: {kinds}."


def samples_text(page: Page, class_names: Sequence[str], *, by_problem: bool) -> str:
    """Return a page of samples, and where those are that a problem kept out."""
    text = page_text(page, class_names)
    if page.total or not by_problem:
        return text
    return f"{text}\nSamples that were left out are listed by: ziggurat dataset problems DATASET"


def _why(guess: Any) -> str:
    where = f" (in the folder {guess.folder})" if guess.folder else ""
    lost = f"; would lose {guess.loses}" if guess.loses else ""
    return f"{guess.reason}{where}{lost}"


def _label(entry: Any, class_names: Sequence[str]) -> str:
    if entry.class_number is not None and 0 <= entry.class_number < len(class_names):
        return class_names[int(entry.class_number)]
    if entry.objects is not None:
        return f"{entry.objects} object{'' if entry.objects == 1 else 's'}"
    text = "" if entry.label is None else str(entry.label)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _place(offset: int, shown: int, total: int) -> str:
    return f"{offset + 1} to {offset + shown} of {total}" if shown else f"none of {total}"


def _splits(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{split} {count}" for split, count in counts.items())


def _preview_text(found: Mapping[str, Any]) -> str:
    counts = found["counts"]
    said = "" if counts["is_complete"] else "at least "
    splits = ", ".join(f"{split} {counts[split]}" for split in ("train", "val", "test") if counts[split])
    lines = [
        f"{found['title']} ({found['format']}, {found['confidence']:.0%} sure), kind {found['kind']}",
        f"{said}{counts['total']} samples: {splits}",
        "",
        table([(each["name"], _count(each["count"])) for each in found["classes"]], ("class", "samples")),
        "",
        table([_sample(each) for each in found["samples"]], ("sample", "label", "content")),
    ]
    lost = [each["text"] for each in found["losses"]]
    lines += _listed("Lost", lost)
    lines += _listed("Problems", [f"{each['key']}: {each['reason']}" for each in found["problems"]])
    lines += _listed("Warnings", [each for each in found["warnings"] if each not in lost])
    lines += _listed("No dataset would be made of it", [found["refused"]] if found["refused"] else [])
    return "\n".join(lines)


def _sample(each: Mapping[str, Any]) -> tuple[str, str, str]:
    size = "" if each["width_px"] is None else f"{each['width_px']} x {each['height_px']} px"
    text = " ".join((each["text"] or size).split())
    return each["key"], each["label"], text if len(text) <= 60 else f"{text[:59]}…"


def _count(count: int | None) -> str:
    return "-" if count is None else str(count)


def _listed(title: str, texts: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {text}" for text in texts)] if texts else []
