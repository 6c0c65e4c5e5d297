"""Owns the routes of the pages: each page has a module by its name."""

from typing import Final

__all__ = ["ROUTERS"]

ROUTERS: Final = (
    "ziggurat.web.routes.home:router",
    "ziggurat.web.routes.strip:router",
    "ziggurat.web.routes.login:router",
    "ziggurat.web.routes.new_model:router",
    "ziggurat.web.routes.new_model_parts:router",
    "ziggurat.web.routes.new_dataset:router",
    "ziggurat.web.routes.home_actions:router",
    "ziggurat.web.routes.home_edit:router",
    # These come last: `/models/{job_id}` would take `/models/new`.
    "ziggurat.web.routes.job:router",
    "ziggurat.web.routes.job_actions:router",
)
"""Where the application finds the routers."""
