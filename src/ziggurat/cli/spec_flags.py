"""Flags of ``train`` and of dataset specs, one per spec field, generated from the field's declaration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.specs import (
    RENAMED,
    DatasetSpec,
    FieldDescription,
    TrainSpec,
    describe_fields,
    former_names,
    present_path,
)

__all__ = ["DatasetFlagsCommand", "SpecFlagsCommand", "flag_of", "note_former_names"]

_OTHER_FLAGS = {"backend": "--framework"}
"""Words that people use for a field beside its own."""

_METAVARS = {"integer": "N", "number": "X", "boolean": "BOOL", "list": "A,B,…", "text": "TEXT"}


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
    return click.Option([*flags, field.path], metavar=_metavar(field), help=text)


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
