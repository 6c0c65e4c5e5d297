"""Files of a program before it becomes a job: a script, a folder or a zip archive, read and checked, not run."""

from __future__ import annotations

import ast
import io
import json
import os
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from ziggurat.atomic import atomic_write_text, folder_mode, private_umask, storage_errors
from ziggurat.datasets.sources.cache import member_path
from ziggurat.errors import DataError, ProgramCodeError, nearest_names
from ziggurat.formatting import as_bytes
from ziggurat.layout import JobFolder
from ziggurat.workspace.network_checks import check_syntax

__all__ = [
    "MOST_BYTES",
    "ProgramFiles",
    "check_program",
    "kept_files",
    "packed",
    "program_at",
    "program_of_job",
    "program_of_text",
    "program_origin",
    "unpacked",
    "write_program",
]

MOST_BYTES: Final = 64_000_000
"""Of all files of a program. Data is named by its place, and not sent along."""

_MOST_FILES: Final = 5000
_LEFT_OUT: Final = frozenset({"__pycache__", "__MACOSX", "node_modules", "venv", "Thumbs.db", "desktop.ini"})
_USUAL: Final = ("main.py", "train.py", "__main__.py")
_SHOWN: Final = 10
_GIT_S: Final = 5.0


@dataclass(frozen=True)
class ProgramFiles:
    """A program.

    Args:
        script: file that runs as ``__main__``, one of ``files``.
        files: path below the folder of the program → content.
    """

    script: str
    files: Mapping[str, bytes]


def program_of_text(text: str, name: str = "program.py") -> ProgramFiles:
    """Return the program of a text.

    Args:
        text: of the script.
        name: file name of the script.
    """
    return _checked({name: text.encode("utf-8", "surrogatepass")}, name)


def program_at(place: Path, script: str = "") -> ProgramFiles:
    """Return the program in a Python file, a zip archive or a folder.

    Hidden files, caches and virtual environments are left out.

    Args:
        place: where it is.
        script: the file that runs; empty where there is one at the top, or one is named ``main.py`` or ``train.py``.

    Raises:
        ProgramCodeError: where there is no script to run, or it is no Python.
        DataError: where it cannot be read, or is too large.
    """
    if place.is_dir():
        return _checked(_read_folder(place), script)
    if place.suffix == ".py":
        return _checked(_within([(place.name, _read(place))]), script)
    if place.suffix == ".zip":
        return unpacked(_read(place), script)
    raise DataError(
        f"{place} is no Python file, zip archive or folder." if place.exists() else f"{place} does not exist.",
        advice="Name the script, as in: ziggurat submit train.py -- --epochs 10.",
    )


def program_origin(place: Path) -> str:
    """Return where the files of a program come from, for people: its path, and its commit if it is in a Git repository.

    Such as ``/home/ann/digits, commit 4f1c2a9d0b1e, clean`` or ``…, with changes``. Git is asked for 5 seconds at most.

    Args:
        place: the file or folder.
    """
    path = place.resolve()
    folder = path if path.is_dir() else path.parent
    commit = _git(folder, "rev-parse", "--short=12", "HEAD")
    if not commit:
        return str(path)
    changes = _git(folder, "status", "--porcelain", "--", ".")
    state = "" if changes is None else ", with changes" if changes else ", clean"
    return f"{path}, commit {commit}{state}"


def _git(folder: Path, *words: str) -> str | None:
    """Return what Git answers; None where there is no Git, no repository, or no answer in time."""
    # A monitor of the file system, which a repository may name, is a program of its own.
    command = ["git", "-C", str(folder), "-c", "core.fsmonitor=false", *words]
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_GIT_S, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else None


def unpacked(content: bytes, script: str = "") -> ProgramFiles:
    """Return the program in a zip archive; a folder around all of it is left out. See ``program_at``."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = _within(_members(archive))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        raise DataError(
            f"The archive cannot be read as a zip file: {str(error).rstrip('.')}.",
            advice="Pack it anew, without a password.",
        ) from None
    return _checked(_without_top(files), script)


def packed(program: ProgramFiles) -> bytes:
    """Return the files of a program as a zip archive."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in program.files.items():
            archive.writestr(name, content)
    return target.getvalue()


def program_of_job(folder: JobFolder, script: str = "") -> ProgramFiles:
    """Return the program that a job runs.

    Raises:
        ProgramCodeError: where its folder has no such script.
    """
    return _checked(_within((name, _read(path)) for name, path in kept_files(folder)), script)


def kept_files(folder: JobFolder) -> list[tuple[str, Path]]:
    """Return name and path of the files that came with the program of a job; what it wrote itself is left out."""
    try:
        names = json.loads(folder.program_files.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        names = [path.relative_to(folder.program).as_posix() for path in _walk(folder.program)]
    found = [(name, folder.program / member_path(name, "the program")) for name in names if isinstance(name, str)]
    return [(name, path) for name, path in found if path.is_file() and not path.is_symlink()]


def write_program(files: Mapping[str, bytes], folder: JobFolder) -> None:
    """Write the files of a program into the folder of its job.

    Raises:
        StorageError: where they cannot be written.
    """
    mode = 0o666 & ~private_umask(folder.path)
    with storage_errors(folder.program):
        for name, content in files.items():
            path = folder.program / name
            _make_folder(path.parent, folder.path)
            path.write_bytes(content)
            path.chmod(mode)
    if files:
        atomic_write_text(folder.program_files, json.dumps(sorted(files), indent=1) + "\n", "The list of files")


def _make_folder(path: Path, top: Path) -> None:
    """Make a folder below another one, with the rights of that."""
    if path != top and not path.is_dir():
        _make_folder(path.parent, top)
        path.mkdir(exist_ok=True, mode=folder_mode(path.parent))


# ---- checks without running it


def check_program(program: ProgramFiles) -> None:
    """Refuse a script that is empty or no Python, and files that it imports and that are none.

    Raises:
        ProgramCodeError: names file and line.
    """
    waiting, seen = [program.script], {program.script}
    while waiting:
        name = waiting.pop()
        text = _text(name, program.files[name])
        if name == program.script and not text.strip():
            raise ProgramCodeError(
                f"`{name}` is empty.",
                advice="Check that the right file was sent, and that it was saved.",
                details={"file": name},
            )
        finding = check_syntax(text)
        if finding is not None:
            lines = text.splitlines()
            received = lines[finding.line - 1].strip() if finding.line <= len(lines) else ""
            raise ProgramCodeError(
                f"{name}, line {finding.line}: {finding.rule.replace('?.', '?')}",
                received=f"`{received}`",
                advice=finding.advice or "Correct the line, and submit the program again.",
                details={"file": name, "line": finding.line, "column": finding.column},
            )
        for each in _imported_files(text, name, program):
            if each not in seen:
                seen.add(each)
                waiting.append(each)


def _imported_files(text: str, name: str, program: ProgramFiles) -> Iterator[str]:
    """Yield the files of the program that a script, or a module beside it, imports by a plain name."""
    base = PurePosixPath(program.script).parent
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        else:
            continue
        for module in modules:
            path = str(base / PurePosixPath(*module.split(".")))
            yield from (each for each in (f"{path}.py", f"{path}/__init__.py") if each in program.files)


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProgramCodeError(
            f"`{name}` is not text in UTF-8: {error.reason} at byte {error.start}.",
            advice="Save it as UTF-8 text; a zip archive has the ending `.zip`.",
            details={"file": name},
        ) from None


def _checked(files: Mapping[str, bytes], script: str) -> ProgramFiles:
    scripts = sorted((name for name in files if name.endswith(".py")), key=lambda name: (name.count("/"), name))
    chosen = str(PurePosixPath(script)) if script else _only_script(scripts)
    if chosen in files:
        return ProgramFiles(chosen, dict(files))
    shown = ", ".join(f"`{name}`" for name in scripts[:_SHOWN]) + (", …" if len(scripts) > _SHOWN else "")
    if not scripts:
        raise ProgramCodeError(
            f"None of the {len(files)} files is a Python file." if files else "The program has no file.",
            advice="Add the script, such as `train.py`.",
        )
    nearest = nearest_names(script, scripts) if script else []
    asked = f"Did you mean `{nearest[0]}`? " if nearest else ""
    raise ProgramCodeError(
        f"`{script}` is not among the files of the program."
        if script
        else f"Which of the {len(scripts)} Python files to run is not known.",
        advice=f"{asked}Name it as the script, or call it `main.py`. There are: {shown}.",
        details={"field": "script", "scripts": scripts[:100]},
    )


def _only_script(scripts: list[str]) -> str:
    top = [name for name in scripts if "/" not in name]
    usual = [name for name in _USUAL if name in top]
    if usual:
        return usual[0]
    return top[0] if len(top) == 1 else scripts[0] if len(scripts) == 1 else ""


# ---- reading


def _read_folder(folder: Path) -> dict[str, bytes]:
    def found() -> Iterator[tuple[str, bytes]]:
        for path in _walk(folder):
            yield path.relative_to(folder).as_posix(), _read(path)

    return _within(found())


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, by name; links and what is left out are not followed."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        if _is_left_out(path.name) or path.is_symlink():
            continue
        if path.is_dir():
            if not (path / "pyvenv.cfg").exists():
                yield from _walk(path)
        elif path.is_file():
            yield path


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DataError(
            f"{path} does not exist." if isinstance(error, FileNotFoundError) else f"{path}: {error.strerror}.",
            advice="Check the path.",
        ) from None


def _members(archive: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    for member in archive.infolist():
        if member.is_dir():
            continue
        name = member_path(member.filename, "the archive")
        if any(_is_left_out(part) for part in PurePosixPath(name).parts):
            continue
        with archive.open(member) as file:
            yield name, file.read(MOST_BYTES + 1)


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT or name.endswith(".pyc")


def _within(files: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Return the files, as long as they are neither too many nor too large."""
    kept: dict[str, bytes] = {}
    size_bytes = 0
    for name, content in files:
        size_bytes += len(content)
        if size_bytes > MOST_BYTES:
            raise DataError(
                f"The program is too large: its files have more than {as_bytes(MOST_BYTES)} together, up to `{name}`.",
                advice="Leave data out, and give its folder as an argument.",
            )
        if len(kept) == _MOST_FILES:
            raise DataError(
                f"The program has too many files, more than {_MOST_FILES}.",
                advice="Leave data out, and give its folder as an argument.",
            )
        kept[name] = content
    return kept


def _without_top(files: dict[str, bytes]) -> dict[str, bytes]:
    """Leave out a folder that holds all files."""
    tops = {name.partition("/")[0] for name in files}
    if len(tops) != 1 or any("/" not in name for name in files):
        return files
    return {name.partition("/")[2]: content for name, content in files.items()}
