"""View model of the REST API: operations in groups, and the schemas of what they take and return."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Content", "Group", "Operation", "Parameter", "groups_of", "schemas_of"]

_METHODS: Final = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operation.

    Args:
        name: of it.
        where: ``path``, ``query``, ``header`` or ``cookie``.
        type: in JSON's words.
        meaning: with its default.
    """

    name: str
    where: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Content:
    """A body that is sent or returned.

    Args:
        status: of HTTP; empty for what is sent.
        media_type: such as ``application/json``; empty where there is no body.
        schema_name: empty where it has no schema of its own.
        is_list: whether it is a list of that schema.
        text: what it is.
    """

    status: str
    media_type: str
    schema_name: str
    is_list: bool
    text: str


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    Args:
        method: in capitals.
        path: with parameters in braces.
        summary: in a few words.
        description: in sentences.
        role: at least; empty where it is open to everybody.
        scope: of a token; empty where it is open to everybody.
        parameters: that it takes.
        body: that it takes, in one form or several.
        responses: by status.
    """

    method: str
    path: str
    summary: str
    description: str
    role: str
    scope: str
    parameters: Sequence[Parameter]
    body: Sequence[Content]
    responses: Sequence[Content]


@dataclass(frozen=True)
class Group:
    """Operations on one subject.

    Args:
        name: of the subject.
        operations: in the order of the document.
    """

    name: str
    operations: Sequence[Operation]


def groups_of(document: Mapping[str, Any]) -> list[Group]:
    """Return the operations of an OpenAPI document by their first tag."""
    groups: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                tag = (methods[method].get("tags") or ["other"])[0]
                groups.setdefault(tag, []).append(_operation(path, method, methods[method]))
    return [Group(name, operations) for name, operations in groups.items()]


def schemas_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return name → JSON schema, indented, sorted by name."""
    schemas = document.get("components", {}).get("schemas", {})
    return {name: json.dumps(schemas[name], indent=2, ensure_ascii=False) for name in sorted(schemas)}


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Operation:
    needed = operation.get("x-needs", {})
    return Operation(
        method=method.upper(),
        path=path,
        summary=operation.get("summary", ""),
        description=operation.get("description", ""),
        role=needed.get("role", ""),
        scope=needed.get("scope", ""),
        parameters=[_parameter(each) for each in operation.get("parameters", ())],
        body=list(_contents("", operation.get("requestBody", {}))),
        responses=[each for status, part in operation["responses"].items() for each in _contents(status, part)],
    )


def _parameter(parameter: Mapping[str, Any]) -> Parameter:
    schema = parameter.get("schema", {})
    types = schema.get("type") or " or ".join(each["type"] for each in schema.get("anyOf", ()) if "type" in each)
    meaning = parameter.get("description", "")
    if "default" in schema:
        meaning = f"{meaning} Default: `{json.dumps(schema['default'], ensure_ascii=False)}`.".strip()
    return Parameter(parameter["name"], parameter["in"], types, meaning)


def _contents(status: str, part: Mapping[str, Any]) -> Iterator[Content]:
    text = part.get("description", "")
    if status and not part.get("content"):
        yield Content(status, "", "", is_list=False, text=text)
    for media_type, content in part.get("content", {}).items():
        schema = content.get("schema", {})
        name = schema.get("items", schema).get("$ref", "").rpartition("/")[2]
        yield Content(status, media_type, name, is_list="items" in schema, text=text)
