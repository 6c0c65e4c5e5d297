"""The ``ziggurat spec`` commands: show, validate and upgrade spec files, and list the fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Group
from ziggurat.cli.output import table
from ziggurat.cli.previews import rate
from ziggurat.cli.spec_flags import note_former_names
from ziggurat.layout import JobFolder
from ziggurat.specs import (
    FieldDescription,
    Spec,
    TrainSpec,
    describe_fields,
    load_spec,
    read_content,
    save_spec,
    spec_json,
)

__all__ = ["spec"]

_FILE = click.argument("file", type=click.Path(path_type=Path))


@click.group(cls=Group)
def spec() -> None:
    """Show, check and upgrade specs, and list their fields.

    FILE is a spec file or a job folder.
    """


@spec.command()
@_FILE
@click.pass_obj
def show(application: Application, file: Path) -> None:
    """Print the spec in FILE as JSON, every field with its value."""
    click.echo(spec_json(_loaded(application, file)), nl=False)


@spec.command()
@_FILE
@click.pass_obj
def validate(application: Application, file: Path) -> None:
    """Check the spec in FILE."""
    found = _loaded(application, file)
    content = {"valid": True, "kind": found.kind, "version": found.version}
    application.output.document(content, f"{file}: {application.output.word('valid')}")


@spec.command()
@click.pass_obj
def schema(application: Application) -> None:
    """List the fields of a train spec; with --json, its JSON schema."""
    rows = [_row(field) for field in describe_fields(TrainSpec)]
    text = table(rows, ("field", "for", "kind", "default", "help"))
    application.output.document(TrainSpec.model_json_schema(), text)


@spec.command()
@_FILE
@click.option("--write", is_flag=True, help="Replace FILE instead of printing.")
@click.pass_obj
def upgrade(application: Application, file: Path, write: bool) -> None:
    """Print the spec in FILE in today's version."""
    path = _spec_file(file)
    found, before = _loaded(application, path), read_content(path).get("version", 1)
    if not write:
        click.echo(spec_json(found), nl=False)
        return
    save_spec(found, path)
    content = {"file": str(path), "from": before, "to": found.version}
    application.output.document(content, f"{path}: version {before} to {found.version}")


spec.add_command(rate)


def _loaded(application: Application, file: Path) -> Spec:
    path = _spec_file(file)
    found = load_spec(path)
    note_former_names(application, read_content(path))
    return found


def _spec_file(path: Path) -> Path:
    return JobFolder(path).spec if path.is_dir() else path


def _row(field: FieldDescription) -> tuple[str, ...]:
    default = "(must be given)" if field.required else _short(field.default)
    unit = f" [{field.unit}]" if field.unit else ""
    return (field.path, field.variant, field.kind, default, field.help + unit)


def _short(default: Any) -> str:
    text = json.dumps(default, ensure_ascii=False)
    return text if len(text) <= 24 else f"{text[:23]}…"
