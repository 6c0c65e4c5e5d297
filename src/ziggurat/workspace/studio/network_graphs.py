"""TensorBoard graphs of untrained networks: written while a network is described, kept for a while."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import storage_errors
from ziggurat.errors import MissingEntryError, StorageError
from ziggurat.layout import JobFolder
from ziggurat.services.tensorboard import TensorBoards

__all__ = ["GRAPHS_FOLDER", "GraphCache", "NetworkGraphs"]

GRAPHS_FOLDER: Final = Path("temporary", "graphs")
"""Where they are in a workspace."""

_NAME: Final = re.compile(r"[0-9a-f]{32}")
_RUN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST: Final = 20
_MOST_BYTES: Final = 512 << 20
_KEPT_S: Final = 24 * 3600.0
_LONGEST_PROBLEM: Final = 500


class NetworkGraphs:
    """Graphs of networks that are described. Any thread may call any method.

    Args:
        kept: where they are.
        describe: describes a network; see ``ziggurat.workspace.studio.networks.Networks.describe``.
        tensorboards: a TensorBoard for each viewed graph.
    """

    def __init__(self, kept: GraphCache, describe: Callable[..., dict[str, Any]], tensorboards: TensorBoards) -> None:
        self._kept = kept
        self._describe = describe
        self.tensorboards = tensorboards

    def describe(self, network: str = "", **options: Any) -> dict[str, Any]:
        """Describe a network, and keep its graph for TensorBoard.

        Args:
            network: name of a standard network; unused where there is a text.
            options: as for ``Networks.describe``.

        Returns:
            What that returns, and ``tensorboard``: ``graph`` (its name; empty where there is none to show) and
            ``problem`` (why, as full sentences).
        """
        try:
            name = self._kept.begin()
        except StorageError as error:  # what is said of the network needs no disk
            found = self._describe(network, **options)
            return {**found, "tensorboard": {"graph": "", "problem": str(error)}}
        is_kept = False
        try:
            run = network if _RUN.fullmatch(network) and not options.get("text") else "network"
            found = self._describe(network, **options, tensorboard=str(self._kept.events(name) / run))
            written = found.get("tensorboard")
            problem = str(written["problem"])[:_LONGEST_PROBLEM] if isinstance(written, Mapping) else ""
            is_kept = not problem and self._kept.keep(name)
            if not is_kept:
                problem = problem or "The process that built the network wrote no graph that can be kept."
        finally:
            if not is_kept:
                self._kept.drop(name)
        return {**found, "tensorboard": {"graph": name if is_kept else "", "problem": problem}}

    def check(self, name: str) -> None:
        """See that a graph is there; it counts as looked at.

        Raises:
            MissingEntryError: where it is not kept any more.
        """
        self._kept.folder(name)


class GraphCache:
    """Graphs, each in a folder under a name that cannot be guessed. Any thread may call any method.

    A folder's modification time is the last view of its graph.

    Args:
        folder: where they are.
        clock: seconds since 1970.
        most: of them; for one more, the least recently viewed is removed.
        most_bytes: of all together; likewise.
        kept_s: one without a view for so long is removed.
        before_remove: called with the name of one that goes, such as to end its TensorBoard.
    """

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float],
        *,
        most: int = _MOST,
        most_bytes: int = _MOST_BYTES,
        kept_s: float = _KEPT_S,
        before_remove: Callable[[str], None] = lambda _name: None,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._most = most
        self._most_bytes = most_bytes
        self._kept_s = kept_s
        self._before_remove = before_remove
        self._written: set[str] = set()  # begun, and not whole yet: these never make room for others
        self._lock = threading.Lock()

    def begin(self) -> str:
        """Make an empty folder for one more graph; return its name.

        Raises:
            StorageError: where the disk is full or not writable.
        """
        name = secrets.token_hex(16)
        with self._lock:
            self._written.add(name)
        with storage_errors(self._folder):
            (self._folder / name).mkdir(parents=True, mode=0o700)
        return name

    def events(self, name: str) -> Path:
        """Return where the event files of a graph go: where those of a job are in its folder."""
        return JobFolder(self._folder / name).tensorboard

    def keep(self, name: str) -> bool:
        """Keep what was written since ``begin``, and let go of others where there are too many.

        Code of users ran beside it: a folder that has anything but files, none, or too much in them, goes at once.

        Returns:
            Whether it is kept.
        """
        size_bytes = _size_bytes(self._folder / name)
        if not 0 < size_bytes <= self._most_bytes:
            self.drop(name)
            return False
        self._touch(name)
        with self._lock:
            self._written.discard(name)
        self._make_room(name)
        return True

    def drop(self, name: str) -> None:
        """Remove one; one that is not there does no harm."""
        self._before_remove(name)
        shutil.rmtree(self._folder / name, ignore_errors=True)
        with self._lock:
            self._written.discard(name)

    def folder(self, name: str) -> Path:
        """Return the folder of a viewed graph.

        Raises:
            MissingEntryError: where it is not kept any more, or never was.
        """
        if not _NAME.fullmatch(name) or name in self._written or not self._touch(name):
            raise MissingEntryError(
                f"The graph `{name[:100]}` is not there any more: it is kept for a while only.",
                advice="Press Visualize on the page for a new model again.",
            )
        return self._folder / name

    def remove_old(self) -> int:
        """Remove those that were not viewed for too long; return how many."""
        oldest = self._clock() - self._kept_s
        old = [name for used_at, name in self._kept() if used_at < oldest]
        for name in old:
            self.drop(name)
        return len(old)

    def remove_all(self) -> None:
        """Remove all of them, also what a process that died left behind."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _make_room(self, newest: str) -> None:
        # The clock may be too coarse to tell which came last, or be set back: that one stays whatever it says.
        left = sorted(self._kept(), key=lambda each: each[1] == newest)
        sizes = {name: _size_bytes(self._folder / name) for _, name in left}
        while len(left) > 1 and (len(left) > self._most or sum(sizes.values()) > self._most_bytes):
            _, name = left.pop(0)
            del sizes[name]
            self.drop(name)

    def _kept(self) -> list[tuple[float, str]]:
        """Return when each was last looked at, and its name; the longest ago first."""
        found = []
        for place in self._folder.glob("*"):
            if _NAME.fullmatch(place.name) and place.name not in self._written:
                try:
                    found.append((place.stat().st_mtime, place.name))
                except FileNotFoundError:  # another thread removed it
                    continue
        return sorted(found)

    def _touch(self, name: str) -> bool:
        now = self._clock()
        try:
            os.utime(self._folder / name, (now, now))
        except OSError:
            return False
        return True


def _size_bytes(folder: Path) -> int:
    """Return the bytes of a folder's files; -1 where it has anything but files and folders."""
    size_bytes = 0
    for place in folder.rglob("*"):
        try:
            found = place.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISREG(found.st_mode):
            size_bytes += found.st_size
        elif not stat.S_ISDIR(found.st_mode):
            return -1
    return size_bytes
