"""Fixtures of the store tests: each test runs on SQLite and on PostgreSQL."""

from tests.unit.store.conftest import address, empty_postgresql, postgresql_url, sqlite_store, store

__all__ = ["address", "empty_postgresql", "postgresql_url", "sqlite_store", "store"]
