"""Curves of a program without a trainer of Ziggurat: what it logs, and its TensorBoard event files, become events.

A thread looks at the files of all processes of the program twice a second, and copies what is new into the events of
the job. What was there before the attempt began is left alone: the program begins anew.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from ziggurat import program_log
from ziggurat.errors import StorageError
from ziggurat.events import EventFile, ImageLogged, ScalarLogged, read_events
from ziggurat.layout import JobFolder
from ziggurat.worker.event_files import EventFileReader, is_event_file

__all__ = ["ProgramCurves"]

_EVERY_S: Final = 0.5
_COST: Final = 20
"""The pause between searches for event files is at least so many times the duration of a search."""

_SEARCH_EVERY_S: Final = 2.0
_MOST_ENTRIES: Final = 50_000
"""Files and folders that a search looks at, those near the top first: a program may unpack a dataset beside itself."""

_MOST_FILES: Final = 1000
_PIECES_A_LOOK: Final = 8


class ProgramCurves:
    """Copies the points of a program into the events of its job, until it is closed. Use it as a context manager.

    Args:
        folder: the job folder.
        events: of the job.
        has_trainer: whether the program trains with a trainer of Ziggurat, which writes curves itself: then event files
            are left alone.
    """

    def __init__(self, folder: JobFolder, events: EventFile, has_trainer: Callable[[], bool]) -> None:
        self.last_step = 0
        """Largest step of the points so far; 0 before the first."""
        self.has_points = False
        self._folder = folder
        self._events = events
        self._has_trainer = has_trainer
        self._offsets: dict[Path, int] = {}
        self._boards = _Boards(folder.program)
        self._ended = threading.Event()
        self._error: StorageError | None = None
        self._thread = threading.Thread(target=self._look_until_ended, name="program-curves", daemon=True)
        self._before = os.environ.get(program_log.FOLDER_VARIABLE)

    def __enter__(self) -> ProgramCurves:
        shutil.rmtree(self._folder.program_log, ignore_errors=True)
        self._boards.leave_out()
        os.environ[program_log.FOLDER_VARIABLE] = str(self._folder.program_log.absolute())
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        program_log.finish()
        if self._before is None:
            os.environ.pop(program_log.FOLDER_VARIABLE, None)
        else:
            os.environ[program_log.FOLDER_VARIABLE] = self._before
        self._ended.set()
        self._thread.join()
        if self._error is None:
            self._boards.search(at_once=True)
            while self._look():
                pass
            shutil.rmtree(self._folder.program_log, ignore_errors=True)  # the events have all of it
        if self._error is not None:
            raise self._error

    def _look_until_ended(self) -> None:
        while self._error is None and not self._ended.wait(_EVERY_S):
            self._look()

    def _look(self) -> bool:
        """Copy what is new, up to a limit; return whether there was any."""
        found = list(self._logged())
        if not self._has_trainer():
            self._boards.search()
            found += self._boards.points()
        if not found:
            return False
        try:
            self._events.write(*found)
        except StorageError as error:
            self._error = error
            return False
        self.has_points = True
        self.last_step = max(self.last_step, *(each.step for each in found))
        return True

    def _logged(self) -> Iterator[ScalarLogged | ImageLogged]:
        with suppress(OSError):
            for path in sorted(self._folder.program_log.glob("*.jsonl")):
                for _ in range(_PIECES_A_LOOK):
                    events, after = read_events(path, self._offsets.get(path, 0), at_most_bytes=1 << 20)
                    if after == self._offsets.get(path, 0):
                        break
                    self._offsets[path] = after
                    for each in events:
                        if isinstance(each, ScalarLogged | ImageLogged) and type(each.step) is int:
                            yield each


class _Boards:
    """The event files below a folder.

    The names of curves are those in the files. Where files are in several folders, such as ``logs/train`` and
    ``logs/validation``, those of the folder that was found first stay bare, and the others begin with the path of their
    folder: ``validation/loss``.

    Args:
        root: folder of the program.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._left_out: set[Path] = set()
        self._readers: dict[Path, tuple[EventFileReader, str]] = {}
        self._first: Path | None = None
        self._names: set[str] = set()
        self._next_s = 0.0

    def leave_out(self) -> None:
        """Leave out the files that are there now."""
        self._left_out = set(self._found())

    def search(self, *, at_once: bool = False) -> None:
        """Look for new files, if that is due."""
        began = time.monotonic()
        if began < self._next_s and not at_once:
            return
        for path in sorted(self._found(), key=lambda found: (len(found.parts), found)):
            if path not in self._readers and path not in self._left_out and len(self._readers) < _MOST_FILES:
                self._first = self._first or path.parent
                self._readers[path] = (EventFileReader(path), self._prefix(path.parent))
        now = time.monotonic()
        self._next_s = now + max(_SEARCH_EVERY_S, _COST * (now - began))

    def points(self) -> Iterator[ScalarLogged]:
        """Yield the new points of all files."""
        for reader, prefix in self._readers.values():
            for tag, value, step, at in reader.read():
                name = prefix + tag[:200]
                if name in self._names or len(self._names) < program_log.MOST_NAMES:
                    self._names.add(name)
                    yield ScalarLogged(time=at, tag=name, value=value, step=max(step, 0), epoch=0)

    def _prefix(self, folder: Path) -> str:
        first = self._first
        if first is None or folder == first:
            return ""
        base = next(each for each in (first, first.parent, self._root) if folder.is_relative_to(each))
        relative = folder.relative_to(self._root if folder == base else base)
        return f"{relative.as_posix()}/" if relative.parts else ""

    def _found(self) -> Iterator[Path]:
        waiting, entries = deque([self._root]), 0
        while waiting and entries < _MOST_ENTRIES:
            with suppress(OSError), os.scandir(waiting.popleft()) as inside:
                for entry in inside:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    elif is_event_file(entry.name) and entry.is_file(follow_symlinks=False):
                        yield Path(entry.path)
