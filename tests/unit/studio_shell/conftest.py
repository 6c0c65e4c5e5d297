"""Fixtures of the studio's shell tests: in-process calls of ``ziggurat`` with a workspace of their own."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from ziggurat.cli.application import Application
from ziggurat.cli.main import main


@dataclass
class Answer:
    """What one call of ``ziggurat`` gave."""

    code: int
    out: str
    err: str

    @property
    def content(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def quiet_environment(tmp_path, monkeypatch):
    """No settings of the person who tests."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "NO_COLOR", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def workspace(tmp_path):
    """The folder of the studio; it is not there yet."""
    return tmp_path / "workspace"


@pytest.fixture
def ziggurat(capfd, monkeypatch, workspace):
    """Call ``ziggurat`` with words; ``typed`` stands in standard input."""

    def call(*words: object, typed: str = "") -> Answer:
        capfd.readouterr()
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = main(["--workspace", str(workspace), *(str(word) for word in words)], Application())
        captured = capfd.readouterr()
        return Answer(code, captured.out, captured.err)

    return call
