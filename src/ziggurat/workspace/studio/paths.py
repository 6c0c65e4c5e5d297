"""Folders of this machine that users may name: those below the allowed roots."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from ziggurat.errors import UsageError
from ziggurat.records.offered_folders import is_below

__all__ = ["Paths", "studio_paths"]

_MOST: Final = 100
_LOOKED_AT: Final = 100_000
_PATH_FIELDS: Final = ("source", "pretrained", "path", "folder")


class _Settings(Protocol):
    def get(self, name: str, default: Any = None) -> Any: ...

    def set(self, name: str, value: Any) -> None: ...


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
        """Offer other folders; none offers only those of the workspace.

        Raises:
            UsageError: where one is no folder, or no absolute path.
        """
        for root in roots:
            if not root.startswith("/") or "\0" in root or not os.path.isdir(root):
                raise UsageError("A root is the absolute path of a folder that is there.", received=f"`{root}`")
        self._settings.set("roots", list(dict.fromkeys(roots)))

    def allowed(self, path: str) -> Path:
        """Return a path without links in it.

        Raises:
            UsageError: where it does not lie below a root, is hidden, or is not there; which of these is not said.
        """
        text = path.removeprefix("file://")
        real = os.path.realpath(text) if text.startswith("/") and "\0" not in text else ""
        if not real or not self._is_offered(real) or not os.path.exists(real):
            raise UsageError(
                "A path lies below one of the folders that this studio offers.",
                received=f"`{path}`",
                advice=f"They are: {', '.join(self.roots)}. Or upload the files.",
            )
        return Path(real)

    def suggestions(self, query: str) -> list[str]:
        """Return what a path that is being typed may become, by name; folders end in a slash."""
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
                "A network file is sent with its text.",
                received=str(network)[:200],
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


def _entries(folder: str, real: str, start: str) -> list[str]:
    try:
        with os.scandir(real) as entries:
            found = [entry for entry in islice(entries, _LOOKED_AT) if _is_wanted(entry.name, start)]
            return [f"{folder}/{entry.name}{'/' if entry.is_dir() else ''}" for entry in found]
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
