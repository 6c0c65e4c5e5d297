"""Folders of this machine that users may name: those below the allowed roots."""

from __future__ import annotations

import os
import shlex
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from ziggurat.errors import UsageError
from ziggurat.records.offered_folders import is_below

__all__ = ["NOT_ALLOWED", "FolderEntry", "FolderList", "Paths", "studio_paths"]

NOT_ALLOWED: Final = "folder-not-allowed"
"""``details["reason"]`` of the error about a path outside of the allowed folders."""

_MOST: Final = 100
_MOST_LISTED: Final = 500
_LOOKED_AT: Final = 100_000
_PATH_FIELDS: Final = ("source", "pretrained", "path", "folder")


class _Settings(Protocol):
    def get(self, name: str, default: Any = None) -> Any: ...

    def set(self, name: str, value: Any) -> None: ...


@dataclass(frozen=True, kw_only=True)
class FolderEntry:
    """One line of a folder list.

    Args:
        name: of the entry.
        path: absolute path.
        is_folder: False for a file.
    """

    name: str
    path: str
    is_folder: bool


@dataclass(frozen=True, kw_only=True)
class FolderList:
    """Content of an allowed folder.

    Args:
        path: the folder; empty for the list of the allowed folders themselves.
        parents: the folders above it that are allowed, the topmost first.
        entries: folders first, then files, by name.
        is_complete: False where there are more entries than listed.
    """

    path: str
    parents: tuple[FolderEntry, ...]
    entries: tuple[FolderEntry, ...]
    is_complete: bool


class Paths:
    """Paths that people may name.

    Args:
        fixed: folders below which they may look in any case.
        settings: of the studio; ``roots`` lists the folders that an admin chose. By default it is the home of
            the user who runs the studio.
    """

    def __init__(self, fixed: Iterable[Path], settings: _Settings) -> None:
        self._fixed = tuple(os.path.realpath(root) for root in fixed)
        self._settings = settings
        self._changing = threading.Lock()  # two admins who each allow a folder get both

    @property
    def chosen(self) -> tuple[str, ...]:
        """Absolute paths of the folders that are offered besides those of the workspace."""
        found = self._settings.get("roots", None)
        return tuple(found) if found is not None else _home()

    @property
    def roots(self) -> tuple[str, ...]:
        """Absolute paths, without links in them, of all folders that are offered."""
        return tuple(dict.fromkeys((*(os.path.realpath(root) for root in self.chosen), *self._fixed)))

    def choose(self, roots: Sequence[str]) -> None:
        """Allow other folders; none allows only those of the workspace.

        Raises:
            UsageError: where one is no folder, or no absolute path.
        """
        for root in roots:
            if not root.startswith("/") or "\0" in root or not os.path.isdir(root):
                raise UsageError(
                    f"`{root}` is not the absolute path of a folder that exists.", advice="Enter a path such as /data."
                )
        self._settings.set("roots", list(dict.fromkeys(roots)))

    def allow(self, path: str) -> str:
        """Allow one more folder, and return it; a file stands for its folder.

        Raises:
            UsageError: where there is nothing at this path, or it is hidden or the whole file system.
        """
        folder = self.folder_to_allow(path)
        if not folder:
            raise UsageError(
                f"`{path}` cannot be an allowed folder: it does not exist, is hidden, or is `/`.",
                advice="Check the path.",
            )
        with self._changing:
            if not self._is_offered(folder):
                # Not by `choose`: that another one was deleted from the disk hinders nothing.
                self._settings.set("roots", [*self.chosen, folder])
        return folder

    def disallow(self, folder: str) -> None:
        """Remove a folder from the allowed ones; datasets made from it stay.

        Raises:
            UsageError: where it is not among them.
        """
        real = os.path.realpath(folder)
        with self._changing:
            left = [each for each in self.chosen if each != folder and os.path.realpath(each) != real]
            if len(left) == len(self.chosen):
                raise UsageError(
                    f"The folder `{folder}` is not in the list, so it cannot be removed from it.",
                    advice=f"The list: {', '.join(self.chosen) or 'empty'}.",
                )
            self._settings.set("roots", left)

    def folder_to_allow(self, path: str) -> str:
        """Return the folder, without links in its path, that must be allowed before a path can be used.

        Only an admin may be told: the answer says whether something is there.

        Args:
            path: as typed, of a folder or a file.

        Returns:
            Empty where there is nothing at the path, or where it is hidden or the whole file system.
        """
        real = _real(path)
        if not real or not os.path.exists(real):
            return ""
        folder = real if os.path.isdir(real) else os.path.dirname(real)
        is_hidden = any(part.startswith(".") for part in folder.split("/"))
        return "" if is_hidden or folder == "/" else folder

    def allowed(self, path: str) -> Path:
        """Return a path without links in it.

        Raises:
            UsageError: where there is nothing at it, or it does not lie below an allowed folder; of a path outside of
                these it is not said whether something is there.
        """
        real = _real(path)
        if not real or not self._is_offered(real):
            command = f"ziggurat settings allow {shlex.quote(path.removeprefix('file://'))}"
            raise UsageError(
                f"`{path}` is in no folder that is allowed in this studio.",
                advice=f"An admin allows it with `{command}`, or under Settings. Or upload the files.",
                details={"reason": NOT_ALLOWED, "command": command},
            )
        if not os.path.exists(real):
            raise UsageError(f"`{path}` does not exist.", advice="Check it.")
        return Path(real)

    def listing(self, path: str = "") -> FolderList:
        """Return what is in an allowed folder, for a chooser; without a path, the allowed folders.

        Raises:
            UsageError: as ``allowed``.
        """
        tops = tuple(dict.fromkeys(os.path.realpath(root) for root in self.chosen if os.path.isdir(root)))
        if not path:
            folders = tuple(FolderEntry(name=root, path=root, is_folder=True) for root in tops)
            return FolderList(path="", parents=(), entries=folders, is_complete=True)
        real = str(self.allowed(path))
        folder = real if os.path.isdir(real) else os.path.dirname(real)
        top = max((root for root in tops if is_below(folder, (root,))), key=len, default=folder)
        steps = [] if folder == top else folder[len(top.rstrip("/")) + 1 :].split("/")
        places = [top, *("/".join([top.rstrip("/"), *steps[: number + 1]]) for number in range(len(steps)))]
        parents = tuple(
            FolderEntry(name=place if place == top else os.path.basename(place), path=place, is_folder=True)
            for place in places
        )
        entries = sorted(self._listed(folder), key=lambda each: (not each.is_folder, each.name.casefold()))
        is_complete = len(entries) <= _MOST_LISTED
        return FolderList(path=folder, parents=parents, entries=tuple(entries[:_MOST_LISTED]), is_complete=is_complete)

    def _listed(self, folder: str) -> list[FolderEntry]:
        """Return what is in an allowed folder and allowed itself: links may lead elsewhere."""
        try:
            with os.scandir(folder) as entries:
                found = [entry for entry in islice(entries, _LOOKED_AT) if _is_wanted(entry.name, "")]
        except OSError:  # no right to look
            return []
        return [
            FolderEntry(name=entry.name, path=entry.path, is_folder=_is_folder(entry))
            for entry in found
            if not entry.is_symlink() or self._is_offered(os.path.realpath(entry.path))
        ]

    def suggestions(self, query: str) -> list[str]:
        """Return what a path that is being typed may become, by name; folders end in a slash, ``~`` stays ``~``."""
        if query.startswith("~/"):
            home = os.path.expanduser("~")
            found = self.suggestions(home + query[1:]) if home.startswith("/") else []
            return [f"~{each.removeprefix(home)}" for each in found if each.startswith(f"{home}/")]
        if not query.startswith("/"):
            return [f"{root}/" for root in self.roots] if not query else []
        folder, _, start = query.rpartition("/")
        roots = [f"{root}/" for root in self.roots if f"{root}/".startswith(query)]
        real = os.path.realpath(folder or "/")
        if start.startswith(".") or "\0" in query or not self._is_offered(real) or not os.path.isdir(real):
            return roots
        return sorted({*roots, *_entries(folder, real, start)})[:_MOST]

    def check_spec(self, spec: Mapping[str, Any]) -> None:
        """Find the paths in a posted spec, and refuse those that are not allowed.

        A network file comes with its text: a path alone would read a file of this machine.

        Raises:
            UsageError: where a path may not be named, or a network file has no text.
        """
        network = spec.get("network")
        has_text = isinstance(network, Mapping) and isinstance(network.get("text"), str)
        if _is_file(network) and not has_text:
            raise UsageError(
                f"The network file {str(network)[:200]} is sent without its text.",
                advice='As in {"source": "file", "path": "network.py", "text": "class UserModel…"}.',
            )
        rest = {name: value for name, value in spec.items() if name not in ("network", "name", "notes")}
        for name, text in _texts(rest, ""):
            if _names_a_path(name, text):
                self.allowed(text)

    def _is_offered(self, real: str) -> bool:
        return is_below(real, self.roots)


def studio_paths(root: Path, settings: _Settings) -> Paths:
    """Return the paths that people of a studio may name: below its own folders, and those that an admin chose.

    Args:
        root: folder of the workspace.
        settings: of the studio.
    """
    return Paths((root / name for name in ("uploads", "datasets", "jobs")), settings)


def _home() -> tuple[str, ...]:
    home = os.path.expanduser("~")
    return (home,) if len(home) > 1 and os.path.isdir(home) else ()


def _real(path: str) -> str:
    """Return a path without links in it, ``~`` as the home that it stands for; empty where it is not absolute."""
    text = os.path.expanduser(path.removeprefix("file://"))
    return os.path.realpath(text) if text.startswith("/") and "\0" not in text else ""


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a link to itself
        return False


def _entries(folder: str, real: str, start: str) -> list[str]:
    try:
        with os.scandir(real) as entries:
            found = [entry for entry in islice(entries, _LOOKED_AT) if _is_wanted(entry.name, start)]
            return [f"{folder}/{entry.name}{'/' if _is_folder(entry) else ''}" for entry in found]
    except OSError:  # no right to look
        return []


def _is_wanted(name: str, start: str) -> bool:
    return name.startswith(start) and not name.startswith(".") and name.isprintable()


def _is_file(network: Any) -> bool:
    if isinstance(network, str):
        return network.endswith(".py") or "/" in network
    return isinstance(network, Mapping) and network.get("source") == "file"


def _texts(value: Any, name: str) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(name, value)]
    if isinstance(value, Mapping):
        return [pair for key, part in value.items() for pair in _texts(part, str(key))]
    if isinstance(value, Sequence):
        return [pair for part in value for pair in _texts(part, name)]
    return []


def _names_a_path(name: str, text: str) -> bool:
    if text.startswith(("/", "~", "file:")) or ".." in text.split("/"):
        return True
    return name in _PATH_FIELDS and "/" in text and "://" not in text
