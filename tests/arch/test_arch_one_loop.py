"""There is one training loop: no other module takes steps of a program, one after the other."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/ziggurat"
STEPS = {"step", "run_step"}
OTHERS = {"optimizer", "_scaler"}
"""What has a ``step`` of its own in PyTorch: one for each loss of a single step of the program."""


def owner_of(call: ast.expr) -> set[str]:
    """Return the last name of what a method is called on."""
    owner = call.value if isinstance(call, ast.Attribute) else None
    return {getattr(owner, "id", ""), getattr(owner, "attr", "")} - {""}


def loops_over_steps(text: str) -> list[int]:
    """Return the lines of loops that call ``step`` or ``run_step``."""
    found = []
    for loop in ast.walk(ast.parse(text)):
        if not isinstance(loop, ast.For | ast.While | ast.comprehension):
            continue
        calls = [node.func for node in ast.walk(loop) if isinstance(node, ast.Call)]
        calls = [call for call in calls if OTHERS.isdisjoint(owner_of(call))]
        names = {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls}
        if names & STEPS:
            found.append(getattr(loop, "lineno", 0))
    return found


def test_only_the_trainer_of_the_engine_loops_over_steps() -> None:
    # The suite proves that steps of a backend are right, and a test batch measures a few of them: neither trains.
    known = {"engine/trainer.py", "testing/backend.py", "worker/commands/batch_trial.py"}
    found = {str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py") if loops_over_steps(path.read_text())}
    assert found == known


def test_a_second_loop_is_found() -> None:
    assert loops_over_steps("while True:\n    trainer.run_step()\n") == [1]
    assert loops_over_steps("for batch in data:\n    program.step(batch, ())\n") == [1]
    assert loops_over_steps("program.step(batch, ())\n") == []
