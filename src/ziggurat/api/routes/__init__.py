"""Routes of ``/api/v1``: each calls the studio method of the same name."""

from typing import Final

__all__ = ["ROUTERS"]

ROUTERS: Final = (
    "ziggurat.api.routes.jobs:router",
    "ziggurat.api.routes.jobs:curves_router",
    "ziggurat.api.routes.job_records:router",
    "ziggurat.api.routes.training:previews_router",
    "ziggurat.api.routes.datasets:router",
    "ziggurat.api.routes.dataset_boxes:router",
    "ziggurat.api.routes.datasets:uploads_router",
    "ziggurat.api.routes.training:router",
    "ziggurat.api.routes.network_checks:router",
    "ziggurat.api.routes.programs:router",
    "ziggurat.api.routes.models:router",
    "ziggurat.api.routes.weights:router",
    "ziggurat.api.routes.evaluations:router",
    "ziggurat.api.routes.studio:router",
    "ziggurat.api.routes.saved_items:router",
)
"""Where the application finds the routers."""
