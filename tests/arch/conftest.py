"""Planted source trees: each test writes a package that breaks one rule, and runs the tool that must report it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Planted:
    """A package ``ziggurat`` below ``root/src``."""

    root: Path

    def write(self, name: str, text: str) -> None:
        """Write a module, such as ``engine/loop.py``; packages above it come by themselves."""
        package = self.root / "src" / "ziggurat"
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (path.parent, *path.parent.parents):
            if folder.is_relative_to(package) and not (folder / "__init__.py").exists():
                (folder / "__init__.py").write_text(f'"""Package {folder.name}."""\n')
        path.write_text(text)

    def tool(self, name: str, *options: str) -> tuple[int, str]:
        """Run ``python -m tools.NAME --root ROOT``; return the exit code and what it printed."""
        return self._run("-m", f"tools.{name}", "--root", str(self.root), *options, folder=REPOSITORY)

    def lint_imports(self) -> tuple[int, str]:
        """Run import-linter with the repository's contracts; return the exit code and what it printed."""
        if not (self.root / "src/ziggurat/backends").exists():  # the contract on backends wants its package
            self.write("backends/__init__.py", "")
        code = "from importlinter.cli import lint_imports_command as lint; lint()"
        options = ("--config", str(REPOSITORY / ".importlinter"), "--no-cache", "--no-logo")
        return self._run("-c", code, *options, folder=self.root)

    def _run(self, *command: str, folder: Path) -> tuple[int, str]:
        paths = [str(self.root / "src"), str(REPOSITORY)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "200"}
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    """An empty planted tree."""
    return Planted(tmp_path)
