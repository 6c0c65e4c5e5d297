"""Every command of the tutorial on one's own images runs in the order of the page, and says what the page says."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ziggurat.cli.application import Application
from ziggurat.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs/tutorials/your-own-images.md").read_text()
FIRST_BLOCK = re.search(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
COMMANDS = re.findall(r"^ziggurat (.*)$", PAGE, re.MULTILINE)


@pytest.mark.nightly
@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="sklearn is not installed")
def test_the_commands_of_the_tutorial_run_in_their_order(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ZIGGURAT_PROGRESS", "none")
    subprocess.run([sys.executable, "-c", FIRST_BLOCK], check=True, cwd=tmp_path, env=dict(os.environ))
    said = []
    for command in COMMANDS:
        code = main(shlex.split(command), Application())
        captured = capfd.readouterr()
        assert code == 0, f"ziggurat {command}\n{captured.err}"
        said.append(captured.out)
    assert len(said) == 14
    guessed, created, shown, problems, explored, checked, _, _, tested, after, relabelled, versions, differences, _ = (
        said
    )
    assert guessed.splitlines()[1].startswith("class_folders")
    assert re.search(r"^```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1] in created
    assert "width, px" in shown
    assert "digit_5/0005.png  left out" in problems
    assert "written to seen" in explored
    assert "every record was read" in checked
    assert "120 samples of test" in tested
    assert "test       opened once" in after
    assert "the label digit 3" in relabelled
    assert len(versions.splitlines()) == 3
    assert re.search(r"^relabelled +1 +digit_8/0003.png$", differences, re.MULTILINE)
