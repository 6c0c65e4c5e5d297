"""Preview commands before a job is created: the learning rate of a spec, and the content of a dataset source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.dataset_create import format_options
from ziggurat.cli.output import table
from ziggurat.cli.spec_flags import note_former_names
from ziggurat.layout import JobFolder
from ziggurat.specs import dataset_spec_from_flags, read_content
from ziggurat.workspace.dataset_previews import preview_dataset
from ziggurat.workspace.new_dataset import stored_source
from ziggurat.workspace.rate_curve import rate_curve
from ziggurat.workspace.tasks import Tasks

__all__ = ["preview", "rate"]


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--points", type=click.IntRange(2, 10_000), default=21, show_default=True, help="How many rows at most.")
@click.option("--steps-per-epoch", type=click.IntRange(1), help="Where the spec does not say them.")
@click.pass_obj
def rate(application: Application, file: Path, points: int, steps_per_epoch: int | None) -> None:
    """Show the learning rate over the training that the spec in FILE asks for.

    FILE is a spec file or a job folder.
    """
    content = read_content(JobFolder(file).spec if file.is_dir() else file)
    note_former_names(application, content)
    found = rate_curve(content, points=points, steps_per_epoch=steps_per_epoch)
    rows = [(f"{epoch:.3f}", f"{each:.6g}") for epoch, each in zip(found["epochs"], found["rates"])]
    application.output.document(found, f"{table(rows, ('epoch', 'rate'))}\n\n{found['sentence']}")


@click.command(cls=Command)
@click.argument("source")
@click.option("--format", "format_name", metavar="NAME", help="What it is written in; left out, it is guessed.")
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True, help="Option of the format.")
@click.option("--set", "assignments", metavar="PATH=VALUE", multiple=True, help="Field of the dataset's spec.")
@click.option("--samples", type=click.IntRange(0, 200), default=10, show_default=True, help="How many are shown.")
@click.option(
    "--time-limit", type=click.FloatRange(0.1, 120), default=10.0, metavar="SECONDS", help="How long to look."
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
    """Show what a dataset would be made of SOURCE: counts, classes, some samples, problems. Nothing is made."""
    base = {"kind": "dataset", "version": 1, "options": format_options(options)}
    flags = {"source": stored_source(source), **({} if format_name is None else {"format": format_name})}
    spec = dataset_spec_from_flags(flags, assignments=assignments, base=base)
    found = preview_dataset(
        Tasks(application.settings), spec.model_dump(mode="json"), samples=samples, time_limit_s=time_limit
    )
    application.output.document(found, _preview_text(found))


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
    lines += _listed("Problems", [f"{each['key']}: {each['reason']}" for each in found["problems"]])
    lines += _listed("Warnings", found["warnings"])
    return "\n".join(lines)


def _sample(each: Mapping[str, Any]) -> tuple[str, str, str]:
    size = "" if each["width_px"] is None else f"{each['width_px']} x {each['height_px']} px"
    text = " ".join((each["text"] or size).split())
    return each["key"], each["label"], text if len(text) <= 60 else f"{text[:59]}…"


def _count(count: int | None) -> str:
    return "-" if count is None else str(count)


def _listed(title: str, texts: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {text}" for text in texts)] if texts else []
