"""Connections that are cut are failures of the store, whatever the driver raises."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from ziggurat.errors import StorageError
from ziggurat.store.database import Database, database_url


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(104, "Connection reset by peer"),
        BrokenPipeError(32, "Broken pipe"),
        TimeoutError("timed out"),
        ssl.SSLError(1, "bad record"),
    ],
)
def test_database_reports_a_cut_connection(tmp_path: Path, error: OSError) -> None:
    database = Database(database_url(tmp_path / "studio.db"))
    for transaction in (database.write, database.read):
        with pytest.raises(StorageError) as caught, transaction():
            raise error
        assert caught.value.received
    database.close()
