"""Processes of one training do the same: rates, lengths of epochs, and ends; where they cannot, none of them hangs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from launched_processes import run_together

_PROGRAM = Path(__file__).with_name("distributed_alike_program.py")


def _run(folder: Path, what: str) -> tuple[list[int], list[str], list[Any]]:
    """Run two processes; return their exit codes, what they said on standard error, and their outcomes."""
    ended = run_together(_PROGRAM, [(folder, what)] * 2)
    files = [folder / f"rank-{rank}.json" for rank in range(2)]
    outcomes = [json.loads(file.read_text()) for file in files if file.is_file()]
    return [process.returncode for process in ended], [process.stderr for process in ended], outcomes


@pytest.mark.nightly
def test_all_have_the_rates_of_the_first_and_the_fewest_steps(tmp_path: Path) -> None:
    codes, said, (one, two) = _run(tmp_path, "rates")
    assert codes == [0, 0], said
    assert one == two
    assert one["learning_rate"] == pytest.approx([0.001])
    assert (one["steps"], one["step"]) == (6, 24)
    assert "another process has fewer batches" in said[0]


@pytest.mark.nightly
def test_a_callback_of_the_first_process_completes_all(tmp_path: Path) -> None:
    codes, said, (one, two) = _run(tmp_path, "complete")
    assert codes == [0, 0], said
    assert one["step"] == two["step"] in (17, 18)
    assert one["outcome"] == "done"


@pytest.mark.nightly
def test_processes_that_begin_apart_end_with_an_error(tmp_path: Path) -> None:
    codes, said, _ = _run(tmp_path, "apart")
    assert codes == [1, 1]
    assert all("rank 1 begins at step 0, epochs 2 to 4" in text for text in said), said
