"""Application of the REST API alone, without pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastapi import FastAPI

from ziggurat.api.routes import ROUTERS as STUDIO_ROUTERS
from ziggurat.api.tensorboard import BoardStarts
from ziggurat.plugins import available, load
from ziggurat.server import application

__all__ = ["ROUTERS", "create_app", "every_router"]

ROUTERS: Final = (
    "ziggurat.api.accounts:router",
    "ziggurat.api.accounts:tokens_router",
    "ziggurat.server.event_stream:router",
    "ziggurat.api.documents:router",
    "ziggurat.api.metrics:router",
    "ziggurat.api.tensorboard:router",
    "ziggurat.api.tensorboard:proxy_router",
    "ziggurat.api.tensorboard:graph_router",
    *STUDIO_ROUTERS,
)
"""Where the routers are, as ``module:attribute``. Each comes from ``new_router``; the first route that fits answers."""


def every_router() -> tuple[str, ...]:
    """Return ``ROUTERS``, then the routers of the entry-point group ``ziggurat.routers``, by name.

    Raises:
        PluginError: where one does not load; it names the entry point and its package.
    """
    found = {plugin.name: plugin.target for plugin in sorted(available("routers"), key=lambda each: each.is_built_in)}
    for name in found:
        load("routers", name)
    return (*ROUTERS, *(found[name] for name in sorted(found)))


def create_app(studio: application.Studio, *, routers: Iterable[str] | None = None, **options: Any) -> FastAPI:
    """Return the application.

    Args:
        studio: what the faces hold.
        routers: as ``module:attribute``; None for ``every_router()``.
        options: as ``ziggurat.server.application.create_app`` takes them.

    Raises:
        UsageError: where the prefix is none.
        PluginError: where a route does not say who may use it, or a router does not load.
    """
    app = application.create_app(studio, every_router() if routers is None else routers, **options)
    app.state.board_starts = BoardStarts()
    return app
