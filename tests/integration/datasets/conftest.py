"""Fixtures for tests that create datasets with real workers."""

from __future__ import annotations

import pytest
from dataset_shell import Shell, class_folders


@pytest.fixture(autouse=True)
def quiet_environment(tmp_path, monkeypatch):
    """No settings of the person who tests, and no bars."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ZIGGURAT_PROGRESS", "none")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def ziggurat(capfd) -> Shell:
    """Call ``ziggurat`` with words; real workers work."""
    return Shell(capfd)


@pytest.fixture
def pets(tmp_path):
    """Class folders with 24 images, 20 pixels high and 24 wide."""
    return class_folders(tmp_path / "pets as files", 24)
