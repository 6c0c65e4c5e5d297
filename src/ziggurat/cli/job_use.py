"""Commands of ``ziggurat job`` that use a model in a job of its own: ``evaluate`` and ``infer``."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_reach import JobId, reaches_studio, studio_client
from ziggurat.cli.output import table

__all__ = ["job_evaluate", "job_infer"]

_CHECKPOINT = click.option(
    "--checkpoint", metavar="NAME", default="", help="Such as best or latest; else the best, or the latest."
)
_WAIT = click.option("--wait", is_flag=True, help="Wait until it is done, and show what was found.")


@click.command("evaluate", cls=Command)
@click.argument("model_id", metavar="MODEL", type=JobId())
@click.option(
    "--split", type=click.Choice(["train", "val", "test"]), default="val", show_default=True, help="Of its data."
)
@_CHECKPOINT
@_WAIT
@reaches_studio
@click.pass_obj
def job_evaluate(
    application: Application, model_id: str, split: str, checkpoint: str, wait: bool, **studio: Any
) -> None:
    """Put the evaluation of the job MODEL, on every sample of a split, into the queue."""
    with studio_client(application, studio) as client:
        made = client.evaluations.create(model_id, split=split, checkpoint=checkpoint)
        _show(application, client, made, wait=wait)


@click.command("infer", cls=Command)
@click.argument("model_id", metavar="MODEL", type=JobId())
@click.argument("source")
@click.option("--image-folder", metavar="FOLDER", default="", help="Where relative paths of a list begin.")
@click.option("--top", type=click.IntRange(1, 5), default=5, show_default=True, help="Classes kept of each image.")
@click.option("--limit", type=click.IntRange(min=0), default=0, help="Images at most; 0 for all.")
@_CHECKPOINT
@_WAIT
@reaches_studio
@click.pass_obj
def job_infer(
    application: Application, model_id: str, source: str, image_folder: str, wait: bool, **chosen: Any
) -> None:
    """Let the job MODEL predict for all images of SOURCE, in a job of its own.

    SOURCE is a folder of the studio's machine, or a text file there: in each line a path and, where it is known, the
    label, a class number or a name. `ziggurat job predict` sends single images of this machine.
    """
    asked = {name: chosen.pop(name) for name in ("top", "limit", "checkpoint")}
    # Where the studio is asked by its address, a relative path is not known there, and it says so.
    here = chosen.get("server") is None
    places = [
        os.path.abspath(each) if each and here and Path(each).exists() else each for each in (source, image_folder)
    ]
    with studio_client(application, chosen) as client:
        made = client.evaluations.create_many(model_id, places[0], image_folder=places[1], **asked)
        _show(application, client, made, wait=wait)


def _show(application: Application, client: Any, made: Mapping[str, Any], *, wait: bool) -> None:
    """Show the job, or what it found."""
    if not wait:
        application.output.document(made, f"{made['id']} {made['name']} is {made['state']}.")
        return
    client.wait(made["id"])
    found = client.evaluations.summary(made["id"])
    application.output.document({**found, "id": made["id"]}, _text(made["id"], found))


def _text(job_id: str, found: Mapping[str, Any]) -> str:
    lines = [f"{job_id}: {found['count']} samples by {found['checkpoint']}"]
    if found["skipped"]:
        lines.append(f"{found['skipped']} could not be read.")
    if found["openings"] is not None:
        lines.append(f"The test split was measured on {found['openings']} times.")
    for word in ("accuracy", "top5"):
        if found[word] is not None:
            lines.append(f"{word} {found[word]:.2%}")
    lines += [f"{name} {value:.5g}" for name, value in found["scalars"].items() if name != "accuracy"]
    rows = [
        (each["name"], *(_share(each[name]) for name in ("precision", "recall", "f1")), str(each["support"]))
        for each in found["per_class"]
    ]
    return "\n".join([*lines, *([table(rows, ("class", "precision", "recall", "f1", "samples"))] if rows else [])])


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2%}"
