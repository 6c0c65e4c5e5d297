"""``ziggurat run-script``: its words; what it runs has tests beside TensorFlow."""

from __future__ import annotations

from pathlib import Path


def test_the_script_must_be_there(ziggurat, tmp_path: Path) -> None:
    said = ziggurat("run-script", tmp_path / "nothing.py", "--flag")
    assert said.code == 2
    assert "nothing.py' does not exist." in said.err


def test_a_script_must_be_named(ziggurat) -> None:
    said = ziggurat("run-script")
    assert said.code == 2
    assert "Missing argument 'SCRIPT'." in said.err


def test_its_help_comes_before_the_script(ziggurat) -> None:
    said = ziggurat("run-script", "--help")
    assert said.code == 0
    assert "Usage: ziggurat run-script [OPTIONS] SCRIPT [ARGUMENTS]..." in said.out
