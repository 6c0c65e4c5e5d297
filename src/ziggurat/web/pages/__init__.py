"""Pages of the studio, one package each: routes, view, form and templates."""

from typing import Final

__all__ = ["ROUTERS"]

ROUTERS: Final = (
    "ziggurat.web.pages.home.routes:router",
    "ziggurat.web.status_bar_routes:router",
    "ziggurat.web.pages.login.routes:router",
    "ziggurat.web.pages.new_model.routes:router",
    "ziggurat.web.pages.new_model.part_routes:router",
    "ziggurat.web.pages.new_dataset.routes:router",
    "ziggurat.web.pages.home.action_routes:router",
    "ziggurat.web.pages.home.edit_routes:router",
    "ziggurat.web.pages.predict.routes:router",
    "ziggurat.web.pages.evaluation.routes:router",
    "ziggurat.web.pages.compare.routes:router",
    "ziggurat.web.pages.export.routes:router",
    "ziggurat.web.pages.settings.routes:router",
    "ziggurat.web.pages.settings.user_routes:router",
    "ziggurat.web.pages.account.routes:router",
    "ziggurat.web.pages.about.routes:router",
    # These come last: `/models/{job_id}` would take `/models/new`.
    "ziggurat.web.pages.dataset.routes:router",
    "ziggurat.web.pages.dataset.explore_routes:router",
    "ziggurat.web.pages.dataset.check_routes:router",
    "ziggurat.web.pages.dataset.version_routes:router",
    "ziggurat.web.pages.job.routes:router",
    "ziggurat.web.pages.job.action_routes:router",
)
"""Where the application finds the routers."""
