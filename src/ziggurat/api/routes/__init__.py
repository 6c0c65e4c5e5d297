"""Routes of ``/api/v1``: each calls the studio method of the same name."""

from typing import Final

__all__ = ["ROUTERS"]

ROUTERS: Final = (
    "ziggurat.api.routes.jobs:router",
    "ziggurat.api.routes.job_files:router",
    "ziggurat.api.routes.curves:router",
    "ziggurat.api.routes.previews:router",
    "ziggurat.api.routes.datasets:router",
    "ziggurat.api.routes.dataset_versions:router",
    "ziggurat.api.routes.uploads:router",
    "ziggurat.api.routes.training:router",
    "ziggurat.api.routes.models:router",
    "ziggurat.api.routes.exports:router",
    "ziggurat.api.routes.pretrained:router",
    "ziggurat.api.routes.evaluations:router",
    "ziggurat.api.routes.studio:router",
    "ziggurat.api.routes.limits:router",
)
"""Where the application finds the routers."""
