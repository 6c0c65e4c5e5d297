"""Commands that show jobs: ``status`` and ``events``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_text import event_text, status_text
from ziggurat.cli.studio import open_workspace
from ziggurat.errors import UnknownNameError
from ziggurat.events import EVENT_TYPES, Event, encode_event

__all__ = ["events", "status"]


@click.command(cls=Command)
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDER...")
@click.pass_obj
def status(application: Application, folders: tuple[Path, ...]) -> None:
    """Show how the jobs in FOLDERs are; with --json, one line each."""
    workspace, output = open_workspace(application), application.output
    for folder in folders:
        found = workspace.status(folder)
        output.line(found.as_dict(), status_text(found, output))


@click.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--follow", is_flag=True, help="Wait for what is still to happen, until the job ends.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only this type, such as scalar; may be repeated.")
@click.option("--tag", "tags", multiple=True, help="Only this curve; may be repeated.")
@click.pass_obj
def events(application: Application, folder: Path, follow: bool, types: tuple[str, ...], tags: tuple[str, ...]) -> None:
    """Show what happened in the job in FOLDER; with --json, the lines of its events.jsonl."""
    for name in types:
        if name not in EVENT_TYPES:
            raise UnknownNameError("type of event", name, EVENT_TYPES)
    outputs, output = open_workspace(application).outputs, application.output
    for event in outputs.follow_events(str(folder)) if follow else outputs.events(str(folder)):
        if _is_wanted(event, types, tags):
            output.line(json.loads(encode_event(event)), event_text(event))


def _is_wanted(event: Event, types: tuple[str, ...], tags: tuple[str, ...]) -> bool:
    return (not types or event.type in types) and (not tags or getattr(event, "tag", None) in tags)
