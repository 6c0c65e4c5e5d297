"""Reference page of the REST API, generated from the application's OpenAPI document."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from tools.reference.markdown import cell, table

__all__ = ["rest_page"]

_INTRO = """Every route of `/api/v1`, by what it is about; `GET /api/v1/openapi.json` of a studio has the same with all
shapes. A route names the role and the scope that it needs (see [users and tokens](../how-to/users-and-tokens.md)).
Errors have one shape: `error`, `message`, `rule`, and where there are some `received`, `advice` and `details`
(see [errors](errors.md)). A number that JSON has not is one of the texts `NaN`, `Infinity` and `-Infinity`."""


def rest_page() -> str:
    """Return the page."""
    document = _document()
    parts = ["# REST API", _INTRO]
    operations = list(_operations(document))
    for tag in dict.fromkeys(tag for tag, _, _, _ in operations):
        parts.append(f"## {tag[:1].upper()}{tag[1:]}")
        for each, method, path, operation in operations:
            if each == tag:
                parts += _operation(method, path, operation, document)
    return "\n\n".join(parts)


def _document() -> dict[str, Any]:
    app, openapi = importlib.import_module("ziggurat.api.app"), importlib.import_module("ziggurat.server.openapi")
    studio: Any = SimpleNamespace(people=None, notices=None)  # no route is asked
    return openapi.openapi_of(app.create_app(studio))


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/api/v1/"):
                yield (operation.get("tags") or ["studio"])[0], method.upper(), path, operation


def _operation(method: str, path: str, operation: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    needs = operation.get("x-needs") or {}
    yield f"### `{method} {path}`"
    yield operation.get("description", "").strip()
    yield f"Needs the role `{needs['role']}`, the scope `{needs['scope']}`." if needs.get("role") else "For everybody."
    rows = [_row(each["name"], each["in"], each.get("schema", {}), each) for each in operation.get("parameters", ())]
    rows += [_row(name, "body", field, field) for name, field in _fields(operation, document)]
    if rows:
        yield table(("field", "where", "type", "meaning"), rows)


def _fields(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    content = operation.get("requestBody", {}).get("content", {})
    schema = next(iter(content.values()), {}).get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return list(schema.get("properties", {}).items())


def _row(name: str, where: str, schema: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return f"`{name}`", where, cell(_type(schema)), cell(about.get("description", ""))


def _type(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return schema.get("type") or schema.get("$ref", "").rpartition("/")[2].strip("_") or "any"
