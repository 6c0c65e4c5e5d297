"""A training as shell command, JSON, and Python program."""

from __future__ import annotations

import json
import pprint
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from ziggurat.errors import SpecError
from ziggurat.specs import FieldDescription, TrainSpec, ZooNetwork, describe_fields, spec_from_flags, spec_json

__all__ = ["command_line", "python_program", "short_content", "spec_document"]

_COLUMNS: Final = 100


def short_content(spec: TrainSpec) -> dict[str, Any]:
    """Return the content of a spec without what has its default; parsed again, it is the same spec."""
    content = _changed(spec)
    for field in describe_fields(TrainSpec):
        part = content.get(field.path) if field.is_top else None
        if isinstance(part, dict) and field.short_form and set(part) == {field.short_form}:
            content[field.path] = part[field.short_form]
    if isinstance(spec.network, ZooNetwork):
        content["network"] = spec.network.name
    return content


def command_line(spec: TrainSpec) -> str:
    """Return the line for a shell that trains by a spec: ``ziggurat train`` with a flag for each field that differs."""
    content = short_content(spec)
    fields = {field.path: field for field in describe_fields(TrainSpec)}
    flags: dict[str, str] = {}
    assignments: list[str] = []
    for name, value in content.items():
        if name not in ("kind", "version"):
            _add(fields[name], value, flags, assignments)
    if not _means(spec, flags, assignments):  # a part reads as something else there: whole fields as JSON
        whole = {name: value for name, value in content.items() if isinstance(value, dict)}
        flags = {name: text for name, text in flags.items() if name not in whole}
        assignments = [f"{name}={_json(value)}" for name, value in whole.items()]
    return shlex.join(["ziggurat", "train", *_words(flags, assignments)])


def spec_document(spec: TrainSpec, sweep: Mapping[str, Sequence[Any]]) -> str:
    """Return JSON: the whole spec, as ``ziggurat train FILE`` takes it; with a sweep, what the REST API takes."""
    if not sweep:
        return spec_json(spec)
    body = {"spec": spec.model_dump(mode="json"), "sweep": {path: list(values) for path, values in sweep.items()}}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def python_program(content: Mapping[str, Any], request: Mapping[str, Any], url: str) -> str:
    """Return a program that asks a studio for the training.

    Args:
        content: of the spec.
        request: the other arguments of ``Client.train``.
        url: address of the studio.
    """
    arguments = [_literal(dict(content)), *(f"{name}={_literal(value)}" for name, value in request.items())]
    lines = "".join(f"        {argument.replace(chr(10), chr(10) + '        ')},\n" for argument in arguments)
    return (
        "from ziggurat.client import Client\n\n"
        f"with Client({url!r}) as client:\n"
        f"    jobs = client.train(\n{lines}    )\n"
        '    print([job["id"] for job in jobs])\n'
    )


def _changed(model: BaseModel) -> dict[str, Any]:
    """Return the fields that differ from their defaults, and the words that tell what the others belong to."""
    content: dict[str, Any] = {}
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        is_word = info.title is None  # `kind`, `version`, `policy` and the like
        if is_word or info.is_required() or value != info.get_default(call_default_factory=True):
            content[name] = _changed(value) if isinstance(value, BaseModel) else _plain(value)
    return content


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_changed(each) if isinstance(each, BaseModel) else each for each in value]
    return value


def _add(field: FieldDescription, value: Any, flags: dict[str, str], assignments: list[str]) -> None:
    """Add what says a field's value: its flag, and an assignment for each part."""
    name = field.path
    if isinstance(value, dict) and name != "network" and field.kind == "object" and field.title != "Backend options":
        rest = dict(value)
        if field.short_form in rest:
            flags[name] = str(rest.pop(field.short_form))
        assignments += [f"{name}.{part}={_text(below)}" for part, below in rest.items()]
    elif isinstance(value, dict):
        assignments.append(f"{name}={_json(value)}")
    else:
        flags[name] = _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _means(spec: TrainSpec, flags: Mapping[str, str], assignments: Sequence[str]) -> bool:
    try:
        return spec_from_flags(flags, assignments=assignments) == spec
    except SpecError:
        return False


def _words(flags: Mapping[str, str], assignments: Sequence[str]) -> Iterator[str]:
    for name, text in flags.items():
        flag = "--" + name.replace("_", "-")
        yield from (f"{flag}={text}",) if text.startswith("-") else (flag, text)
    for assignment in assignments:
        yield from ("--set", assignment)


def _literal(value: Any) -> str:
    return pprint.pformat(value, width=_COLUMNS, sort_dicts=False)
