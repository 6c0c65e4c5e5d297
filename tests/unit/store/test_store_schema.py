"""The schema: made, migrated with a backup first, refused where it is newer or somebody else's."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from store_samples import new_job
from store_server import engine_of, on_server

import ziggurat.store
from ziggurat.errors import SettingsError, StorageError
from ziggurat.store import Store
from ziggurat.store.schema import REVISIONS
from ziggurat.store.tables import metadata

OLD = Path(__file__).with_name("schema_0001.sql")


def old_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD.read_text())


def test_the_tables_are_those_that_the_migrations_make(address: str) -> None:
    Store.open(address).close()
    engine = engine_of(address if "://" in address else f"sqlite:///{address}")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_the_known_revisions_are_those_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(ziggurat.store.__file__).parent / "migrations"))
    revisions = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert list(REVISIONS) == revisions[::-1]


def test_opening_a_current_database_loads_no_alembic(tmp_path: Path) -> None:
    Store.open(tmp_path / "studio.db").close()
    code = (
        "import sys\nfrom ziggurat.store import Store\nStore.open(sys.argv[1]).close()\nprint('alembic' in sys.modules)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "studio.db")]
    assert subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout == "False\n"


def test_an_older_database_is_copied_and_migrated(tmp_path: Path) -> None:
    path = tmp_path / "studio.db"
    old_database(path)
    with Store.open(path, backup_folder=tmp_path / "backups") as store:
        job = store.jobs.get("20260101-000000-aaaa")
        assert (job.name, job.state, job.spec, job.tags, job.needs.devices) == (
            "Old job", "done", {"learning_rate": 0.1}, ("good",), 1
        )  # fmt: skip
        assert store.curves.curve(job.id, "loss").values.tolist() == [0.5, 0.25]
        assert store.people.users.count() == 1
        assert store.datasets.facts([job.id]) == {job.id: {}}
        store.jobs.note(job.id, facts={"samples": 3})
    backup = tmp_path / "backups" / f"studio.db.before-{REVISIONS[-1]}"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600, "hashes of passwords are in it"
    with closing(sqlite3.connect(backup)) as copy:
        assert copy.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
        assert copy.execute("SELECT name FROM jobs").fetchall() == [("Old job",)]
    Store.open(path, backup_folder=tmp_path / "backups").close()  # nothing to be done: no further copy
    assert [path.name for path in (tmp_path / "backups").iterdir()] == [f"studio.db.before-{REVISIONS[-1]}"]


def test_a_backup_never_replaces_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "studio.db"
    old_database(path)
    first = tmp_path / f"studio.db.before-{REVISIONS[-1]}"
    first.write_text("another one")
    Store.open(path).close()
    assert first.read_text() == "another one"
    assert (tmp_path / f"{first.name}.2").stat().st_size > 0


def test_without_room_for_a_backup_nothing_is_migrated(tmp_path: Path) -> None:
    path, blocked = tmp_path / "studio.db", tmp_path / "file"
    old_database(path)
    blocked.write_text("")
    with pytest.raises(StorageError, match=r"must be backed up to .* before its schema is changed"):
        Store.open(path, backup_folder=blocked)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)


def test_an_older_postgresql_is_migrated_with_a_backup(empty_postgresql: str) -> None:
    with Store.open(empty_postgresql) as store:
        store.jobs.add(new_job("a"))
    older = (
        "DROP TABLE saved_items",
        "DROP INDEX jobs_by_kind",
        "ALTER TABLE job_contents DROP COLUMN facts",
        "ALTER TABLE jobs DROP COLUMN worker",
        "ALTER TABLE jobs DROP COLUMN placement",
        "UPDATE alembic_version SET version_num = '0001'",
    )
    on_server(empty_postgresql, *older)
    with pytest.raises(StorageError, match=r"must be backed up .* revision 0001; this release needs .* `pg_dump`"):
        Store.open(empty_postgresql)
    with Store.open(empty_postgresql, backup_made=True) as store:
        assert store.datasets.facts(["a"]) == {"a": {}}


def test_a_missing_package_is_named() -> None:
    program = "import sys; sys.modules['sqlalchemy'] = None; import ziggurat.store"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "The package `sqlalchemy` is needed for the studio's store, and it is not installed." in said.stderr
    assert "pip install 'ziggurat[studio]'" in said.stderr


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "studio.db"
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    with pytest.raises(StorageError, match=r"must have a schema that this release knows.*revision 9999; the"):
        Store.open(path)


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    text, other = tmp_path / "text.db", tmp_path / "other.db"
    text.write_text("no database at all, but long enough to look like one" * 100)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    before = other.read_bytes()
    with pytest.raises(StorageError, match=r"file is not a database\)\. Put a backup in its place"):
        Store.open(text)
    with pytest.raises(StorageError, match=r"empty or the studio's own.*tables recipes"):
        Store.open(other)
    assert text.read_text().startswith("no database at all")
    assert other.read_bytes() == before


@pytest.mark.parametrize(
    ("address", "words"),
    [("mysql://root:secret@host/db", "received: mysql"), (":memory:", "Name a file"), ("://", "cannot be read"),
     ("sqlite://", "Name a file")],
)  # fmt: skip
def test_addresses_that_name_no_store(address: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        Store.open(address)
    assert "secret" not in str(caught.value)
