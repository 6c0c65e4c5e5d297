"""Fast answer for a change: checks of the changed files, and the unit tests of the packages that they belong to.

``make quick`` runs it; ``make test`` is what must hold. Changed files are those of the working tree and of the commits
since ``--base``, by default the newest commit of ``origin/main`` or, without a remote, ``HEAD``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from tools.check import STEPS, Step
from tools.check import main as check

__all__ = ["changed_files", "main", "quick_steps", "quick_tests"]

SOURCE = PurePosixPath("src/ziggurat")
UNIT = Path("tests/unit")
FAST = ("import contracts", "module imports", "docstrings", "words", "prose", "sleeps")
"""Checks of the whole tree that take seconds."""

FOLDERS = {
    "api": ("api", "api_routes"),
    "client": ("api",),
    "compat": ("api_routes",),
    "datasets": ("datasets", "formats"),
    "dataflow": ("dataflow", "imgaug", "fast", "datasets"),
    "entities": ("jobs", "store"),
    "jobs": ("jobs",),
    "server": ("api", "web"),
    "services": ("jobs_inference",),
    "specs": ("config", "web"),
    "web": ("web",),
    "worker": ("worker", "previews"),
    "workspace": ("studio_shell", "evaluations", "programs", "previews", "weights"),
    "zoo": ("worker",),
}
"""Package → folders of its unit tests, if it is not the folder of the same name alone."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what changed; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.quick_check", description=__doc__)
    parser.add_argument("--base", default="", help="commit that the change is compared with")
    files = changed_files(parser.parse_args(arguments).base)
    if not files:
        print("Nothing changed.")
        return 0
    print(f"{len(files)} changed files.", flush=True)
    code = check(quick_steps(files))
    tests = quick_tests(files)
    if tests:
        print(f"\n=== tests: {' '.join(tests)}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "-m", "not slow", *tests]
        code = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode or code
    return 1 if code else 0


def changed_files(base: str = "") -> list[str]:
    """Return the files that differ from a commit and still exist, those that git does not know among them.

    Args:
        base: name of the commit.
    """
    known = _lines("git", "rev-parse", "--verify", "--quiet", "origin/main")
    against = base or (known[0] if known else "HEAD")
    changed = _lines("git", "diff", "--name-only", against)
    changed += _lines("git", "ls-files", "--others", "--exclude-standard")
    return sorted({name for name in changed if Path(name).is_file()})


def quick_steps(files: Iterable[str]) -> list[Step]:
    """Return the checks for changed files: format and lint of these alone, types of these alone, and the fast ones."""
    python = [name for name in files if name.endswith(".py")]
    steps = [step for step in STEPS if step.name in FAST]
    if python:
        typed = [name for name in python if name.startswith(("src/", "tools/")) and "/zoo/" not in name]
        steps += [
            Step("format", ("-m", "ruff", "format", "--check", "--quiet", *python)),
            Step("lint", ("-m", "ruff", "check", "--quiet", *python)),
        ]
        if typed:
            steps.insert(0, Step("types", ("-m", "basedpyright", "--level", "error", *typed)))
    return steps


def quick_tests(files: Iterable[str]) -> list[str]:
    """Return the folders and files of the quick tests that belong to changed files."""
    chosen: set[str] = set()
    for name in map(PurePosixPath, files):
        if name.is_relative_to("tests"):
            if name.name.startswith("test_") and name.parts[1] in ("unit", "arch", "backend"):
                chosen.add(str(name))
            elif name.parts[1] == "unit" and len(name.parts) > 3:
                chosen.add(str(PurePosixPath(*name.parts[:3])))
        elif name.is_relative_to(SOURCE):
            package = PurePosixPath(name.relative_to(SOURCE).parts[0]).stem
            folders = [UNIT / folder for folder in FOLDERS.get(package, (package,))]
            chosen.update(folder.as_posix() for folder in folders if folder.is_dir())
            if package == "backends":
                chosen.add("tests/backend")
        elif name.parts[0] == "tools" or name.name in ("Makefile", "pyproject.toml", "constraints.txt"):
            chosen.add("tests/arch")
    return sorted(test for test in chosen if not any(str(other) in chosen for other in PurePosixPath(test).parents))


def _lines(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


if __name__ == "__main__":
    sys.exit(main())
