"""Steps of ``make check``: runs all or some, prints name and time of each, and shows the output of failed ones."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

__all__ = ["STEPS", "Outcome", "Step", "chosen_steps", "main"]


@dataclass(frozen=True)
class Step:
    """One check.

    Args:
        name: shown with its time.
        command: a program of the virtual environment, or ``-m`` and a module, with its arguments.
        is_shown: whether its output is worth seeing where nothing is wrong.
    """

    name: str
    command: tuple[str, ...]
    is_shown: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a step."""

    step: Step
    exit_code: int
    output: str
    duration_s: float


# The long ones first: two run at a time.
STEPS = (
    Step("types", ("-m", "basedpyright", "--level", "error")),
    Step("docs build", ("-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html")),
    Step("reference", ("-m", "tools.docs_reference", "--check")),
    Step("format", ("-m", "ruff", "format", "--check", "--quiet", ".")),
    Step("lint", ("-m", "ruff", "check", "--quiet", ".")),
    Step("import contracts", ("lint-imports", "--no-cache", "--no-logo")),
    Step("module imports", ("-m", "tools.check_imports")),
    Step("sizes", ("-m", "tools.size_figures"), is_shown=True),
    Step("docstrings", ("-m", "tools.check_docstrings")),
    Step("words", ("-m", "tools.check_words")),
    Step("prose", ("-m", "tools.check_prose")),
    Step("sleeps", ("-m", "tools.check_sleeps")),
)


def main(steps: Sequence[Step] = STEPS) -> int:
    """Run all steps, two at a time; return 1 where one fails."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        outcomes = list(pool.map(_run, steps))
    failed = [outcome for outcome in outcomes if outcome.exit_code]
    for outcome in (*(each for each in outcomes if each.step.is_shown and not each.exit_code), *failed):
        print(f"\n--- {outcome.step.name}\n{outcome.output.rstrip()}")
    print(f"\n{len(outcomes) - len(failed)} of {len(outcomes)} checks hold", end="")
    print(f"; not: {', '.join(outcome.step.name for outcome in failed)}." if failed else ".")
    return 1 if failed else 0


def _run(step: Step) -> Outcome:
    first, *rest = step.command
    command = [sys.executable, *step.command] if first == "-m" else [str(Path(sys.executable).with_name(first)), *rest]
    began = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    duration_s = time.perf_counter() - began
    # One write: two threads would mix their lines where the end of the line is written apart.
    sys.stdout.write(f"{step.name:20}{duration_s:7.1f} s  {'FAILED' if done.returncode else 'ok'}\n")
    sys.stdout.flush()
    return Outcome(step, done.returncode, done.stdout + done.stderr, duration_s)


def chosen_steps(arguments: Sequence[str] | None = None) -> list[Step]:
    """Return the steps that the command line names; all without a name."""
    parser = argparse.ArgumentParser(prog="python -m tools.check", description=__doc__)
    names = [step.name for step in STEPS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or some of {', '.join(names)}")
    wanted = parser.parse_args(arguments).names
    for name in wanted:
        if name not in names:
            parser.error(f"there is no check {name}; there are {', '.join(names)}")
    return [step for step in STEPS if step.name in wanted or not wanted]


if __name__ == "__main__":
    sys.exit(main(chosen_steps()))
