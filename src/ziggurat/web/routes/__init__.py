"""Owns the routes of the pages: each page has a module by its name."""

from typing import Final

__all__ = ["ROUTERS"]

ROUTERS: Final = (
    "ziggurat.web.routes.home:router",
    "ziggurat.web.routes.strip:router",
    "ziggurat.web.routes.login:router",
)
"""Where the application finds the routers."""
