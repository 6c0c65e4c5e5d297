"""The studio's own records: the audit log, and the few settings that it stores for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ziggurat.entities import AuditEntry
from ziggurat.store.database import Database
from ziggurat.store.tables import audit, settings

__all__ = ["AuditFilter", "AuditPage", "AuditRepository", "SettingRepository"]

_MOST = 1 << 31
_LONGEST_TARGET = 500


@dataclass(frozen=True, kw_only=True)
class AuditFilter:
    """Which entries.

    Args:
        who: of this user; empty for all.
        action: this action, or with a dot at its end all that begin so (``job.``); empty for all.
        target: done to this; empty for all.
        since: seconds since 1970, from which on; None for all.
        until: seconds since 1970, before which; None for all.
        offset: how many to leave out first.
        limit: how many to return at most.
    """

    who: str = ""
    action: str = ""
    target: str = ""
    since: float | None = None
    until: float | None = None
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, kw_only=True)
class AuditPage:
    """Some of the entries that a filter leaves, the newest first.

    Args:
        total: entries that it leaves.
        entries: of the page.
    """

    total: int
    entries: tuple[AuditEntry, ...]


class AuditRepository:
    """The audit log: it only grows.

    Args:
        database: where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, entry: AuditEntry) -> None:
        """Record an action."""
        row = {"time": entry.time, "who": entry.who, "action": entry.action, "target": entry.target[:_LONGEST_TARGET]}
        with self._database.write() as connection:
            connection.execute(sa.insert(audit).values(details=dict(entry.details), **row))

    def page(self, wanted: AuditFilter) -> AuditPage:
        """Return the newest entries that a filter leaves, and how many there are."""
        return self._database.until_changed(("audit", wanted), lambda: self._page(wanted))

    def _page(self, wanted: AuditFilter) -> AuditPage:
        conditions = [audit.c[name] == getattr(wanted, name) for name in ("who", "target") if getattr(wanted, name)]
        if wanted.action.endswith("."):
            conditions.append(audit.c.action.startswith(wanted.action, autoescape=True))
        elif wanted.action:
            conditions.append(audit.c.action == wanted.action)
        if wanted.since is not None:
            conditions.append(audit.c.time >= wanted.since)
        if wanted.until is not None:
            conditions.append(audit.c.time < wanted.until)
        offset, limit = (min(max(0, number), _MOST) for number in (wanted.offset, wanted.limit))
        newest = sa.select(audit).where(*conditions).order_by(audit.c.time.desc(), audit.c.key.desc())
        with self._database.read() as connection:
            total = connection.execute(sa.select(sa.func.count(audit.c.key)).where(*conditions)).scalar_one()
            rows = connection.execute(newest.offset(offset).limit(limit)).all()
        entries = (
            AuditEntry(time=row.time, who=row.who, action=row.action, target=row.target, details=row.details)
            for row in rows
        )
        return AuditPage(total=total, entries=tuple(entries))


class SettingRepository:
    """The studio's own few values by name, such as how many jobs may run at a time.

    Args:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or ``default`` if not set."""
        return self.all().get(name, default)

    def set(self, name: str, value: Any) -> None:
        """Set a value; None removes it.

        Args:
            name: of the value.
            value: any JSON value.
        """
        with self._database.write() as connection:
            connection.execute(sa.delete(settings).where(settings.c.name == name))
            if value is not None:
                connection.execute(sa.insert(settings).values(name=name, value=value))

    def all(self) -> dict[str, Any]:
        """Return all values by name; they are read again after a change of the database, by any process."""
        return dict(self._database.until_changed("settings", self._read))

    def _read(self) -> dict[str, Any]:
        with self._database.read() as connection:
            return {row.name: row.value for row in connection.execute(sa.select(settings))}
