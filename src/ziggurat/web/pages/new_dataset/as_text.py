"""A request for a dataset as a command, as JSON and as Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pprint import pformat
from typing import Any

from ziggurat.workspace.new_jobs import JobRequest

__all__ = ["AsText", "as_text"]


@dataclass(frozen=True, kw_only=True)
class AsText:
    """A request for the shell, the REST API and the Python client.

    Args:
        command: of a shell.
        body: JSON that ``POST /api/v1/datasets`` takes.
        program: Python.
    """

    command: str
    body: str
    program: str


def as_text(request: JobRequest, server: str) -> AsText:
    """Return a request as a person would make it without the form.

    Args:
        request: what is asked.
        server: address of the studio.
    """
    said = {
        "project": request.project,
        "tags": list(request.tags),
        "notes": request.notes,
        "priority": request.priority,
        "parent": request.parent,
    }
    said = {name: value for name, value in said.items() if value}
    spec = {"kind": "dataset", "version": 1, **request.spec}
    return AsText(
        command=" ".join(_words(request)),
        body=json.dumps({"spec": spec, **said}, indent=2, ensure_ascii=False),
        program=_program(dict(request.spec), said, server),
    )


def _words(request: JobRequest) -> Iterator[str]:
    yield "ziggurat job dataset"
    spec = dict(request.spec)
    yield shlex.quote(str(spec.pop("source")))
    for name, value in spec.pop("options", {}).items():
        yield f"--option {shlex.quote(f'{name}={_flag_text(value)}')}"
    splits = dict(spec.pop("splits", {}))
    if size := spec.pop("size", None):
        yield f"--size {size[0] if size[0] == size[1] else f'{size[0]}x{size[1]}'}"
    for name, value in spec.items():
        yield f"--{name.replace('_', '-')} {shlex.quote(_flag_text(value))}"
    for name, value in splits.items():
        yield f"--set {shlex.quote(f'splits.{name}={_flag_text(value)}')}"
    for name in ("project", "notes", "priority"):
        if value := getattr(request, name):
            yield f"--{name} {shlex.quote(str(value))}"
    for tag in request.tags:
        yield f"--tag {shlex.quote(tag)}"


def _flag_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _program(spec: Mapping[str, Any], said: Mapping[str, Any], server: str) -> str:
    arguments = ", ".join(["spec", *(f"{name}={value!r}" for name, value in said.items())])
    lines = [
        "from ziggurat.client import Client",
        "",
        f"spec = {pformat(spec, sort_dicts=False, width=100)}",
        f"with Client({server!r}) as client:",
        f"    job = client.datasets.create({arguments})",
        "    print(job['id'])",
    ]
    return "\n".join(lines)
