"""What a program prints is in the log of its job, and where it was started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ziggurat.worker.commands.program import _output


def test_all_ways_to_print_reach_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.txt"
    log.write_text("before\n")
    with _output(log):
        print("printed")
        sys.stdout.write("written\n")
        sys.stdout.writelines(["two\n", "lines\n"])
        print("an error", file=sys.stderr)
        assert log.read_text() == "before\nprinted\nwritten\ntwo\nlines\nan error\n"
    print("after")
    shown = capsys.readouterr()
    assert shown.out == "printed\nwritten\ntwo\nlines\nafter\n"
    assert shown.err == "an error\n"
