"""Planted faults: patches of ``tests/faults`` that a test must find, applied to a copy of HEAD and tried one by one.

    python -m tools.planted_faults                     every fault
    python -m tools.planted_faults 07_boxes_flip       one of them
    python -m tools.planted_faults --marks "not slow"  only by the tests that ``make test`` runs
    python -m tools.planted_faults --list

The working tree is never changed: each fault gets a worktree of its own, which is removed at the end. Every listed test
must first pass without the fault. A fault is found by a test that fails by an assertion; an error does not count.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["FAULTS", "Fault", "applies", "is_assertion", "main", "read_faults"]

REPOSITORY: Final = Path(__file__).resolve().parents[1]
FAULTS: Final = REPOSITORY / "tests" / "faults"
TIME_LIMIT_S: Final = 900

_BUILT: Final = ("src/ziggurat/web/static/vendor", "src/ziggurat/dataflow/fast/*.so")
"""What git does not have and tests need; a worktree gets a copy."""

_NODE_MODULES: Final = Path("frontend") / "node_modules"

_PLUGIN: Final = """\
import os, pathlib, pytest
def pytest_sessionstart(session):
    import ziggurat
    wanted = pathlib.Path(os.environ["PLANTED_FAULT_SOURCE"])
    if wanted not in pathlib.Path(ziggurat.__file__).resolve().parents:
        pytest.exit(f"the tests import {ziggurat.__file__} and not {wanted}", returncode=4)
"""

_CHILD: Final = """\
import subprocess, sys
say = "import ziggurat; print(ziggurat.__file__)"
print(subprocess.run([sys.executable, "-c", say], capture_output=True, text=True, check=True, cwd="/").stdout.strip())
"""
"""Prints what a process imports that is started by a process."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A mistake that somebody might make.

    Args:
        name: of the patch, without its ending.
        file: which the patch changes.
        wrong: what goes wrong, one sentence.
        tests: node ids of tests that find it, the cheapest first.
    """

    name: str
    file: str
    wrong: str
    tests: tuple[str, ...]

    @property
    def patch(self) -> Path:
        """The patch."""
        return FAULTS / f"{self.name}.patch"


@dataclass(frozen=True)
class Told:
    """What a run of one node id told.

    Args:
        how: ``passed``, ``found`` (an assertion failed), ``error``, ``skipped``, ``left out`` or ``missing``.
        text: first line of the failure.
        duration_s: of the tests, without the start of pytest.
    """

    how: str
    text: str = ""
    duration_s: float = 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the faults; return 1 where one is not found."""
    parser = argparse.ArgumentParser(prog="python -m tools.planted_faults", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", metavar="NAME", help="all, or some, each by its name or its number")
    parser.add_argument("--list", action="store_true", help="say what faults there are, and end")
    parser.add_argument("--all", action="store_true", help="try every test of a fault, also after one found it")
    parser.add_argument("--marks", default="", help="only tests with these marks, as pytest's -m")
    asked = parser.parse_args(arguments)
    known = read_faults()
    chosen = [fault for fault in known if not asked.names or {fault.name, fault.name[:2]} & set(asked.names)]
    unknown = set(asked.names) - {name for fault in known for name in (fault.name, fault.name[:2])}
    if unknown:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}; --list says which there are")
    if asked.list:
        for fault in chosen:
            print(f"{fault.name:32}{fault.wrong}")
        return 0
    with _worktree() as tree:
        _finish(tree)
        sound = Sound(tree, asked.marks)
        missed = [fault.name for fault in chosen if not _try(fault, sound, wants_all=asked.all)]
    print(f"\n{len(chosen) - len(missed)} of {len(chosen)} faults are found", end="")
    print(f"; not: {', '.join(missed)}." if missed else ".")
    return 1 if missed else 0


def read_faults() -> list[Fault]:
    """Return the faults of ``faults.toml``, in its order."""
    content = tomllib.loads((FAULTS / "faults.toml").read_text("utf-8"))
    return [
        Fault(name=each["name"], file=each["file"], wrong=each["wrong"], tests=tuple(each["tests"]))
        for each in content["faults"]
    ]


def applies(fault: Fault, tree: Path = REPOSITORY) -> bool:
    """Return whether the patch of a fault fits a tree as it is now."""
    return _git("apply", "--check", str(fault.patch), cwd=tree).returncode == 0


class Sound:
    """The tests without a fault; each is run once, however many faults it is listed for.

    Args:
        tree: a copy of HEAD.
        marks: which tests count, as pytest's ``-m``; empty for all.
    """

    def __init__(self, tree: Path, marks: str) -> None:
        self.marks = marks
        self._tree = tree
        self._told: dict[str, Told] = {}

    def told(self, test: str) -> Told:
        """Return what a node id tells here."""
        if test not in self._told:
            self._told[test] = _run(test, self._tree, self.marks)
        return self._told[test]


def _try(fault: Fault, sound: Sound, *, wants_all: bool) -> bool:
    """Return whether a test finds a fault, and say which."""
    with _worktree() as tree:
        if not applies(fault, tree):
            print(f"{fault.name:32}NOT FOUND: the patch does not apply any more to {fault.file}", flush=True)
            return False
        _git("apply", str(fault.patch), cwd=tree, check=True)
        try:
            _finish(tree, builds=fault.file.startswith("frontend/"))
        except subprocess.CalledProcessError as error:
            print(f"{fault.name:32}NOT FOUND: the copy cannot be prepared: {error.stderr or error}", flush=True)
            return False
        found = list(_found_by(fault, sound, tree, wants_all=wants_all))
    if not found:
        print(f"{fault.name:32}NOT FOUND: {fault.wrong}", flush=True)
    return bool(found)


def _found_by(fault: Fault, sound: Sound, tree: Path, *, wants_all: bool) -> Iterator[str]:
    """Yield the tests that find a fault, and say what each test told; only the first one where not all are wanted."""
    for test in fault.tests:
        before = sound.told(test)
        if before.how == "left out":
            continue
        if before.how == "passed":
            told = _run(test, tree, sound.marks)
        else:
            told = Told("no use", f"without the fault it is {before.how}: {before.text}")
        print(f"{fault.name:32}{told.how:9}{told.duration_s:6.1f} s  {test}", flush=True)
        if told.how == "found":
            yield test
            if not wants_all:
                return
        elif told.text:
            print(f"{'':32}{told.text}", flush=True)


@contextmanager
def _worktree() -> Iterator[Path]:
    """Yield a copy of HEAD that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="ziggurat-fault-") as folder:
        tree = Path(folder).resolve() / "tree"
        _git("worktree", "add", "--quiet", "--detach", str(tree), "HEAD", cwd=REPOSITORY, check=True)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree), cwd=REPOSITORY)


def _finish(tree: Path, *, builds: bool = False) -> None:
    """Give a worktree what git does not have: compiled code and the scripts of the pages.

    Args:
        tree: the worktree.
        builds: whether the scripts must be made of its own sources.

    Raises:
        subprocess.CalledProcessError: where a script cannot be built, or another Ziggurat would be imported.
    """
    for pattern in _BUILT:
        for path in REPOSITORY.glob(pattern):
            target = tree / path.relative_to(REPOSITORY)
            if path.is_dir():
                shutil.copytree(path, target, dirs_exist_ok=True)
            else:
                shutil.copy2(path, target)
    if (REPOSITORY / _NODE_MODULES).is_dir():
        (tree / _NODE_MODULES).symlink_to(REPOSITORY / _NODE_MODULES, target_is_directory=True)
    if builds:
        program = "from frontend.build import node_command; print(*node_command()[:1])"
        node = _python(["-c", program], tree).stdout.strip()
        subprocess.run([node, "build.mjs"], cwd=tree / "frontend", capture_output=True, text=True, check=True)
    imported = Path(_python(["-c", _CHILD], tree).stdout.strip())
    if tree / "src" not in imported.parents:
        raise subprocess.CalledProcessError(1, "import ziggurat", stderr=f"processes import {imported}")


def _python(words: Sequence[str], tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=tree, env=_variables(tree), capture_output=True, text=True, check=True)


def _variables(tree: Path) -> dict[str, str]:
    # In front of the installed package, in every process that inherits the environment.
    path = os.pathsep.join([str(tree / "src"), str(tree.parent / "plugin")])
    return {
        **os.environ,
        "PYTHONPATH": path,
        "PLANTED_FAULT_SOURCE": str(tree / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }


def _run(test: str, tree: Path, marks: str) -> Told:
    """Run one node id in a worktree."""
    plugin = tree.parent / "plugin"
    plugin.mkdir(exist_ok=True)
    (plugin / "fault_source.py").write_text(_PLUGIN, "utf-8")
    report = tree.parent / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "fault_source"]
    command += [f"--junitxml={report}", f"--basetemp={tree.parent / 'temporary'}", *(["-m", marks] if marks else [])]
    began = time.perf_counter()
    try:
        done = subprocess.run(
            [*command, test],
            cwd=tree,
            env=_variables(tree),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Told("error", f"it takes more than {TIME_LIMIT_S} s", time.perf_counter() - began)
    if done.returncode == 5:
        return Told("left out")
    if done.returncode == 4 and "not found" in done.stderr + done.stdout:
        return Told("missing", "there is no such test any more")
    if not report.is_file():
        return Told("error", (done.stderr or done.stdout).strip()[-300:], time.perf_counter() - began)
    return _told(report, (done.stdout + done.stderr).strip()[-300:])


def _told(report: Path, output: str) -> Told:
    """Return what a report in the format of JUnit tells of its tests, taken together."""
    cases = list(ET.parse(report).getroot().iter("testcase"))
    duration_s = sum(float(case.get("time", "0")) for case in cases)
    failures = [str(each.get("message", "")) for case in cases for each in case.iter("failure")]
    errors = [str(each.get("message", "")) for case in cases for each in case.iter("error")]
    asserted = [text for text in failures if is_assertion(text)]
    for how, texts in (("found", asserted), ("error", [*failures, *errors])):
        if texts:
            return Told(how, texts[0].strip().partition("\n")[0][:200], duration_s)
    if not cases:
        return Told("error", output, duration_s)
    skipped = [str(each.get("message", "")) for case in cases for each in case.iter("skipped")]
    if len(skipped) == len(cases):
        return Told("skipped", skipped[0], duration_s)
    return Told("passed", "", duration_s)


def is_assertion(message: str) -> bool:
    """Return whether a test failed by what it expects, as by ``assert`` or ``pytest.raises``, and by no other error."""
    return message.startswith(("AssertionError", "assert ", "Failed: "))


def _git(*words: str, cwd: Path, check: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True, check=check)


if __name__ == "__main__":
    sys.exit(main())
