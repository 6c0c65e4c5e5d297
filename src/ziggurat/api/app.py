"""Application factory: it assembles routers and middleware, and rejects routes that declare no permissions."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, Protocol

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from ziggurat.api.digits import ROUTERS as DIGITS_ROUTERS
from ziggurat.api.errors import ErrorBoundary, add_error_handlers
from ziggurat.api.events import NoticeHub, Streams
from ziggurat.api.gate import Gate
from ziggurat.api.guard import check_routers
from ziggurat.api.hosts import HostRule
from ziggurat.api.middleware import HostMiddleware, SecurityHeaders
from ziggurat.api.prefix import PrefixMiddleware, checked_prefix
from ziggurat.api.routes import ROUTERS as STUDIO_ROUTERS
from ziggurat.api.tensorboard_starts import BoardStarts
from ziggurat.workspace.people import People

__all__ = ["ROUTERS", "Studio", "create_app"]

ROUTERS: Final = (
    "ziggurat.api.people:router",
    "ziggurat.api.tokens:router",
    "ziggurat.api.events:router",
    "ziggurat.api.documents:router",
    "ziggurat.api.tensorboard_routes:router",
    "ziggurat.api.tensorboard_proxy:router",
    "ziggurat.api.tensorboard_graphs:router",
    *STUDIO_ROUTERS,
    *DIGITS_ROUTERS,
)
"""Where the routers are, as ``module:attribute``. Each comes from ``new_router``; the first route that fits answers."""


class Studio(Protocol):
    """What the app needs of the workspace; the routers of others may need more."""

    @property
    def people(self) -> People:
        """Who may come in."""
        ...

    @property
    def notices(self) -> NoticeHub:
        """What is new."""
        ...


def create_app(
    studio: Studio,
    *,
    prefix: str = "",
    hosts: Iterable[str] = (),
    public_bind: bool = False,
    routers: Iterable[str] = ROUTERS,
    streams: Streams | None = None,
) -> FastAPI:
    """Return the application.

    Args:
        studio: what the faces hold; routes find it as ``request.app.state.studio``.
        prefix: path below which the studio stands, such as ``/ziggurat``; empty for none.
        hosts: names that it answers to besides those of loopback.
        public_bind: whether it listens beyond this machine.
        routers: as ``module:attribute``.
        streams: limits and times of the event streams.

    Raises:
        UsageError: where the prefix is none.
        PluginError: where a route does not say who may use it.
    """
    app = FastAPI(
        title="Ziggurat",
        version="1",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(ErrorBoundary),
            Middleware(HostMiddleware, rule=HostRule(hosts, public_bind=public_bind)),
            Middleware(PrefixMiddleware, prefix=checked_prefix(prefix)),
        ],
    )
    app.state.studio = studio
    app.state.gate = Gate(studio.people, public_bind=public_bind)
    app.state.streams = Streams() if streams is None else streams
    app.state.board_starts = BoardStarts()
    add_error_handlers(app)
    app.router.routes.extend(_routes(tuple(routers)))
    check_routers(app)
    return app


@cache
def _routes(places: tuple[str, ...]) -> Sequence[BaseRoute]:
    """Return the routes of routers, the same for every application: what each route takes is worked out only once."""
    together = APIRouter()
    for place in places:
        together.include_router(_loaded(place))
    return tuple(together.routes)


def _loaded(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)
