"""Pages on topics other than library names: errors, events, specs, settings, the job folder, commands."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

import click

from tools.reference.describe import code, dataclass_table, signature_text
from tools.reference.markdown import cell, docstring, render, table
from tools.reference.names import modules_below

__all__ = ["commands_page", "docstring_page", "errors_page", "events_page", "settings_page", "specs_page"]

_SPECS = """A field below another is written with a dot. Where a field exists for one variant only, such as the
`gamma` of the schedule `step`, the column *where it is* names the variant."""


def errors_page() -> str:
    """Return the tree of errors, with the code and the exit code of each."""
    module = importlib.import_module("ziggurat.errors")
    rows = [
        (f"{'&emsp;' * depth}`{cls.__name__}`", f"`{cls.code}`", str(cls.exit_code), cell(_first_paragraph(cls)))
        for cls, depth in _tree(module.ZigguratError)
        if cls.__module__ == module.__name__
    ]
    parts = ["# Errors", render(docstring(module)), table(("error", "code", "exit code", "meaning"), rows)]
    for cls, _depth in _tree(module.ZigguratError):
        if cls.__module__ == module.__name__ and cls.__init__ is not _above(cls).__init__:
            parts += [f"## `{cls.__name__}{signature_text(cls)}`", render(docstring(cls))]
    return "\n\n".join(parts)


def events_page() -> str:
    """Return the events of ``events.jsonl``: type, version and fields of each."""
    module = importlib.import_module("ziggurat.events")
    parts = ["# Events", render(docstring(module))]
    for cls in _own(module, dataclasses.is_dataclass):
        if getattr(cls, "type", ""):
            text = docstring(cls).split("\nArgs:")[0].strip()
            parts += [f"## `{cls.type}`", f"`{cls.__name__}`, version {cls.version}. {render(text)}"]
            parts.append(dataclass_table(cls))
    return "\n\n".join(parts)


def operations_page() -> str:
    """Return the table of operations: who may, and where each is reached."""
    operations = importlib.import_module("ziggurat.operations").OPERATIONS
    rows = [
        (
            f"`{each.name}`",
            each.role,
            f"`{each.rest}`",
            f"`{each.client}`" if each.client else "",
            f"`ziggurat {each.command}`" if each.command else "",
            ", ".join(f"`{action}`" for action in each.actions),
        )
        for each in operations.values()
    ]
    titles = ("Operation", "Role", "Route below `/api/v1`", "Method of the client", "Command", "In the audit log")
    return "\n\n".join(["# Operations", _OPERATIONS, table(titles, rows)])


_OPERATIONS = """What people can change in a studio. Every operation is done by its page, by the
[REST API](rest.md), by `Client.call` and by `ziggurat call OPERATION FIELD=TEXT`, but for the two that give a file.
Most have a method of the Python client or a command of their own. It needs at least the role of its row, and leaves an
entry in the audit log (see [users and tokens](../how-to/users-and-tokens.md))."""


def specs_page() -> str:
    """Return every field of every spec that a person can set, group by group."""
    describe = importlib.import_module("ziggurat.specs.describe")
    parts = ["# Specs", render(docstring(importlib.import_module("ziggurat.specs"))), _SPECS]
    for module in modules_below("ziggurat.specs"):
        for cls in _own(module, lambda value: {"kind", "version"} <= set(getattr(value, "model_fields", ()))):
            kind, version = (cls.model_fields[name].default for name in ("kind", "version"))
            parts += [f"## A job of the kind `{kind}`, version {version}", render(docstring(cls))]
            fields = describe.describe_fields(cls)
            for group in dict.fromkeys(field.group for field in fields):
                parts += [f"### {group}", _field_table([field for field in fields if field.group == group])]
    return "\n\n".join(parts)


def settings_page() -> str:
    """Return every setting with its key, variable, flag and default."""
    module = importlib.import_module("ziggurat.settings")
    rows = [
        (
            f"`{setting.name}`",
            f"`{setting.variable}`",
            code(setting.flag),
            code("" if setting.default is None else str(setting.default)),
            code(", ".join(setting.choices)),
            cell(setting.help),
        )
        for setting in module.describe_settings()
    ]
    header = ("key in the file", "variable", "flag", "default", "choices", "meaning")
    return "\n\n".join(["# Settings", render(docstring(module)), table(header, rows)])


def docstring_page(title: str, module: str, intro: str) -> str:
    """Return a page that shows a module's docstring."""
    return "\n\n".join([f"# {title}", intro, render(docstring(importlib.import_module(module)))])


def commands_page(module: str) -> str:
    """Return every command of the shell with its help, its arguments and its options."""
    root = importlib.import_module(module).root
    parts = ["# Commands", "Exit codes stand in [errors](errors.md)."]
    for context in _contexts(click.Context(root, info_name="ziggurat")):
        command = context.command
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
        parts += [f"## `{context.command_path}`", render(_dedent(command.help or docstring(command)))]
        parts += [f"```text\n{usage}\n```", _options(context)]
    return "\n\n".join(part for part in parts if part)


def _first_paragraph(cls: Any) -> str:
    return docstring(cls).split("\n\n")[0]


def _tree(cls: Any, depth: int = 0) -> Iterator[tuple[Any, int]]:
    yield cls, depth
    for below in sorted(cls.__subclasses__(), key=lambda each: (each.exit_code, each.__name__)):
        yield from _tree(below, depth + 1)


def _above(cls: Any) -> Any:
    return cls.__mro__[1]


def _own(module: Any, wanted: Any) -> list[Any]:
    """Return the public classes that a module defines, in the order of their definition."""
    return [
        value
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and name[0] != "_" and wanted(value)
    ]


def _field_table(fields: Iterable[Any]) -> str:
    rows = [
        (
            f"`{field.path}`",
            code(field.variant),
            field.kind,
            "(must be given)" if field.required else code(json.dumps(field.default)),
            cell(field.unit),
            _bounds(field),
            cell(f"{field.title}: {field.help}"),
        )
        for field in fields
    ]
    return table(("field", "where it is", "type", "default", "unit", "values", "meaning"), rows)


def _bounds(field: Any) -> str:
    if field.choices:
        return ", ".join(code(choice) for choice in field.choices)
    low, high = ("" if bound is None else f"{bound:.12g}" for bound in (field.minimum, field.maximum))
    return f"{low} to {high}" if low and high else f"from {low}" if low else f"to {high}" if high else ""


def _dedent(text: str) -> str:
    return "\n".join(line.strip() if line.strip() != "\b" else "" for line in text.splitlines()).strip()


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None and not command.hidden:
                yield from _contexts(click.Context(command, info_name=name, parent=context))


def _options(context: click.Context) -> str:
    records = [parameter.get_help_record(context) for parameter in context.command.get_params(context)]
    rows = [(f"`{names}`".replace("|", "\\|"), cell(said)) for names, said in filter(None, records)]
    return table(("option", "meaning"), rows) if rows else ""
