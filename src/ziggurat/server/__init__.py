"""HTTP server: application, authentication, permissions, errors and event stream, for the API and the pages."""

from ziggurat.errors import MissingDependencyError

try:
    import fastapi as _fastapi  # noqa: F401  (asked for here, so that a missing one is said in one place)
except ModuleNotFoundError as error:
    raise MissingDependencyError("fastapi", extra="studio", purpose="the studio's server") from error
