"""Routes of the pages, one module per page."""

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
    "ziggurat.web.routes.test_model:router",
    "ziggurat.web.routes.evaluation:router",
    "ziggurat.web.routes.compare:router",
    "ziggurat.web.routes.take_away:router",
    "ziggurat.web.routes.settings:router",
    "ziggurat.web.routes.people:router",
    "ziggurat.web.routes.account:router",
    "ziggurat.web.routes.about:router",
    # These come last: `/models/{job_id}` would take `/models/new`.
    "ziggurat.web.routes.dataset:router",
    "ziggurat.web.routes.dataset_explore:router",
    "ziggurat.web.routes.dataset_check:router",
    "ziggurat.web.routes.dataset_versions:router",
    "ziggurat.web.routes.job:router",
    "ziggurat.web.routes.job_actions:router",
)
"""Where the application finds the routers."""
