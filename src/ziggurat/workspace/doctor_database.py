"""Database diagnostics for ``ziggurat doctor``; they change nothing and show no password."""

from __future__ import annotations

from typing import Final

from ziggurat.errors import MissingDependencyError, SettingsError, StorageError, UnknownNameError
from ziggurat.workspace.doctor_finding import Finding

try:
    from ziggurat.store.schema import DatabaseState, inspect_database
except (ImportError, MissingDependencyError):  # a package is missing, which is said elsewhere
    inspect_database = None

__all__ = ["examine_database"]

_HELP: Final = "docs/how-to/use-postgresql.md says what an address looks like."


def examine_database(url: str) -> Finding:
    """Return whether the database answers, its version, and what its schema needs.

    Args:
        url: of a PostgreSQL database.
    """
    if inspect_database is None:
        return _problem("cannot be looked at without the studio", "Install it with: pip install 'ziggurat[studio]'")
    try:
        return _judged(inspect_database(url))
    except MissingDependencyError as error:
        return _problem(str(error.rule), error.advice)
    except (SettingsError, UnknownNameError) as error:
        return _problem(str(error), _HELP)
    except StorageError as error:
        return _problem(f"{error.rule} {error.received or ''}".strip(), error.advice)


def _judged(found: DatabaseState) -> Finding:
    place = f"{found.place}, PostgreSQL {found.version}"
    if found.encoding != "UTF8":
        text = f"{place}: its encoding must be UTF8, and is {found.encoding}"
        return _problem(text, "Make another one: createdb --encoding UTF8 --template template0 NAME")
    if found.is_foreign:
        return _problem(f"{place}, holds tables of somebody else", "Name an empty database, or the studio's own.")
    if not found.revision:
        return _finding("ok", f"{place}, empty; the first `ziggurat up` makes the tables")
    if found.is_newer:
        text = f"{place}, was made by a newer release (revision {found.revision}; this one knows {found.newest})"
        return _problem(text, "Install that release, or put back a backup of before.")
    if found.revision != found.newest:
        text = f"{place}, revision {found.revision}; this release needs {found.newest}, and makes no backup of it"
        return _finding("note", text, "Back it up with `pg_dump`, then call: ziggurat up --backup-made")
    return _finding("ok", f"{place}, revision {found.revision}, answers")


def _problem(text: str, advice: str) -> Finding:
    return _finding("problem", text, advice)


def _finding(level: str, text: str, advice: str = "") -> Finding:
    return Finding("studio", "database", level, text, advice)
