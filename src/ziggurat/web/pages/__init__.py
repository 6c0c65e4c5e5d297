"""Pages of the studio, one package each: routes, view, form and templates."""

from typing import Final

__all__ = ["ROUTERS"]

ROUTERS: Final = (
    "ziggurat.web.pages.home.routes:router",
    "ziggurat.web.pages.account.routes:router",
    "ziggurat.web.pages.new_model.batch_trial:router",  # before `/models/new/{look}`
    "ziggurat.web.pages.new_model.conversion:router",
    "ziggurat.web.pages.new_model.routes:router",
    "ziggurat.web.pages.new_dataset.routes:router",
    "ziggurat.web.pages.new_program.routes:router",
    "ziggurat.web.pages.predict.routes:router",
    "ziggurat.web.pages.evaluation.routes:router",
    "ziggurat.web.pages.evaluation.changes:router",
    "ziggurat.web.pages.evaluation.samples:router",
    "ziggurat.web.pages.compare.routes:router",
    "ziggurat.web.pages.export.routes:router",
    "ziggurat.web.pages.pretrained.routes:router",
    "ziggurat.web.pages.settings.routes:router",
    "ziggurat.web.pages.about.routes:router",
    "ziggurat.web.pages.machines.routes:router",
    "ziggurat.web.pages.home.trash:router",
    "ziggurat.web.pages.rest_api.routes:router",
    "ziggurat.web.pages.palette.routes:router",
    # These come last: `/models/{job_id}` would take `/models/new`.
    "ziggurat.web.pages.dataset.routes:router",
    "ziggurat.web.pages.dataset.explore:router",
    "ziggurat.web.pages.dataset.explore_map:router",
    "ziggurat.web.pages.dataset.boxes:router",
    "ziggurat.web.pages.dataset.checks:router",
    "ziggurat.web.pages.dataset.classes:router",
    "ziggurat.web.pages.dataset.versions:router",
    "ziggurat.web.pages.dataset.retrain:router",
    "ziggurat.web.pages.job.live_routes:router",
    "ziggurat.web.pages.job.routes:router",
)
"""Where the application finds the routers."""
