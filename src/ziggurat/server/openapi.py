"""OpenAPI document of an application: every operation, who may use it, and the shape of every error."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ziggurat.entities import ROLES, SCOPES
from ziggurat.server.permissions import Requirement, requirements

__all__ = ["openapi_of"]

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
    """Return the document of an app as JSON values; it says of every operation in ``x-needs`` who may use it.

    It is made once for each app; callers must not modify it.
    """
    if app.openapi_schema is None:
        app.openapi_schema = _document(app)
    return app.openapi_schema


def _document(app: FastAPI) -> dict[str, Any]:
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
