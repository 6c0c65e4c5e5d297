"""HTML page of the API's operations, without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from typing import Any
from urllib.parse import quote

__all__ = ["operations_page"]

_METHODS = ("get", "post", "put", "patch", "delete")


def operations_page(document: dict[str, Any], root: str) -> str:
    """Return the page.

    Args:
        document: of OpenAPI.
        root: prefix below which the studio stands; empty for none.
    """
    groups: dict[str, list[str]] = {}
    for path, method, operation in _operations(document):
        tag = (operation.get("tags") or ["other"])[0]
        groups.setdefault(tag, []).append(_operation(path, method, operation))
    contents = "".join(f'<li><a href="#{escape(tag)}">{escape(tag)}</a></li>' for tag in groups)
    body = "".join(f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(parts)}' for tag, parts in groups.items())
    schemas = document.get("components", {}).get("schemas", {})
    shapes = "".join(_shape(name, schema) for name, schema in sorted(schemas.items()))
    base = escape(quote(root))
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Ziggurat: the API</title>'
        f'<link rel="stylesheet" href="{base}/api/v1/docs.css"></head><body><main><h1>The API of the studio</h1>'
        f"<p>{escape(document['info'].get('description', ''))} "
        f'The same for programs: <a href="{base}/api/v1/openapi.json">openapi.json</a>.</p>'
        f'<nav aria-label="Groups"><ul>{contents}<li><a href="#shapes">shapes</a></li></ul></nav>{body}'
        f'<h2 id="shapes">shapes</h2>{shapes}</main></body></html>'
    )


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                yield path, method, methods[method]


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    needed = operation.get("x-needs", {})
    who = f"needs {needed['role']}, {needed['scope']}" if needed.get("role") else "open to everybody"
    rows = "".join(_parameter(each) for each in operation.get("parameters", ()))
    table = (
        '<table><thead><tr><th scope="col">Parameter</th><th scope="col">In</th><th scope="col">Type</th>'
        f'<th scope="col">Meaning</th></tr></thead><tbody>{rows}</tbody></table>'
        if rows
        else ""
    )
    answers = "".join(
        f"<li><code>{escape(code)}</code> {_schema_of(answer)}</li>" for code, answer in operation["responses"].items()
    )
    body = _schema_of(operation.get("requestBody", {}))
    return (
        f"<details><summary><code>{method.upper()} {escape(path)}</code> {escape(operation.get('summary', ''))} "
        f"<small>{escape(who)}</small></summary><p>{escape(operation.get('description', ''))}</p>{table}"
        + (f"<p>Body: {body}</p>" if body else "")
        + f"<ul>{answers}</ul></details>"
    )


def _parameter(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    kind = schema.get("type") or " or ".join(each.get("type", "") for each in schema.get("anyOf", ()))
    meaning = parameter.get("description", "")
    if "default" in schema:
        meaning += f" Default: {json.dumps(schema['default'])}."
    cells = (parameter["name"], parameter["in"], kind, meaning)
    return "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>"


def _schema_of(part: dict[str, Any]) -> str:
    """Return the kinds of content with links to their shapes."""
    shown = []
    for kind, content in part.get("content", {}).items():
        schema = content.get("schema", {})
        is_list = "items" in schema
        name = schema.get("items", schema).get("$ref", "").rpartition("/")[2]
        link = f'<a href="#shape-{escape(name)}">{escape(name)}</a>' if name else ""
        shown.append(f"{escape(kind)} {'list of ' if is_list and link else ''}{link}")
    return ", ".join(shown) or escape(part.get("description", ""))


def _shape(name: str, schema: dict[str, Any]) -> str:
    name, text = escape(name), escape(json.dumps(schema, indent=2, ensure_ascii=False))
    return f'<details id="shape-{name}"><summary><code>{name}</code></summary><pre>{text}</pre></details>'
