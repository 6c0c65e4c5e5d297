"""Owns the steps from one schema of the store to the next; Alembic runs them."""

__all__: list[str] = []
