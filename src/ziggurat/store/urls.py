"""Store addresses: the path of an SQLite file, or the URL of an SQLite or PostgreSQL database."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ziggurat.errors import SettingsError, StorageError

__all__ = ["database_url"]

_RULE = "A store is the path of an SQLite file, `sqlite:///PATH`, or `postgresql://USER@HOST/DATABASE`."


def database_url(url_or_path: str | os.PathLike[str]) -> URL:
    """Return the URL of a store; the folder of an SQLite file is made.

    Raises:
        SettingsError: where it is neither.
        StorageError: where the folder cannot be made.
    """
    text = os.fspath(url_or_path)
    if "://" not in text:
        return _sqlite(text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise SettingsError(_RULE, received="a URL that cannot be read") from error  # it may hold a password
    if "@" in (url.host or ""):  # the end of a password would be shown as part of the host
        raise SettingsError("In the password of an address, `@` is written `%40`.", received="an address with two `@`")
    backend = url.get_backend_name()
    if backend == "sqlite":
        return _sqlite(url.database or "")
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+pg8000")
    raise SettingsError(_RULE, received=f"{backend}://…", advice="Use one of them.")


def _sqlite(path: str) -> URL:
    if path in ("", ":memory:"):
        raise SettingsError(_RULE, received=repr(path), advice="Name a file: a store outlives the process.")
    file = Path(path).absolute()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The folder of the studio's database must be there: {file.parent}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Make the folder, or mend the rights of the one above it.",
        ) from error
    return URL.create("sqlite", database=str(file))
