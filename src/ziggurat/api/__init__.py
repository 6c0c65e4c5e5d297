"""Studio server: one application for the REST API, the event stream and the pages, with permissions."""

from ziggurat.errors import MissingDependencyError

try:
    import fastapi as _fastapi  # noqa: F401  (asked for here, so that a missing one is said in one place)
except ModuleNotFoundError as error:
    raise MissingDependencyError("fastapi", extra="studio", purpose="the studio's server") from error

from ziggurat.api.app import create_app
from ziggurat.api.guard import anyone, identity_of, needs, new_router
from ziggurat.api.server import StudioServer

__all__ = ["StudioServer", "anyone", "create_app", "identity_of", "needs", "new_router"]
