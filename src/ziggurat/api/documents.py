"""API documentation routes: the OpenAPI document, and a page of it that loads nothing from other hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse, Response

from ziggurat.entities import ROLES, SCOPES
from ziggurat.server.permissions import Requirement, anyone, new_router, require, requirements

__all__ = ["openapi_of", "router"]


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


_ERROR: Final = {
    "title": "Error",
    "description": "Every error: the rule, what came, and what to do.",
    "type": "object",
    "required": ["error", "message", "rule"],
    "properties": {
        "error": {"type": "string", "description": "The family, such as `usage`, `validation`, `forbidden`, `job`."},
        "message": {"type": "string", "description": "All of it in words."},
        "rule": {"type": "string"},
        "received": {"type": "string"},
        "advice": {"type": "string"},
        "details": {"type": "object", "description": "Values for programs."},
        "not_there": {"type": "boolean", "description": "True where what was named is not there."},
    },
}
_FORMS: Final = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token: `Authorization: Bearer zig_…`."},
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "ziggurat_session",
        "description": "The cookie of a login; its name goes on with the port, and begins with `__Host-` under HTTPS.",
    },
}
_FORM_ERRORS: Final = {
    "description": "What DIGITS says of a form: field → what is wrong with it.",
    "type": "object",
    "required": ["errors"],
    "properties": {"errors": {"type": "object"}},
}
_REFERENCE: Final = {"$ref": "#/components/schemas/Error"}


def openapi_of(app: FastAPI) -> dict[str, Any]:
    """Return the document of an app as JSON values; it says of every operation in ``x-needs`` who may use it."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary="A studio for training deep networks.",
        description="Roles: " + " < ".join(ROLES) + ". Scopes of tokens: " + " < ".join(SCOPES) + ".",
        routes=app.router.routes,
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Error"] = _ERROR
    components["securitySchemes"] = _FORMS
    for route, requirement in requirements(app.router.routes):
        for method in route.methods or ():
            operation = document["paths"].get(route.path_format, {}).get(method.lower())
            if operation is not None:
                _complete(operation, requirement)
    return document


def _complete(operation: dict[str, Any], requirement: Requirement) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    shape = {"anyOf": [_REFERENCE, _FORM_ERRORS]} if "digits" in operation.get("tags", ()) else _REFERENCE
    responses["default"] = {"description": "An error.", "content": {"application/json": {"schema": shape}}}
    if requirement.role:
        operation["x-needs"] = {"role": requirement.role, "scope": requirement.scope}
        operation["security"] = [{"token": []}, {"session": []}]
    else:
        operation["x-needs"] = {"role": "", "scope": ""}
        operation["security"] = []


router = new_router(prefix="/api/v1", tags=["documentation"])


@router.get("/openapi.json", dependencies=[require("viewer", "read")], summary="The OpenAPI document")
def openapi(request: Request) -> JSONResponse:
    """Return the OpenAPI document of all routes."""
    return JSONResponse({**_document(request), "servers": [{"url": request.scope.get("root_path") or "/"}]})


@router.get("/docs", dependencies=[require("viewer", "read")], response_class=HTMLResponse, summary="This page")
def documentation(request: Request) -> HTMLResponse:
    """Return a page with every operation, who may use it, what it takes and what it answers."""
    return HTMLResponse(operations_page(_document(request), request.scope.get("root_path", "")))


@router.get("/docs.css", dependencies=[anyone()], include_in_schema=False)
def style() -> Response:
    """Return the style sheet of the page."""
    return Response(_style(), media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})


def _document(request: Request) -> dict[str, Any]:
    app = request.app
    if app.openapi_schema is None:
        app.openapi_schema = openapi_of(app)
    return app.openapi_schema


@cache
def _style() -> bytes:
    return (Path(__file__).parent / "static" / "docs.css").read_bytes()
