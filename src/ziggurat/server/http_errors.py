"""Errors that only a server raises, and the HTTP status of every error in the hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException

from ziggurat.errors import (
    CheckpointError,
    ConfigurationError,
    DataError,
    JobError,
    LostDatabaseError,
    MissingDependencyError,
    NetworkCodeError,
    NotThereError,
    StateError,
    StorageError,
    TrainingError,
    UsageError,
    ZigguratError,
)
from ziggurat.workspace.accounts import LoginError
from ziggurat.workspace.passwords import TooBusyError, TooManyLoginsError

__all__ = [
    "ConflictError",
    "ForbiddenError",
    "HTTPError",
    "NotFoundError",
    "NotLoggedInError",
    "NotReadyError",
    "TooLargeError",
    "ValidationError",
    "status_of",
]


class NotLoggedInError(UsageError):
    """Somebody must say who they are."""

    code = "not_logged_in"


class ForbiddenError(UsageError):
    """Somebody is known, and may not do this."""

    code = "forbidden"


class NotFoundError(UsageError, NotThereError):
    """There is nothing at that address."""

    code = "not_found"


class ConflictError(UsageError):
    """What is there does not allow it now."""

    code = "conflict"


class NotReadyError(JobError):
    """What a job needs for this is starting; ``details["retry_after_s"]`` says when to ask again."""

    code = "not_ready"


class TooLargeError(UsageError):
    """More was sent than is taken."""

    code = "too_large"


class ValidationError(ConfigurationError):
    """What was sent does not fit; ``details["fields"]`` says of each field what is wrong."""

    code = "validation"


_STATUSES: Final[tuple[tuple[type[ZigguratError], int], ...]] = (
    (NotLoggedInError, 401),
    (LoginError, 401),
    (ForbiddenError, 403),
    (NotThereError, 404),
    (ConflictError, 409),
    (TooLargeError, 413),
    (TooManyLoginsError, 429),
    (TooBusyError, 503),
    (NotReadyError, 503),
    (UsageError, 400),
    (ConfigurationError, 422),
    (DataError, 422),
    (NetworkCodeError, 422),
    (JobError, 409),
    (CheckpointError, 409),
    (StateError, 409),
    (TrainingError, 422),
    (MissingDependencyError, 501),
    (LostDatabaseError, 409),
    (StorageError, 507),
)


class HTTPError(HTTPException):
    """An error on its way to the client; FastAPI lets it through from everywhere, also while it reads a body.

    Args:
        error: what is said.
        status: of HTTP; that of the error's family where left out.
        headers: further ones.
    """

    def __init__(
        self, error: ZigguratError, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status or status_of(error), str(error), dict(headers or {}))
        self.error = error


def status_of(error: ZigguratError) -> int:
    """Return the HTTP status of an error: that of the first family in the table that it is of."""
    return next((status for family, status in _STATUSES if isinstance(error, family)), 500)
