"""PostgreSQL's own: the driver, what an address may say, the password, connections that break."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_samples import new_job
from store_server import engine_of, on_server

from ziggurat.errors import SettingsError, StorageError, UnknownNameError
from ziggurat.store import Store
from ziggurat.store.database import Database, database_url


@pytest.fixture
def guarded(empty_postgresql: str) -> str:
    """URL of a user who must show the password ``a:b\\c``."""
    on_server(
        empty_postgresql,
        "DROP ROLE IF EXISTS guarded",
        r"CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'a\:b\c'",
    )
    return empty_postgresql.replace("ziggurat@", "guarded@")


def test_a_missing_driver_is_named() -> None:
    program = (
        "import sys; sys.modules['pg8000'] = None\n"
        "from ziggurat.store import Store; Store.open('postgresql://fred:secret@127.0.0.1:1/db')"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stderr
    assert "The package `pg8000` is needed for a store in PostgreSQL, and it is not installed." in said
    assert "pip install 'ziggurat[postgresql]'" in said


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("postgresql://host/db", r"must name the user: .* \(received: no user"),
        ("postgresql://u@host/db?connect_timeout=soon", r"whole number of seconds from 1 to 3600 \(received: soon"),
        ("postgresql://u@host/db?sslmode=verify-full&sslrootcert=/nowhere.pem", r"PEM form \(received: /nowhere.pem"),
        ("postgresql://u@host/db?passfile=/nowhere", "readable file of passwords: /nowhere"),
    ],
)
def test_addresses_that_cannot_be(address: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Store.open(address)


def test_what_an_address_says_must_be_known() -> None:
    with pytest.raises(UnknownNameError, match=r"`ssl_mode` is not a known option .* Did you mean `sslmode`"):
        Store.open("postgresql://u@host/db?ssl_mode=require")
    with pytest.raises(UnknownNameError, match="`verify` is not a known sslmode"):
        Store.open("postgresql://u@host/db?sslmode=verify")


def test_a_silent_server_is_named_without_its_password() -> None:
    pytest.importorskip("pg8000")
    with pytest.raises(StorageError, match=r"postgresql://fred:\*\*\*@127.0.0.1:1/db.*Connection refused") as caught:
        Store.open("postgresql://fred:secret@127.0.0.1:1/db")
    assert "secret" not in str(caught.value)


def test_a_server_without_tls_is_refused_where_it_is_asked(empty_postgresql: str) -> None:
    with pytest.raises(StorageError, match="Server refuses SSL"):
        Store.open(f"{empty_postgresql}?sslmode=require")
    Store.open(f"{empty_postgresql}?sslmode=disable&connect_timeout=5").close()


def test_a_server_on_this_machine_is_reached_through_its_socket(empty_postgresql: str) -> None:
    with engine_of(empty_postgresql).connect() as connection:
        folder = connection.execute(sa.text("SHOW unix_socket_directories")).scalar_one()
    address = empty_postgresql.replace("127.0.0.1", "") + f"?host={folder}&application_name=studio"
    with Store.open(address) as store, engine_of(empty_postgresql).connect() as connection:
        clients = "SELECT DISTINCT client_addr FROM pg_stat_activity WHERE application_name = 'studio'"
        assert connection.execute(sa.text(clients)).scalars().all() == [None]
        assert store.jobs.counts()["queued"] == 0


def test_the_password_may_stand_in_a_file(guarded: str, tmp_path: Path) -> None:
    passwords = tmp_path / "passwords"
    lines = ("# the studio", "other:*:*:guarded:wrong", r"127.0.0.1:*:postgres:guarded:a\:b\\c", "*:*:*:*:wrong")
    passwords.write_text("\n".join(lines))
    passwords.chmod(0o640)
    with pytest.raises(
        SettingsError, match=r"Only its owner may read .* \(received: mode 640\). Mend it with: chmod 600"
    ):
        Store.open(f"{guarded}?passfile={passwords}")
    passwords.chmod(0o600)
    with Store.open(f"{guarded}?passfile={passwords}") as store:
        assert store.jobs.counts()["queued"] == 0
        assert "passfile" in store.place


@pytest.mark.parametrize("password", ["", ":wrong"])
def test_a_wrong_password_is_said(guarded: str, password: str) -> None:
    with pytest.raises(StorageError, match="Mend the user or the password of the address") as caught:
        Store.open(guarded.replace("guarded@", f"guarded{password}@"))
    assert "SQLSTATE 28P01" in str(caught.value)
    assert "wrong" not in str(caught.value)


def test_a_database_that_is_not_there_is_said(empty_postgresql: str) -> None:
    with pytest.raises(StorageError, match=r'received: database "nothing" does not exist \(SQLSTATE 3D000\)'):
        Store.open(empty_postgresql.replace("/postgres", "/nothing"))


def test_a_store_goes_on_after_the_server_ended_its_connections(empty_postgresql: str) -> None:
    with Store.open(f"{empty_postgresql}?application_name=studio") as store:
        for number in range(3):
            store.jobs.add(new_job(f"j{number}"))
            assert len(store.jobs.in_states(["queued"])) == number + 1
            every = "FROM pg_stat_activity WHERE application_name = 'studio'"
            on_server(empty_postgresql, f"SELECT pg_terminate_backend(pid, 5000) {every}")


def test_a_connection_that_the_server_ended_keeps_no_file_open(empty_postgresql: str) -> None:
    gc.collect()
    gc.disable()  # errors that refer to each other would be kept for a while, and what they hold with them
    try:
        with Store.open(f"{empty_postgresql}?application_name=studio") as store:
            store.jobs.add(new_job("j0"))
            files = len(os.listdir("/dev/fd"))
            every = "FROM pg_stat_activity WHERE application_name = 'studio'"
            on_server(empty_postgresql, f"SELECT pg_terminate_backend(pid, 5000) {every}")
            store.jobs.add(new_job("j1"))
            assert len(os.listdir("/dev/fd")) == files
    finally:
        gc.enable()


def test_a_broken_off_statement_leaves_the_next_no_answer(empty_postgresql: str) -> None:
    database = Database(database_url(empty_postgresql))
    with pytest.raises(UnicodeEncodeError), database.write() as connection:
        connection.execute(sa.text("SELECT :word"), {"word": "\ud800"})
    with database.write() as connection:
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1
        assert connection.execute(sa.text("SELECT 2")).scalar() == 2
    database.close()
