"""Errors of the server: their HTTP statuses, and the answer that each client gets: JSON, a page, or the login."""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlsplit

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ziggurat.errors import (
    CheckpointError,
    ConfigurationError,
    DataError,
    JobError,
    LostDatabaseError,
    MissingDependencyError,
    MissingJobError,
    NetworkCodeError,
    NotThereError,
    OutdatedError,
    PluginError,
    StateError,
    StorageError,
    TrainingError,
    UsageError,
    ZigguratError,
)
from ziggurat.server.middleware import local_path
from ziggurat.workspace.accounts import ForbiddenError, LoginError
from ziggurat.workspace.passwords import TooBusyError, TooManyLoginsError

__all__ = [
    "ErrorBoundary",
    "ForbiddenError",
    "HTTPError",
    "NotFoundError",
    "NotLoggedInError",
    "NotReadyError",
    "TooLargeError",
    "add_error_handlers",
    "kind_of_client",
    "status_of",
]


_log = logging.getLogger(__name__)
_SHOWN_FIELDS = 50


class NotLoggedInError(UsageError):
    """401: authentication is required."""

    code = "not_logged_in"


class NotFoundError(UsageError, NotThereError):
    """There is nothing at that address."""

    code = "not_found"


class ConflictError(UsageError):
    """What is there does not allow it now."""

    code = "conflict"


class NotReadyError(JobError):
    """What a job needs for this is starting; ``details["retry_after_s"]`` says when to ask again."""

    code = "not_ready"


class TooLargeError(UsageError):
    """More was sent than is taken."""

    code = "too_large"


class ValidationError(ConfigurationError):
    """What was sent does not fit; ``details["fields"]`` says of each field what is wrong."""

    code = "validation"


_STATUSES: Final[tuple[tuple[type[ZigguratError], int], ...]] = (
    (NotLoggedInError, 401),
    (LoginError, 401),
    (ForbiddenError, 403),
    (NotThereError, 404),
    (ConflictError, 409),
    (OutdatedError, 409),
    (TooLargeError, 413),
    (TooManyLoginsError, 429),
    (TooBusyError, 503),
    (NotReadyError, 503),
    (UsageError, 400),
    (ConfigurationError, 422),
    (DataError, 422),
    (NetworkCodeError, 422),
    (JobError, 409),
    (CheckpointError, 409),
    (StateError, 409),
    (TrainingError, 422),
    (MissingDependencyError, 501),
    (PluginError, 501),
    (LostDatabaseError, 409),
    (StorageError, 507),
)


class HTTPError(HTTPException):
    """An error on its way to the client; FastAPI lets it through from everywhere, also while it reads a body.

    Args:
        error: what is said.
        status: of HTTP; that of the error's family where left out.
        headers: further ones.
    """

    def __init__(
        self, error: ZigguratError, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status or status_of(error), str(error), dict(headers or {}))
        self.error = error


def status_of(error: ZigguratError) -> int:
    """Return the HTTP status of an error: that of the first family in the table that it is of."""
    return next((status for family, status in _STATUSES if isinstance(error, family)), 500)


def add_error_handlers(app: FastAPI) -> None:
    """Make an app answer every error in the one shape.

    ``app.state.error_page`` may hold a function ``(request, status, shape) -> Response``, which people in a browser get
    instead of JSON, as a page or as the part that htmx asked for.
    """
    app.add_exception_handler(ZigguratError, _tree_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)


def error_response(
    request: Request, error: ZigguratError, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an error as the one who asked wants it.

    Args:
        request: that it answers.
        error: what is said.
        status: of HTTP; that of the error's family where left out.
        headers: further ones.
    """
    status, kind, headers = status or status_of(error), kind_of_client(request), dict(headers or {})
    if status == 401:
        headers.setdefault("WWW-Authenticate", 'Bearer realm="ziggurat"')
    if status in (429, 503) and "retry_after_s" in error.details:
        headers["Retry-After"] = str(error.details["retry_after_s"])
    if isinstance(error, NotLoggedInError) and kind != "api":
        return _to_login(request, kind)
    page = getattr(request.app.state, "error_page", None)
    if kind != "api" and page is not None:
        response = page(request, status, error.as_dict())
        response.headers.update(headers)
        return response
    return JSONResponse(error.as_dict(), status, headers)


def kind_of_client(request: Request) -> str:
    """Return ``api`` for programs, ``htmx`` for parts of pages, ``page`` for what a person sees."""
    path = local_path(request.scope)
    if (path.startswith("/api/") and path != "/api/v1/docs") or path.endswith(".json"):
        return "api"
    if request.headers.get("hx-request") == "true":
        return "htmx"
    return "page" if "text/html" in request.headers.get("accept", "") else "api"


class ErrorBoundary:
    """Answers unexpected errors: an id for the client, the traceback for the log.

    Args:
        app: inside of it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            await send(message)
            has_begun = True

        try:
            await self._app(scope, receive, noting)
        except Exception:
            name = secrets.token_hex(6)
            _log.exception("Request %s failed: %s %r", name, scope["method"], scope["path"])
            if has_begun:
                raise  # the client must see a broken answer, not half of one that looks whole
            await _unforeseen(name)(scope, receive, send)


def _unforeseen(name: str) -> Response:
    error = ZigguratError(
        "The studio failed at this request.",
        advice=f"Look for {name} in the log of the server.",
        details={"id": name},
    )
    return JSONResponse({**error.as_dict(), "error": "internal"}, 500)


def _named_as_asked(error: ZigguratError, path: str) -> ZigguratError:
    """Return the error for a missing job with the word of the address: a dataset is missing at that of a dataset."""
    if isinstance(error, MissingJobError) and (job := error.details.get("job")):
        for subject in ("dataset", "evaluation", "model"):
            if f"/{subject}s/{job}/" in f"{path}/":
                suggested = error.advice if error.details.get("nearest") else ""
                advice = suggested or f"Look at the list of {subject}s; it may be deleted."
                return MissingJobError(f"There is no {subject} `{job}`.", advice=advice, details=error.details)
    return error


async def _tree_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ZigguratError)
    error = _named_as_asked(error, local_path(request.scope))
    if status_of(error) == 500:
        _log.error("%s %r: %s", request.method, request.url.path, error, exc_info=error)
    return error_response(request, error)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    fields = [_field(each) for each in error.errors()[:_SHOWN_FIELDS]]
    first = fields[0] if fields else {"field": "body", "message": "not valid", "type": ""}
    if kind_of_client(request) != "api":
        return error_response(request, _invalid_for_people(first, fields))
    return error_response(
        request,
        ValidationError(
            f"What was sent does not fit the route: {first['field']}: {first['message'].rstrip('.')}.",
            received=f"{first['field']}: {first['message']}",
            advice="Each field and what is wrong with it is in `details.fields`.",
            details={"fields": fields},
        ),
    )


def _invalid_for_people(first: Mapping[str, str], fields: Sequence[Mapping[str, str]]) -> ZigguratError:
    """Return what a page says of a value that was typed into its address, or of a form that it did not make."""
    place, _, name = first["field"].partition(".")
    where = "form" if place == "body" else "address"
    message = first["message"].partition(", unable to")[0]
    rules = {"missing": " is required", "string_pattern_mismatch": " has a value that it cannot have"}
    rule = rules.get(first["type"]) or re.sub(r"^: \w+ should ", " must ", f": {message}")
    return ValidationError(
        f"`{name or where}`{rule}.",
        advice=f"Correct it in the {where}, or go back and choose again.",
        details={"fields": fields},
    )


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, HTTPError):
        return error_response(request, error.error, error.status_code, error.headers)
    return error_response(request, _as_tree_error(request, error), error.status_code, error.headers)


def _as_tree_error(request: Request, error: HTTPException) -> ZigguratError:
    received = f"{request.method} {json.dumps(local_path(request.scope)[:200])}"
    if error.status_code == 404:
        return NotFoundError("There is nothing at this address.", received=received, advice="See /api/v1/docs.")
    if error.status_code == 405:
        return ConflictError("The address takes other methods.", received=received, advice="See /api/v1/docs.")
    return UsageError(f"The server cannot read the request: {str(error.detail).rstrip('.')}.")


def _field(problem: Mapping[str, Any]) -> dict[str, str]:
    # Only where and what is wrong: the value itself may be a password.
    where: Sequence[Any] = problem.get("loc", ())
    if problem["type"] == "json_invalid":
        return {"field": "body", "message": f"not valid JSON: {problem['ctx']['error']}"[:300], "type": problem["type"]}
    path = ".".join(str(part) for part in where)
    return {"field": path[:200], "message": problem["msg"][:300], "type": problem["type"]}


def _to_login(request: Request, kind: str) -> Response:
    if kind == "page":
        target = _login_address(request, _here(request))
        return RedirectResponse(target, 303)
    shown = urlsplit(request.headers.get("hx-current-url", ""))
    target = _login_address(request, shown.path + (f"?{shown.query}" if shown.query else ""))
    error = NotLoggedInError("Log in first.")
    return JSONResponse(error.as_dict(), 401, {"HX-Redirect": target})


def _here(request: Request) -> str:
    if request.method != "GET":
        return ""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _login_address(request: Request, back: str) -> str:
    login = quote(request.scope.get("root_path", "")) + "/login"
    is_own = back.startswith("/") and not back.startswith(("//", "/\\"))
    return f"{login}?next={quote(back, safe='')}" if is_own else login
