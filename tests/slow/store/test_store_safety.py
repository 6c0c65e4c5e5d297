"""What must not break a store: threads, processes, kill -9, and a full disk."""

from __future__ import annotations

import multiprocessing
import queue
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.unit.store.store_processes import add_jobs, write_until_killed, write_until_the_disk_is_full
from tests.unit.store.store_samples import message, new_job, point
from ziggurat.entities import JobFilter
from ziggurat.errors import StorageError
from ziggurat.store import Store

SPAWN = multiprocessing.get_context("spawn")


def in_threads(count: int, work: object) -> list[BaseException]:
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)  # type: ignore[operator]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_only_one_of_many_threads_moves_a_job_or_takes_a_batch(store: Store) -> None:
    for number in range(10):
        store.jobs.add(new_job(f"j{number}"))
    moved: queue.Queue[str] = queue.Queue()
    taken: queue.Queue[str] = queue.Queue()

    def work(_: int) -> None:
        for number in range(10):
            if store.jobs.move(f"j{number}", ["queued"], "running"):
                moved.put(f"j{number}")
            if store.events.take(f"j{number}", 0, 10, [point("loss", 1, 1.0), message("once")]):
                taken.put(f"j{number}")
            assert store.jobs.page(JobFilter(states=("running",))).total >= number + 1

    assert in_threads(8, work) == []
    expected = [f"j{number}" for number in range(10)]
    assert sorted(moved.queue) == sorted(taken.queue) == expected
    assert all(len(store.curves.messages(job_id)) == 1 for job_id in expected)


def test_a_reader_does_not_wait_for_a_writer(sqlite_store: Store, tmp_path: Path) -> None:
    sqlite_store.jobs.add(new_job("a"))
    with closing(sqlite3.connect(tmp_path / "studio.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE jobs SET name = 'unfinished'")
        assert sqlite_store.jobs.get("a").name == "a"
        other.execute("ROLLBACK")


def test_two_processes_open_and_write_one_store(address: str) -> None:
    with Store.open(address) as store:
        store.jobs.add(new_job("common"))
    processes = [SPAWN.Process(target=add_jobs, args=(address, prefix, 20)) for prefix in "xy"]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    with Store.open(address) as store:
        page = store.jobs.page(JobFilter(limit=100))
        assert page.total == 41
        assert len({job.position for job in page.jobs}) == 41
        assert [count for _, count in store.projects.all()] == [40]
        assert len(store.curves.messages("common")) == 1


def test_many_open_a_new_store_at_once(address: str) -> None:
    stores: queue.Queue[Store] = queue.Queue()
    assert in_threads(4, lambda _: stores.put(Store.open(address))) == []
    for number, opened in enumerate(stores.queue):
        opened.jobs.add(new_job(f"j{number}"))
        opened.close()


@pytest.mark.nightly
def test_a_killed_writer_leaves_whole_batches(tmp_path: Path) -> None:
    address = str(tmp_path / "studio.db")
    with Store.open(address) as store:
        store.jobs.add(new_job("a"))
    for _ in range(2):
        ready = SPAWN.Event()
        process = SPAWN.Process(target=write_until_killed, args=(address, ready))
        process.start()
        assert ready.wait(60)
        process.join(0.3)
        process.kill()
        process.join()
        with Store.open(address) as store:
            job = store.jobs.get("a")
            assert job.scalars["loss"].count == job.events_offset * 500
            assert store.curves.curve("a", "loss").total == job.events_offset * 500
    with closing(sqlite3.connect(address)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_full_disk_is_said_and_breaks_nothing(tmp_path: Path) -> None:
    address = str(tmp_path / "studio.db")
    with Store.open(address) as store:
        store.jobs.add(new_job("a"))
    answers = SPAWN.Queue()
    process = SPAWN.Process(target=write_until_the_disk_is_full, args=(address, answers))
    process.start()
    written, said, offset = answers.get(timeout=60)
    process.join()
    assert written >= 1
    assert "database must be readable and writable" in said
    assert "Free space on its disk; what was stored before is still there." in said
    with Store.open(address) as store:
        assert store.jobs.get("a").events_offset == offset
        store.jobs.note("a", reason="room again")
    with closing(sqlite3.connect(address)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="folder of the studio's database must be there"):
        Store.open(tmp_path / "file" / "studio.db")
    with pytest.raises(StorageError, match="unable to open database file"):
        Store.open(tmp_path)
