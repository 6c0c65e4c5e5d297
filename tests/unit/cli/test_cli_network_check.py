"""``ziggurat network check``: mistakes in the code of a network, without running it."""

from __future__ import annotations

from pathlib import Path

from ziggurat.zoo import network_path


def test_a_file_without_mistakes(ziggurat) -> None:
    said = ziggurat("network", "check", network_path("lenet", "tensorflow"))
    assert said.out.endswith("lenet.py: no mistakes found.\n")
    assert said.code == 0


def test_mistakes_are_listed_with_their_place(ziggurat, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("class UserModel(Tower):\n    x = slim.conv3(1)\n")
    said = ziggurat("network", "check", file)
    lines = said.out.splitlines()
    assert lines[0].startswith(f"{file}:1:1: error: `UserModel` must define")
    assert lines[-1].startswith(f"{file}:2:14: warning: `slim` has no `conv3`. Did you mean")
    assert said.code != 0


def test_the_file_must_be_text(ziggurat, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_bytes(b"\xff\xfe")
    said = ziggurat("network", "check", file)
    assert "cannot be read as text in UTF-8:" in said.err
    assert said.code == 2
