"""Folders of jobs lie relative to the workspace in the database, and are absolute for every reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_samples import new_job
from store_server import engine_of

from ziggurat.errors import JobError
from ziggurat.layout import Places
from ziggurat.store import Relocation, Store


def stored_folders(address: str) -> dict[str, str]:
    """Return id → folder as the database holds it."""
    engine = engine_of(address if "://" in address else f"sqlite:///{address}")
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT id, folder FROM jobs").all()
    engine.dispose()
    return dict(tuple(row) for row in rows)


def workspace_with(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
    return folder


def test_folder_in_the_workspace_is_stored_relative(address: str, tmp_path: Path) -> None:
    work = workspace_with(tmp_path / "work", "jobs/a")
    with Store.open(address, workspace=work) as store:
        store.jobs.add(new_job("a", folder=str(work / "jobs" / "a")))
        store.jobs.add(new_job("b", folder="/elsewhere/jobs/b"))
        assert store.jobs.get("a").folder == str(work / "jobs" / "a")
        assert store.jobs.get("b").folder == "/elsewhere/jobs/b"
    assert stored_folders(address) == {"a": "jobs/a", "b": "/elsewhere/jobs/b"}


def test_absolute_folders_of_0_1_become_relative(address: str, tmp_path: Path) -> None:
    work = workspace_with(tmp_path / "work", "jobs/a", "datasets/d")
    with Store.open(address, workspace=tmp_path / "other") as store:
        for name, folder in (("a", "/old/jobs/a"), ("d", "/old/datasets/d"), ("gone", "/old/jobs/gone")):
            store.jobs.add(new_job(name, folder=folder))
        store.jobs.add(new_job("alias", folder="/link/jobs/a"))
    with Store.open(address, workspace=work) as store:
        assert store.settle(work) == Relocation(before="/old", copied=False)
        assert {name: store.jobs.get(name).folder for name in ("a", "d", "gone", "alias")} == {
            "a": str(work / "jobs" / "a"),
            "d": str(work / "datasets" / "d"),
            "gone": str(work / "jobs" / "gone"),
            "alias": "/link/jobs/a",  # a job keeps its own folder: that one has another id
        }
        assert store.settle(work) is None
    assert Places.of(work) == Places(present=str(work), earlier=("/old",))


def test_paths_in_specs_are_those_of_now(address: str, tmp_path: Path) -> None:
    work = workspace_with(tmp_path / "work", "jobs/a", "datasets/d")
    spec = {"data": {"source": "/old/datasets/d"}, "pretrained": "/old/jobs/gone", "name": "/old/jobs/a", "rate": 0.1}
    with Store.open(address) as store:
        store.jobs.add(new_job("a", folder="/old/jobs/a", spec=spec))
    with Store.open(address, workspace=work) as store:
        store.settle(work)
        assert store.jobs.get("a").spec == {
            "data": {"source": str(work / "datasets" / "d")},
            "pretrained": str(work / "jobs" / "gone"),
            "name": "/old/jobs/a",
            "rate": 0.1,
        }


def test_shared_database_is_refused_until_it_is_taken_over(empty_postgresql: str, tmp_path: Path) -> None:
    first, second = (workspace_with(tmp_path / name, "jobs") for name in ("first", "second"))
    with Store.open(empty_postgresql, workspace=first) as store:
        assert store.settle(first) is None
    with Store.open(empty_postgresql, workspace=second) as store:
        with pytest.raises(JobError, match=r"belongs to one workspace: .*that of .*/first, which is still there"):
            store.settle(second)
        store.settle(second, take_over=True)
    with (
        Store.open(empty_postgresql, workspace=first) as store,
        pytest.raises(JobError, match="belongs to one workspace"),
    ):
        store.settle(first)
