"""Administration of a PostgreSQL server for the tests."""

from __future__ import annotations

import sqlalchemy as sa

__all__ = ["engine_of", "on_server"]


def engine_of(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql:", "postgresql+pg8000:"), poolclass=sa.NullPool)


def on_server(url: str, *statements: str) -> None:
    """Run statements in one transaction."""
    with engine_of(url).begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
