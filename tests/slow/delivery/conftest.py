"""The database server of compose.yaml, started here."""

from tests.unit.store.conftest import empty_postgresql, postgresql_url

__all__ = ["empty_postgresql", "postgresql_url"]
