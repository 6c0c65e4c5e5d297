"""Imports of studio modules for commands, with a clear error when the extra ``studio`` is not installed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ziggurat.errors import MissingDependencyError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["studio_module"]

_PACKAGES: Final = {"argon2": "argon2-cffi", "multipart": "python-multipart"}
"""Module → name of its package, where they differ."""


def studio_module(name: str) -> Any:
    """Import a module of Ziggurat that needs the extra ``studio``; other commands must work without it.

    Raises:
        MissingDependencyError: where a package is not installed.
    """
    try:
        module: ModuleType = import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "ziggurat"):
            raise
        raise MissingDependencyError(_PACKAGES.get(missing, missing), extra="studio", purpose="the studio") from None
    return module
