"""Execution of a submitted program as ``__main__``, and the errors of its own code."""

from __future__ import annotations

import builtins
import importlib.machinery
import io
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, Final, TextIO

from ziggurat.dataflow.random import fix_rng_seed
from ziggurat.engine.host import hosting
from ziggurat.engine.run_state import seed_global_random
from ziggurat.errors import ProgramCodeError, ZigguratError, install_advice, memory_error
from ziggurat.layout import JobFolder
from ziggurat.specs import ProgramSpec
from ziggurat.tf import logger
from ziggurat.worker.program_trainings import JobTrainings, ProgramStopped
from ziggurat.worker.stand_ins import TRACKERS, captured

__all__ = ["failure_of_program", "run_program"]

_MAIN: Final = "__main__"


def run_program(spec: ProgramSpec, folder: JobFolder, trainings: JobTrainings, *, output_is_log: bool) -> bool:
    """Run the program of a job to its end; return False where a stop was requested before.

    It runs in its own folder, with the arguments of the spec, and the folder of the job is that of its logger.

    Args:
        spec: which script, with which arguments.
        folder: the job folder, with the program.
        trainings: takes part in the trainings that the program begins.
        output_is_log: whether standard output and error are the log of the job already.

    Raises:
        ProgramCodeError: where it does not end well by its own code.
        Exception: whatever else it raises, such as the errors of a training.
    """
    script = folder.program / spec.script
    code = _compiled(script, spec.script)
    logger.use_job_folder(folder.path)
    seed_global_random(spec.seed)
    fix_rng_seed(spec.seed)
    with ExitStack() as held:
        held.enter_context(_output(None if output_is_log else folder.log))
        held.enter_context(_surroundings(script, folder.program, spec.arguments))
        main = held.enter_context(_main_module(script))
        for name in held.enter_context(captured(spec.capture)):
            sys.stderr.write(f"{name} is installed and used as it is; `capture` is for a package that is not.\n")
        held.enter_context(hosting(trainings))
        try:
            trainings.listen()  # may raise at once, where the request came meanwhile
            exec(code, vars(main))
        except ProgramStopped:
            return False
        except SystemExit as ended:
            _check_exit(ended, spec.script)
        finally:
            trainings.close()
    return True


def failure_of_program(error: BaseException, folder: JobFolder) -> tuple[ZigguratError, str]:
    """Return the error as people are told it, and its stack trace from the first line of the program on.

    Errors of Ziggurat stay what they are, and get file and line of the program; of any other error, the program's own
    line comes first.

    Args:
        error: that ended the program.
        folder: the job folder, with the program.
    """
    first, place = _own_frames(error, folder.program)
    if first is None and isinstance(error, ProgramCodeError):  # the script did not even begin
        text = "".join(traceback.format_exception_only(error))
    else:
        text = "".join(traceback.format_exception(type(error), error, first or error.__traceback__))
    short = memory_error(error) if not isinstance(error, ZigguratError) else None
    known = error if isinstance(error, ZigguratError) else short
    if known is not None:
        if place and "file" not in known.details:
            known.details.update(place)
        return known, text
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    where = f"{place['file']}, line {place['line']}: " if place else ""
    notes = " ".join(getattr(error, "__notes__", ()))
    received = [f"`{place['source']}`" if place.get("source") else "", notes]
    given = {"received": " ".join(each for each in received if each)} if any(received) else {}
    advice = _advice(error)
    rule = f"{where}{said}"
    return ProgramCodeError(
        rule if rule.endswith((".", "!", "?")) else f"{rule}.", advice=advice, details=place, **given
    ), text


def _advice(error: BaseException) -> str:
    """Return what to do about an error of a program."""
    name = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if name in TRACKERS:
        return f"Submit it with `--capture {name}`: what it logs becomes curves of the job. Or install {name}."
    return install_advice(error) or "Correct the program in a clone; the whole traceback is in log.txt of the job."


def _compiled(script: Path, name: str) -> Any:
    try:
        return compile(script.read_bytes(), str(script), "exec", dont_inherit=True)
    except OSError as error:
        raise ProgramCodeError(
            f"The script {name} cannot be read: {error.strerror}.",
            advice="Submit the program again.",
            details={"file": name},
        ) from None
    except SyntaxError as error:
        raise ProgramCodeError(
            f"{name}, line {error.lineno}: {error.msg}",
            received=f"`{(error.text or '').strip()}`",
            advice="Correct the program, and submit it anew.",
            details={"file": name, "line": error.lineno},
        ) from None
    except ValueError as error:  # a null byte
        raise ProgramCodeError(
            f"{name} is not Python text: {error}.", advice="Save it as text, and submit it anew."
        ) from None


def _check_exit(ended: SystemExit, name: str) -> None:
    """Refuse an exit that says that something went wrong."""
    code = ended.code
    if code is None or code == 0:
        return
    said = f"ended with exit code {code}" if isinstance(code, int) else f"exited: {str(code).strip()}"
    raise ProgramCodeError(
        f"{name} {said}" if said.endswith((".", "!", "?")) else f"{name} {said}.",
        advice="Its output is in log.txt of the job.",
    ).with_traceback(ended.__traceback__)


def _own_frames(error: BaseException, program: Path) -> tuple[TracebackType | None, dict[str, Any]]:
    """Return the traceback from the first frame of the program on, and file, line and source of its last one."""
    first: TracebackType | None = None
    place: dict[str, Any] = {}
    root = program.resolve()
    trace = error.__traceback__
    while trace is not None:
        path = Path(trace.tb_frame.f_code.co_filename)
        if path.is_absolute() and path.resolve().is_relative_to(root):
            first = first or trace
            name = path.resolve().relative_to(root).as_posix()
            place = {"file": name, "line": trace.tb_lineno, "source": _line(path, trace.tb_lineno)}
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename and error.lineno:  # of a module that the program imports
        path = Path(error.filename).resolve()
        if path.is_relative_to(root):
            name = path.relative_to(root).as_posix()
            place = {"file": name, "line": error.lineno, "source": (error.text or "").strip()}
    return first, place


def _line(path: Path, number: int) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


# ---- what surrounds the program


@contextmanager
def _surroundings(script: Path, folder: Path, arguments: list[str]) -> Iterator[None]:
    """Give the program its command line, its folder as the current one, and modules beside the script."""
    before = sys.argv, sys.path[:], os.getcwd()
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    os.chdir(folder)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        os.chdir(before[2])


@contextmanager
def _main_module(script: Path) -> Iterator[ModuleType]:
    """Give a module that is ``__main__``, so that worker processes of the program find its script."""
    module = ModuleType(_MAIN)
    module.__file__ = str(script)
    module.__loader__ = importlib.machinery.SourceFileLoader(_MAIN, str(script))
    module.__dict__["__builtins__"] = builtins
    before = sys.modules.get(_MAIN)
    sys.modules[_MAIN] = module
    try:
        yield module
    finally:
        if before is not None:
            sys.modules[_MAIN] = before


@contextmanager
def _output(log: Path | None) -> Iterator[None]:
    """Let each line that the program prints be in the log at once.

    Args:
        log: gets a copy of it; None where standard output and error are the log.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    if log is None:
        yield
        return
    with (
        log.open("a", encoding="utf-8", buffering=1) as copy,
        redirect_stdout(_Copied(sys.stdout, copy)),
        redirect_stderr(_Copied(sys.stderr, copy)),
    ):
        yield


class _Copied:
    """A stream whose text also goes into a file.

    Args:
        stream: where it is shown.
        copy: the file.
    """

    def __init__(self, stream: TextIO, copy: IO[str]) -> None:
        self._stream = stream
        self._copy = copy

    def __getattr__(self, name: str) -> Any:
        """Return what else the stream has, such as ``buffer``."""
        return getattr(self._stream, name)

    def write(self, text: str, /) -> int:
        """Write to both."""
        self._copy.write(text)
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        """Write texts to both."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush both."""
        self._stream.flush()
        self._copy.flush()
