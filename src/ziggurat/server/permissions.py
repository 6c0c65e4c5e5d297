"""Permissions that every route must declare, role and body size, checked before the body is read."""

# No `from __future__ import annotations` here: FastAPI must find the types of a callable object.
import json
import math
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope

from ziggurat.entities import ROLES, SCOPES, Identity
from ziggurat.errors import PluginError, UnknownNameError
from ziggurat.server.errors import HTTPError, TooLargeError, kind_of_client
from ziggurat.server.job_names import JOB_ID, PATH_FIELDS, address_with_ids, job_fields, take_ids, take_path_ids

__all__ = [
    "OpenFiles",
    "Requirement",
    "anyone",
    "check_routers",
    "identity_of",
    "new_router",
    "require",
    "requirements",
]


JSON_LIMIT_BYTES: Final = 10_000_000
"""How much a request may send where its route names no other limit."""

_MAY_OVERFLOW = re.compile(rb"[eE]\+?[0-9]{3}|[0-9]{200}")
"""Without one of these, no number reaches 1e308; the parser makes infinity of those that go beyond."""


class GuardedRequest(Request):
    """A request whose body has a limit and whose JSON is strict.

    Args:
        scope: of ASGI.
        receive: of ASGI.
        limit_bytes: of the body; more raises ``HTTPError`` (413) from whatever reads it.
    """

    def __init__(self, scope: Scope, receive: Receive, *, limit_bytes: int) -> None:
        super().__init__(scope, _limited(receive, limit_bytes))

    async def json(self) -> Any:
        """Return the body as JSON values.

        Raises:
            json.JSONDecodeError: where it is none, or has NaN, infinities, numbers out of range, text that is no
                Unicode, or more than about 200 levels.
        """
        body = await self.body()
        try:
            values = from_json(body, allow_inf_nan=False, cache_strings=False)
        except ValueError as error:
            raise json.JSONDecodeError(str(error), "", 0) from error
        if _MAY_OVERFLOW.search(body) and not _is_finite(values):
            raise json.JSONDecodeError("number out of range", "", 0)
        return values


def check_announced(headers: Headers, limit_bytes: int) -> None:
    """Raise where a body says of itself that it is too large, before anything of it is read.

    Raises:
        HTTPError: 413.
    """
    announced = headers.get("content-length", "0")
    if announced.isdecimal() and (len(announced) > 18 or int(announced) > limit_bytes):
        raise _too_large(limit_bytes)


def _limited(receive: Receive, limit_bytes: int) -> Receive:
    received = 0

    async def counted() -> Message:
        nonlocal received
        message = await receive()
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            if received > limit_bytes:
                raise _too_large(limit_bytes)
        return message

    return counted


def _is_finite(values: Any) -> bool:
    waiting = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, float) and not math.isfinite(value):
            return False
    return True


def _too_large(limit_bytes: int) -> HTTPError:
    error = TooLargeError(
        f"The request is too large: at this address it must have at most {limit_bytes:,} bytes.",
        advice="Send less; large files go where files are uploaded.",
        details={"limit_bytes": limit_bytes},
    )
    # The rest of the body is never read, so the connection cannot be used for another request.
    return HTTPError(error, headers={"Connection": "close"})


@dataclass(frozen=True)
class Requirement:
    """What a route needs of who is asking. As a dependency of FastAPI it gives their identity.

    Args:
        role: at least; empty for public access.
        scope: at least; empty for public access.
        limit_bytes: of the body.
    """

    role: str
    scope: str
    limit_bytes: int

    async def __call__(self, connection: HTTPConnection) -> Identity:
        """Return who is asking.

        Raises:
            HTTPError: 401 or 403 where they are not let in.
        """
        state = connection.scope.setdefault("state", {})
        key = f"ziggurat.admitted.{self.role}.{self.scope}"
        if key not in state:  # the route asked before it read the body; it need not be asked again
            state[key] = await connection.app.state.gate.admit(connection, self.role, self.scope)
            state["identity"] = state[key]
        return state[key]


def require(role: str, scope: str, *, limit_bytes: int = JSON_LIMIT_BYTES) -> Any:
    """Return what a route declares, in its ``dependencies`` or as the annotation of an argument.

    ``identity: Annotated[Identity, needs("trainer", "write")]``

    Args:
        role: a name in ``ROLES``.
        scope: a name in ``SCOPES``.
        limit_bytes: how much may be sent; 10 MB where left out. An upload names its own, and reads it as a stream.

    Raises:
        UnknownNameError: where role or scope are none.
    """
    if role not in ROLES:
        raise UnknownNameError("role", role, ROLES)
    if scope not in SCOPES:
        raise UnknownNameError("scope", scope, SCOPES)
    return Depends(Requirement(role, scope, limit_bytes))


def anyone(*, limit_bytes: int = 65536) -> Any:
    """Return what a route declares that everybody may use who was not logged in yet, such as the login itself."""
    return Depends(Requirement("", "", limit_bytes))


def identity_of(connection: HTTPConnection) -> Identity:
    """Return who is asking, in a route or in what it calls."""
    return connection.scope["state"]["identity"]


class GuardedRoute(APIRoute):
    """A route that asks who is there before it reads what they send.

    FastAPI by itself reads and parses a body first, and would store the upload of a stranger on the disk.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        named = job_fields(self.dependant)
        if named and self.dependant.call is not None:
            self.dependant.call = take_ids(self.dependant.call, named)
        in_path = {field.name for field in self.dependant.path_params} & {*PATH_FIELDS}
        handle, found = super().get_route_handler(), _requirements(self.dependant)

        async def guarded(request: Request) -> Response:
            for requirement in found:
                await requirement(request)
                check_announced(request.headers, requirement.limit_bytes)
            is_named = any(JOB_ID.fullmatch(request.path_params[name]) is None for name in in_path)
            ids = await run_in_threadpool(take_path_ids, request) if is_named else {}
            if ids and request.method == "GET" and kind_of_client(request) == "page":
                return RedirectResponse(address_with_ids(request, ids), 302)
            limit_bytes = min((requirement.limit_bytes for requirement in found), default=0)
            return await handle(GuardedRequest(request.scope, request.receive, limit_bytes=limit_bytes))

        return guarded


class OpenFiles(StaticFiles):
    """Files that everybody may read, such as style sheets: the only thing that may be mounted."""


def new_router(*, prefix: str = "", tags: Sequence[str] = ()) -> APIRouter:
    """Return a router whose routes are guarded; ``create_app`` takes no others.

    Args:
        prefix: that the paths of its routes begin with, such as ``/api/v1``.
        tags: under which the documentation shows them.
    """
    named: list[str | Enum] = list(tags)
    return APIRouter(prefix=prefix, tags=named, route_class=GuardedRoute)


def requirements(routes: Sequence[BaseRoute]) -> Iterator[tuple[GuardedRoute, Requirement]]:
    """Return every route with what it needs; ``check_routers`` sees to it that there is exactly one.

    Raises:
        PluginError: where a route says nothing, or cannot be judged: it would be open to everybody.
    """
    for route in routes:
        if isinstance(route, Mount) and isinstance(route.app, OpenFiles):
            continue
        inner = _inner_routes(route)
        if inner is not None:
            yield from requirements(inner)
            continue
        if not isinstance(route, GuardedRoute):
            raise _open_route(route, "it does not come from `new_router`")
        found = _requirements(route.dependant)
        if len(found) != 1:
            raise _open_route(route, f"it names {len(found)} needs")
        yield route, found[0]


def check_routers(app: FastAPI) -> None:
    """Raise where a route of the app does not say who may use it.

    Raises:
        PluginError: it names the route.
    """
    for _ in requirements(app.router.routes):
        pass


def _inner_routes(route: BaseRoute) -> Sequence[BaseRoute] | None:
    """Return the routes of a router that newer FastAPIs keep as one route; None for a route itself."""
    inner = getattr(route, "original_router", None)
    return None if inner is None else inner.routes


def _requirements(dependant: Dependant) -> list[Requirement]:
    found: dict[Requirement, None] = {}
    for dependency in dependant.dependencies:
        if isinstance(dependency.call, Requirement):
            found[dependency.call] = None
    return list(found)


def _open_route(route: BaseRoute, reason: str) -> PluginError:
    return PluginError(
        "Every route must say once who may use it.",
        received=f"{getattr(route, 'path', route)}: {reason}",
        advice='Make its router by `new_router` and declare `needs("viewer", "read")` or `anyone()`.',
    )
