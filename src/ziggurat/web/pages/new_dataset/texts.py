"""Conversion of a dataset spec to form texts and back."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pprint import pformat
from typing import Any, Final

from ziggurat.specs import DatasetSpec, FieldDescription, dataset_spec_from_flags, describe_fields
from ziggurat.workspace.new_jobs import JobRequest

__all__ = [
    "FIELDS",
    "LISTS",
    "SAID",
    "as_text",
    "request_of",
    "said_content",
    "spec_of",
    "start_texts",
    "text_of",
    "texts_of",
]


@dataclass(frozen=True, kw_only=True)
class AsText:
    """A request in the words of the other faces.

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


FIELDS: Final[Mapping[str, FieldDescription]] = {
    field.path: field for field in describe_fields(DatasetSpec) if field.kind != "object"
}
"""Path → field of the spec, without those that have parts of their own."""

LISTS: Final = ("splits.lists.train", "splits.lists.val", "splits.lists.test")
"""Names of the fields for text files with the names of samples."""

SAID: Final = ("project", "tags", "notes", "priority", "parent")
"""What people say of the job; it is not part of the spec."""


def text_of(value: Any) -> str:
    """Return a value as a person would type it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def start_texts() -> dict[str, str]:
    """Return name → text of every field, as a new form has them."""
    texts = {path: text_of(field.default) for path, field in FIELDS.items()}
    return {**texts, **dict.fromkeys((*LISTS, *SAID), ""), "priority": "0"}


def texts_of(request: JobRequest) -> dict[str, str]:
    """Return name → text of the request for a dataset, its options included; it may be of an older release."""
    texts = start_texts()
    spec = dict(request.spec)
    splits = spec.get("splits")
    parts = splits if isinstance(splits, Mapping) else {}
    texts |= {path: text_of(spec[path]) for path in FIELDS if path in spec}
    texts |= {path: text_of(parts[path[7:]]) for path in FIELDS if path.startswith("splits.") and path[7:] in parts}
    texts |= {f"splits.lists.{split}": str(file) for split, file in dict(parts.get("lists") or {}).items()}
    texts["size"] = _size_text(spec.get("size"))
    options = dict(spec.get("options") or {})
    texts |= {f"options.{name}": text_of(value) for name, value in options.items()}
    said = {"project": request.project, "tags": ", ".join(request.tags), "notes": request.notes}
    return {**texts, **said, "priority": str(request.priority), "parent": request.parent}


def spec_of(texts: Mapping[str, str], options: Mapping[str, Any]) -> DatasetSpec:
    """Return the spec that a form asks for; an empty field has its default.

    Args:
        texts: name → text.
        options: of the format.

    Raises:
        SpecError: where it is not valid; ``details["problems"]`` says of each field what is wrong.
    """
    usual = start_texts()
    given = {path: texts[path].strip() for path in FIELDS if texts.get(path, "").strip() not in ("", usual[path])}
    flags = {path: text for path, text in given.items() if "." not in path}
    parts = [f"{path}={text}" for path, text in given.items() if "." in path]
    base: dict[str, Any] = {"kind": "dataset", "version": 1, "options": dict(options)}
    lists = {name.rpartition(".")[2]: texts.get(name, "").strip() for name in LISTS}
    if any(lists.values()):
        base["splits"] = {"lists": {split: file for split, file in lists.items() if file}}
    return dataset_spec_from_flags(flags, assignments=parts, base=base)


def said_content(spec: DatasetSpec) -> dict[str, Any]:
    """Return what a spec says beyond the defaults, as JSON values."""
    usual = DatasetSpec(source="-").model_dump(mode="json")
    content = {name: value for name, value in spec.model_dump(mode="json").items() if value != usual[name]}
    if "splits" in content:
        content["splits"] = {name: value for name, value in content["splits"].items() if value != usual["splits"][name]}
    return content


def request_of(texts: Mapping[str, str], spec: DatasetSpec) -> JobRequest:
    """Return what is asked of the studio.

    Raises:
        ValueError: where the priority is no whole number.
    """
    tags = [tag.strip() for tag in texts.get("tags", "").split(",")]
    return JobRequest(
        spec=said_content(spec),
        project=texts.get("project", "").strip(),
        tags=tuple(dict.fromkeys(tag for tag in tags if tag)),
        notes=texts.get("notes", ""),
        priority=int(texts.get("priority", "").strip() or "0"),
        parent=texts.get("parent", ""),
    )


def _size_text(size: Any) -> str:
    if isinstance(size, list) and len(size) == 2:
        return str(size[0]) if size[0] == size[1] else f"{size[0]}x{size[1]}"
    return text_of(size)
