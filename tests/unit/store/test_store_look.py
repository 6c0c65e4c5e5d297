"""The doctor looks at a database on a server: it says what to do, changes nothing, and shows no password."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from store_server import engine_of, on_server

from ziggurat.errors import StorageError
from ziggurat.settings import Settings
from ziggurat.store import Store
from ziggurat.store.schema import REVISIONS, inspect_database
from ziggurat.workspace.doctor import examine_database
from ziggurat.workspace.studio.bootstrap import open_studio, upgrade_database


def test_a_sound_database(empty_postgresql: str) -> None:
    Store.open(empty_postgresql).close()
    found = examine_database(empty_postgresql)
    version = inspect_database(empty_postgresql).version
    assert (found.level, found.advice) == ("ok", "")
    assert found.text == f"{empty_postgresql}, PostgreSQL {version}, revision {REVISIONS[-1]}, answers"


def test_an_empty_database_stays_empty(empty_postgresql: str) -> None:
    found = examine_database(empty_postgresql)
    assert (found.level, found.text.endswith("empty; the first `ziggurat up` makes the tables")) == ("ok", True)
    with engine_of(empty_postgresql).connect() as connection:
        assert sa.inspect(connection).get_table_names() == []


def test_an_older_schema_needs_a_backup_that_a_person_makes(empty_postgresql: str) -> None:
    Store.open(empty_postgresql).close()
    on_server(empty_postgresql, "UPDATE alembic_version SET version_num = '0001'")
    found = examine_database(empty_postgresql)
    assert found.level == "note"
    assert f"revision 0001; this release needs {REVISIONS[-1]}, and makes no backup of it" in found.text
    assert found.advice == "Back it up with `pg_dump`, then call: ziggurat up --backup-made"
    assert inspect_database(empty_postgresql).revision == "0001"  # looking changed nothing


def test_a_studio_updates_it_once_a_backup_is_confirmed(empty_postgresql: str, tmp_path: Path) -> None:
    Store.open(empty_postgresql).close()
    older = ("ALTER TABLE job_contents DROP COLUMN facts", "DROP TABLE saved_items", "DROP INDEX jobs_by_kind")
    newer = ("ALTER TABLE jobs DROP COLUMN worker", "ALTER TABLE jobs DROP COLUMN placement")
    on_server(empty_postgresql, *older, *newer, "UPDATE alembic_version SET version_num = '0001'")
    settings = Settings(workspace=tmp_path)
    with pytest.raises(StorageError, match="say so: `ziggurat up --backup-made`"):
        open_studio(settings, url=empty_postgresql, start=False)
    upgrade_database(settings, empty_postgresql)
    open_studio(settings, url=empty_postgresql, start=False).close()
    assert examine_database(empty_postgresql).level == "ok"


def test_a_newer_schema_is_a_problem(empty_postgresql: str) -> None:
    Store.open(empty_postgresql).close()
    on_server(empty_postgresql, "UPDATE alembic_version SET version_num = '9999'")
    found = examine_database(empty_postgresql)
    assert (found.level, found.advice) == ("problem", "Install that release, or put back a backup of before.")
    assert "revision 9999" in found.text


def test_tables_of_somebody_else_are_a_problem(empty_postgresql: str) -> None:
    on_server(empty_postgresql, "CREATE TABLE recipes (name TEXT)")
    found = examine_database(empty_postgresql)
    assert (found.level, "holds foreign tables" in found.text) == ("problem", True)


def test_another_encoding_is_a_problem(empty_postgresql: str) -> None:
    with engine_of(empty_postgresql).execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(sa.text("DROP DATABASE IF EXISTS latin"))
        connection.execute(sa.text("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"))
    found = examine_database(empty_postgresql.rpartition("/")[0] + "/latin")
    assert (found.level, "must be UTF8, and is LATIN1" in found.text) == ("problem", True)
    assert "createdb --encoding UTF8" in found.advice


@pytest.mark.parametrize(
    "address",
    ["postgresql://fred:se:cret@127.0.0.1:1/db", "postgresql://fred:secret@127.0.0.1:1/db?sslmode=require"],
)
def test_a_silent_server_is_told_without_the_password(address: str) -> None:
    pytest.importorskip("pg8000", reason="the extra `postgresql` (pg8000) is not installed")
    found = examine_database(address)
    assert found.level == "problem"
    assert "Connection refused" in found.text
    assert "cret" not in str(found)


def test_a_wrong_password_is_told_without_it(empty_postgresql: str) -> None:
    on_server(empty_postgresql, "DROP ROLE IF EXISTS guarded", "CREATE ROLE guarded LOGIN PASSWORD 'right'")
    found = examine_database(empty_postgresql.replace("ziggurat@", "guarded:wr0ng@"))
    assert found.level == "problem"
    assert "Mend the user or the password" in found.advice
    assert "wr0ng" not in str(found)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://host/db", "must name the user"),
        ("postgresql://u@host/db?ssl_mode=require", "Did you mean `sslmode`"),
        ("mysql://u:secret@host/db", "mysql"),
        ("postgresql://u:top@secret@host/db", "`@` is written `%40`"),
    ],
)
def test_an_address_that_is_none(address: str, words: str) -> None:
    found = examine_database(address)
    assert (found.level, words in found.text) == ("problem", True)
    assert "secret" not in str(found)
