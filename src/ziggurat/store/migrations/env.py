"""Alembic environment: migrations run on the connection and in the transaction that the store provides."""

from __future__ import annotations

from alembic import context

__all__: list[str] = []

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
