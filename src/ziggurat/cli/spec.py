"""``ziggurat spec``: show, check and upgrade specs; and the flags of commands that take the fields of a spec."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.output import table
from ziggurat.cli.value_completion import complete_field
from ziggurat.layout import JobFolder
from ziggurat.specs import (
    RENAMED,
    DatasetSpec,
    FieldDescription,
    Spec,
    TrainSpec,
    describe_fields,
    former_names,
    load_spec,
    present_path,
    read_content,
    save_spec,
    spec_json,
)
from ziggurat.workspace.previews import rate_curve

__all__ = ["DatasetFlagsCommand", "SpecFlagsCommand", "flag_of", "note_former_names", "spec"]

_FILE = click.argument("file", type=click.Path(path_type=Path))

_OTHER_FLAGS = {"backend": "--framework"}
"""Words that people use for a field beside its own."""

_METAVARS = {"integer": "N", "number": "X", "boolean": "BOOL", "list": "A,B,…", "text": "TEXT"}


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


@spec.command("check")
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
    """Print the spec in FILE in the current version."""
    path = _spec_file(file)
    found, before = _loaded(application, path), read_content(path).get("version", 1)
    if not write:
        click.echo(spec_json(found), nl=False)
        return
    save_spec(found, path)
    content = {"file": str(path), "from": before, "to": found.version}
    application.output.document(content, f"{path}: version {before} to {found.version}")


@spec.command()
@_FILE
@click.option("--points", type=click.IntRange(2, 10_000), default=21, show_default=True, help="Maximum number of rows.")
@click.option("--steps-per-epoch", type=click.IntRange(1), help="Steps per epoch, if not in the spec.")
@click.pass_obj
def rate(application: Application, file: Path, points: int, steps_per_epoch: int | None) -> None:
    """Show the learning-rate schedule of the spec in FILE.

    FILE is a spec file or a job folder.
    """
    content = read_content(_spec_file(file))
    note_former_names(application, content)
    found = rate_curve(content, points=points, steps_per_epoch=steps_per_epoch)
    rows = [(f"{epoch:.3f}", f"{each:.6g}") for epoch, each in zip(found["epochs"], found["rates"])]
    application.output.document(found, f"{table(rows, ('epoch', 'rate'))}\n\n{found['sentence']}")


def _loaded(application: Application, file: Path) -> Spec:
    path = _spec_file(file)
    found = load_spec(path)
    note_former_names(application, read_content(path))
    return found


def _spec_file(path: Path) -> Path:
    return JobFolder(path).spec if path.is_dir() else path


def _row(field: FieldDescription) -> tuple[str, ...]:
    default = "(must be given)" if field.required else _short_default(field.default)
    unit = f" [{field.unit}]" if field.unit else ""
    return (field.path, field.variant, field.kind, default, field.help + unit)


def _short_default(default: Any) -> str:
    text = json.dumps(default, ensure_ascii=False)
    return text if len(text) <= 24 else f"{text[:23]}…"


class SpecFlagsCommand(Command):
    """A command with a flag for each field at the top of a spec, listed under the fields' groups."""

    model: Any = TrainSpec
    """The spec."""

    without: tuple[str, ...] = ()
    """Fields that are given in another way."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        fields = describe_fields(self.model)
        self._fields = [field for field in fields if field.is_top and field.path not in self.without]
        self.params.extend(_option(field) for field in self._fields)
        kind = self.model.model_fields["kind"].default
        former = [path for path in RENAMED.get(kind, {}) if "." not in path]
        self.params.extend(click.Option(["--" + path.replace("_", "-"), path], hidden=True) for path in former)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options first, then the fields group by group."""
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        records = {option.name: option.get_help_record(ctx) for option in options}
        names = {field.path for field in self._fields}
        with formatter.section("Options"):
            formatter.write_dl([record for name, record in records.items() if name not in names and record])
        for group in dict.fromkeys(field.group for field in self._fields):
            found = [records[field.path] for field in self._fields if field.group == group]
            with formatter.section(group):
                formatter.write_dl([record for record in found if record])


class DatasetFlagsCommand(SpecFlagsCommand):
    """The same for the spec of a dataset, whose source is an argument."""

    model = DatasetSpec
    without = ("source", "options")


def flag_of(field: FieldDescription) -> str:
    """Return the flag of a field: ``--learning-rate`` for ``learning_rate``."""
    return "--" + field.path.replace("_", "-")


def note_former_names(
    application: Application,
    content: Mapping[str, Any] | None,
    paths: Iterable[str] = (),
    assignments: Iterable[str] = (),
) -> None:
    """Tell which fields have another name now.

    Args:
        application: says it.
        content: of a spec file; None where there is none.
        paths: of fields that are given as flags.
        assignments: ``PATH=VALUE`` texts.
    """
    given = [*paths, *(each.partition("=")[0].strip() for each in assignments)]
    found = {path: present_path(path) for path in given if present_path(path) != path}
    for old, new in {**former_names(content or {}), **found}.items():
        application.output.note(f"`{old}` is named `{new}` now; the former name is still read.")


def _option(field: FieldDescription) -> click.Option:
    default = "" if field.required or field.default in (None, "", [], {}) else f"  [{_short(field)}]"
    unit = f" ({field.unit})" if field.unit and field.unit not in field.help else ""
    choices = f" One of {', '.join(field.choices)}." if field.tag and field.tag == field.short_form else ""
    text = f"{field.help}{choices}{unit}{default}"
    flags = [flag_of(field), *filter(None, [_OTHER_FLAGS.get(field.path)])]
    complete = complete_field(field.path, field.choices)
    return click.Option([*flags, field.path], metavar=_metavar(field), help=text, shell_complete=complete)


def _metavar(field: FieldDescription) -> str:
    if field.kind == "choice":
        return f"[{'|'.join(field.choices)}]"
    if field.kind == "object":
        return field.short_form.upper() or "JSON"
    return _METAVARS[field.kind]


def _short(field: FieldDescription) -> str:
    default = field.default
    if isinstance(default, dict):
        parts = [f"{name}={value}" for name, value in default.items() if value is not None]
        return str(default[field.tag]) if field.tag else ", ".join(parts)
    if isinstance(default, list):
        return ",".join(str(part.get("name") if isinstance(part, dict) else part) for part in default)
    return str(default)
