"""Cases from public bug reports: each is run on this checkout, and a table says which of them are right.

The cases lie in ``shared/cases`` beside the checkout, or in the folder that ``--cases`` names. Each is a folder with a
``run.sh`` that prints lines that begin with ``RIGHT`` or ``WRONG``. Lines that go on with "or" are alternatives to
those before them: one of the two is enough.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Verdict", "main", "run_case", "verdict_of"]

CASES = Path(__file__).parents[2] / "shared" / "cases"
TIME_LIMIT_S = 300.0


@dataclass(frozen=True)
class Verdict:
    """Whether each line of a case, or an alternative to it, is right, and the first wrong line."""

    right: bool
    why: str = ""


def verdict_of(lines: Iterable[str]) -> Verdict:
    """Return the verdict that the output of a case stands for; lines without a verdict are ignored.

    >>> verdict_of(["RIGHT four boxes", "WRONG names: a", "RIGHT or the output warns"])
    Verdict(right=True, why='')
    """
    groups: list[tuple[list[str], list[str]]] = []
    for line in lines:
        word, _, text = line.strip().partition(" ")
        if word not in {"RIGHT", "WRONG"}:
            continue
        is_alternative = text.startswith("or ")
        if not groups or (groups[-1][1] and not is_alternative):
            groups.append(([], []))
        groups[-1][is_alternative].append("" if word == "RIGHT" else text)
    if not groups:
        return Verdict(right=False, why="no verdict was printed")
    failed = [[*needed, *others] for needed, others in groups if (any(needed) or not needed) and "" not in others]
    return Verdict(right=not failed, why=next(filter(None, failed[0])) if failed else "")


def run_case(case: Path, time_limit_s: float = TIME_LIMIT_S) -> Verdict:
    """Run a copy of a case on this checkout.

    Args:
        case: folder of the case, which is not written to.
        time_limit_s: seconds after which its processes are killed.
    """
    environment = {**os.environ, "PY": sys.executable, "ZIG": str(Path(sys.executable).with_name("ziggurat"))}
    with tempfile.TemporaryDirectory(prefix="reported-case-") as folder:
        copy = Path(folder) / case.name
        shutil.copytree(case, copy, copy_function=shutil.copyfile)
        copy.chmod(0o700)  # copytree keeps the mode of a read-only folder
        output = Path(folder) / "output"
        with output.open("wb") as file:
            process = subprocess.Popen(
                ["sh", str(copy / "run.sh")],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                process.wait(time_limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return Verdict(right=False, why=f"not finished after {time_limit_s:g} s")
        return verdict_of(output.read_text(encoding="utf-8", errors="replace").splitlines())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print a table; return 1 if a case is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.reported_cases", description=__doc__)
    parser.add_argument("names", nargs="*", help="cases to run, by name or its beginning; default: all")
    parser.add_argument("--cases", type=Path, default=CASES, help="folder of the cases")
    parser.add_argument("--below", type=int, help="run only cases with a smaller number")
    parser.add_argument("--parallel", type=int, default=1, help="cases to run at the same time")
    options = parser.parse_args(arguments)
    if not options.cases.is_dir():
        print(f"There are no cases to run: {options.cases} is not there.")
        return 0
    cases = [each.parent for each in sorted(options.cases.glob("*/run.sh"))]
    cases = [each for each in cases if each.name.startswith(tuple(options.names) or "")]
    if options.below is not None:
        cases = [each for each in cases if int(each.name.partition("_")[0]) < options.below]
    width = max((len(each.name) for each in cases), default=0)
    wrong = 0
    with ThreadPoolExecutor(options.parallel) as pool:
        for case, verdict in zip(cases, pool.map(run_case, cases), strict=True):
            wrong += not verdict.right
            shown = "RIGHT" if verdict.right else f"WRONG  {verdict.why[:110]}"
            print(f"{case.name:{width}}  {shown}", flush=True)
    print(f"{len(cases) - wrong} right, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
