"""Application factory: it assembles routers and middleware, and rejects routes that declare no permissions."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Protocol

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from ziggurat.server.authentication import Authenticator
from ziggurat.server.errors import ErrorBoundary, add_error_handlers
from ziggurat.server.event_stream import NoticeHub, Streams
from ziggurat.server.middleware import (
    HostMiddleware,
    HostRule,
    PrefixMiddleware,
    RequestCounter,
    RequestCounts,
    SecurityHeaders,
    checked_prefix,
)
from ziggurat.server.permissions import check_routers
from ziggurat.workspace.accounts import Accounts

__all__ = ["Studio", "create_app"]


class Studio(Protocol):
    """What the app needs of the workspace; the routers of others may need more."""

    @property
    def people(self) -> Accounts:
        """Who may come in."""
        ...

    @property
    def notices(self) -> NoticeHub:
        """What is new."""
        ...


def create_app(
    studio: Studio,
    routers: Iterable[str],
    *,
    prefix: str = "",
    hosts: Iterable[str] = (),
    public_bind: bool = False,
    streams: Streams | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        studio: what the faces hold; routes find it as ``request.app.state.studio``.
        routers: as ``module:attribute``, each made by ``new_router``; the first route that matches answers.
        prefix: path below which the studio stands, such as ``/ziggurat``; empty for none.
        hosts: names that it answers to besides those of loopback.
        public_bind: whether it listens beyond this machine.
        streams: limits and times of the event streams.

    Raises:
        UsageError: where the prefix is none.
        PluginError: where a route does not say who may use it.
    """
    counts = RequestCounts()
    app = FastAPI(
        title="Ziggurat",
        version="1",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(RequestCounter, counts=counts),
            Middleware(SecurityHeaders),
            Middleware(ErrorBoundary),
            Middleware(HostMiddleware, rule=HostRule(hosts, public_bind=public_bind)),
            Middleware(PrefixMiddleware, prefix=checked_prefix(prefix)),
        ],
    )
    app.state.studio = studio
    app.state.request_counts = counts
    app.state.gate = Authenticator(studio.people, public_bind=public_bind)
    app.state.streams = Streams() if streams is None else streams
    add_error_handlers(app)
    app.router.routes.extend(_routes(tuple(routers)))
    check_routers(app)
    return app


@cache
def _routes(places: tuple[str, ...]) -> Sequence[BaseRoute]:
    """Return the routes of routers, the same for every application: what each route takes is worked out only once.

    They stand beside each other: routers inside of routers would be asked one after the other, five times as long.
    """
    return tuple(route for place in places for route in _loaded(place).routes)


def _loaded(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
