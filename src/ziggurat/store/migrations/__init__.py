"""Schema migrations of the store, run by Alembic."""

__all__: list[str] = []
