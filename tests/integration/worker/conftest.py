"""Fixtures of the worker tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from worker_jobs import make_data, make_job, make_pictures
from worker_processes import Workers


@pytest.fixture(scope="session")
def workers(tmp_path_factory) -> Iterator[Workers]:
    """What starts workers."""
    started = Workers(tmp_path_factory.mktemp("workers"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """The folder of the tiny dataset."""
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory) -> Path:
    """A folder of classes with 66 small PNG files."""
    return make_pictures(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="session")
def photographs(tmp_path_factory) -> Path:
    """The same as JPEG files."""
    return make_pictures(tmp_path_factory.mktemp("photographs"), "jpg")


@pytest.fixture
def new_job(tmp_path, data):
    """Make a tiny job; the changes are fields of its spec."""
    count = 0

    def make(**changes: Any) -> Path:
        nonlocal count
        count += 1
        return make_job(tmp_path / f"job{count}", **{"data": data, **changes})

    return make


@pytest.fixture
def job(new_job) -> Path:
    """A tiny job that nobody began."""
    return new_job()
