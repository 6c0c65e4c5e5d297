"""Persistent store of the studio: jobs, curves, accounts and projects, in SQLite or PostgreSQL."""

try:
    import alembic as _alembic  # noqa: F401 - looked for, so that its absence is said in words
    import sqlalchemy as _sqlalchemy  # noqa: F401
except ModuleNotFoundError as _error:
    from ziggurat.errors import MissingDependencyError

    _package = str(_error.name).split(".")[0]
    raise MissingDependencyError(_package, extra="studio", purpose="the studio's store") from _error

from ziggurat.store.records import AuditFilter, AuditPage
from ziggurat.store.reindex import JobOnDisk, ReindexReport
from ziggurat.store.sessions import digest_of
from ziggurat.store.settling import Relocation
from ziggurat.store.store import Store

__all__ = ["AuditFilter", "AuditPage", "JobOnDisk", "ReindexReport", "Relocation", "Store", "digest_of"]
