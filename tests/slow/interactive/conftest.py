"""Homes of a Python session: a workspace folder, and a real studio on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ziggurat as zig
from tests.five_lines import photos
from tests.slow.client.conftest import address, studio
from ziggurat.interactive import homes

__all__ = ["address", "studio"]


@pytest.fixture(autouse=True)
def _unconnected() -> Iterator[None]:
    homes.forget_home()
    yield
    homes.forget_home()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with 24 images of two classes."""
    return photos(tmp_path_factory.mktemp("files") / "shapes")[0]


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home") / "workspace"


@pytest.fixture(params=["folder", "studio"])
def home(request: pytest.FixtureRequest, workspace: Path) -> zig.Connection:
    """Connect to each home in turn."""
    return zig.connect(workspace if request.param == "folder" else request.getfixturevalue("address"))
