"""Finder for the files that labels name: at the exact path, else by rules that are counted and reported."""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from ziggurat.datasets.formats.shared.entries import is_folder_entry
from ziggurat.datasets.samples import Problem

__all__ = ["FileFinder", "FoundFile", "RuleCounts", "files_below", "match_names"]

_RULES: Final = {
    "unicode": "by another Unicode form of the name",
    "case": "by a name that differs in upper and lower case",
    "percent": "by the percent-decoded name",
    "ending": "by the end of the path, which only this file has",
}
"""Rule → how a notice says it; an exact name has none."""
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://[^/]*/")
_DRIVE: Final = re.compile(r"[A-Za-z]:/")


class FoundFile(NamedTuple):
    """A file that labels name.

    Args:
        path: below the source.
        size_bytes: of the file.
        rule: by which it was found, one of the rules above; empty for its exact name.
    """

    path: str
    size_bytes: int
    rule: str


class RuleCounts:
    """Counts how many files each rule found; one notice a rule, however many the files."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, str] = {}

    def add(self, rule: str, name: str, path: str) -> None:
        """Count a file.

        Args:
            rule: by which it was found; empty for its exact name, which is not counted.
            name: as the labels say it.
            path: of the file below the source.
        """
        if rule:
            self._counts[rule] = self._counts.get(rule, 0) + 1
            shown = name[:200].encode("utf-8", "replace").decode()
            self._examples.setdefault(rule, f"`{shown}` is `{path}`")

    def problems(self, key: str) -> Iterator[Problem]:
        """Yield a notice for each rule that found something.

        Args:
            key: what names the files, such as the path of a JSON file.
        """
        for rule, count in self._counts.items():
            files = "One file was" if count == 1 else f"{count} files were"
            reason = f"{files} found {_RULES[rule]}: {self._examples[rule]}."
            yield Problem(key=key, kind="other-name", reason=reason)


class FileFinder:
    """Finds the files that labels name, never outside of the source.

    The exact path in one of the folders counts first. Then the source is listed once, which takes about 200 bytes of
    memory a file, and a file counts that only differs in its Unicode form or in case, or whose name is the
    percent-decoded one; last the only file with the longest end of the path. What could be two files is none.

    Args:
        root: the source.
        folders: below it, that names are relative to, the first that has a file counts; ``""`` is the source itself.
        without: folders below the source whose files are not meant, such as those of other splits.
    """

    def __init__(self, root: Path, folders: Sequence[str] = ("",), *, without: Collection[str] = ()) -> None:
        self.counts = RuleCounts()
        self._root = root
        self._folders = list(folders)
        self._without = tuple(f"{folder}/" for folder in without)
        self._by_name: dict[str, list[str]] | None = None

    def find(self, name: object) -> FoundFile | None:
        """Return the file of a name, None where there is none or more than one could be meant.

        Args:
            name: a path as it is written, also one of another machine, of Windows, or an address.
        """
        if not isinstance(name, str) or not name or "\0" in name:
            return None
        for written, rule in _spellings(name):
            found = self._exact(written) or self._by_rule(written)
            if found is not None:
                found = found._replace(rule=found.rule or rule)
                self.counts.add(found.rule, name, found.path)
                return found
        return None

    def several(self, name: object) -> str:
        """Return the first files that a name could mean, where they are several: that is why it means none."""
        last = _folded(posixpath.basename(str(name).replace("\\", "/")))
        paths = self._candidates(last)
        return ", ".join(f"`{path}`" for path in paths[:3]) if len(paths) > 1 else ""

    def _exact(self, name: str) -> FoundFile | None:
        if name.startswith("/"):
            top = self._root.absolute().as_posix().rstrip("/") + "/"
            return self._file(name[len(top) :], "") if name.startswith(top) else None
        return next(filter(None, (self._file(posixpath.join(folder, name), "") for folder in self._folders)), None)

    def _by_rule(self, name: str) -> FoundFile | None:
        parts = [part for part in name.split("/") if part not in ("", ".", "..")]
        candidates = self._candidates(_folded(parts[-1])) if parts else []
        if not candidates:
            return None
        for rule, form in (("unicode", _composed), ("case", _folded)):
            for folder in self._folders if not name.startswith(("/", "..")) else ():
                wanted = form(posixpath.normpath(posixpath.join(folder, name)))
                same = [path for path in candidates if form(path) == wanted]
                if same:
                    return self._file(same[0], rule) if len(same) == 1 else None
        ends = [_common_end(parts, path.split("/")) for path in candidates]
        longest = max(ends)
        if ends.count(longest) > 1:
            return None
        return self._file(candidates[ends.index(longest)], "ending")

    def _candidates(self, folded: str) -> list[str]:
        if self._by_name is None:
            self._by_name = {}
            for path in files_below(self._root):
                self._by_name.setdefault(_folded(posixpath.basename(path)), []).append(path)
        return [path for path in self._by_name.get(folded, ()) if not path.startswith(self._without)]

    def _file(self, path: str, rule: str) -> FoundFile | None:
        normal = posixpath.normpath(path)
        if normal.startswith(("..", "/")):
            return None
        file = self._root / normal
        try:
            return FoundFile(normal, file.stat().st_size, rule) if file.is_file() else None
        except (OSError, ValueError):  # too long, or half of a character
            return None


def match_names(wanted: Iterable[str], there: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return name → the one that is there and the rule, for names that only differ in form, case or percent signs.

    Names of which several could be meant are not in it.
    """
    left, free = list(wanted), list(there)
    found: dict[str, tuple[str, str]] = {}
    for rule, form in _FORMS:
        forms: dict[str, list[str]] = {}
        for name in free:
            forms.setdefault(form(name), []).append(name)
        asked: dict[str, list[str]] = {}
        for name in left:
            asked.setdefault(form(name), []).append(name)
        for each, names in asked.items():
            if len(names) == 1 and len(forms.get(each, ())) == 1:
                found[names[0]] = (forms[each][0], rule)
        left = [name for name in left if name not in found]
        used = {name for name, _rule in found.values()}
        free = [name for name in free if name not in used]
    return found


def _spellings(name: str) -> Iterator[tuple[str, str]]:
    """Yield a name with ``/``, without drive or host, and its percent-decoded form, each with its rule."""
    plain = name.replace("\\", "/")
    if "?d=" in plain:  # Label Studio's local files
        plain = plain.partition("?d=")[2]
    elif _SCHEME.match(plain):
        plain = "/" + plain[_SCHEME.match(plain).end() :].partition("?")[0]  # type: ignore[union-attr]
    if _DRIVE.match(plain):
        plain = plain[2:]
    yield plain, ""
    if "%" in plain and (decoded := unquote(plain)) != plain and "\0" not in decoded:
        yield decoded.replace("\\", "/"), "percent"


def _composed(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


_FORMS: Final[Sequence[tuple[str, Callable[[str], str]]]] = (
    ("unicode", _composed),
    ("case", _folded),
    ("percent", lambda name: _composed(unquote(name))),
    ("percent", lambda name: _folded(unquote(name))),
)


def _common_end(name: Sequence[str], path: Sequence[str]) -> int:
    """Return how many folders and names two paths have in common at their ends."""
    count = 0
    for one, other in zip(reversed(name), reversed(path), strict=False):
        if _folded(one) != _folded(other):
            break
        count += 1
    return count


def files_below(root: Path, folder: str = "", entered: set[str] | None = None) -> Iterator[str]:
    """Yield the paths of all files of a source, sorted folder by folder, without hidden ones and those of macOS."""
    entered = set() if entered is None else entered
    place = os.path.realpath(root / folder)
    if place in entered:
        return
    entered.add(place)
    try:
        with os.scandir(root / folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = posixpath.join(folder, entry.name)
        if entry.name.startswith((".", "__MACOSX")):
            continue
        if is_folder_entry(entry):
            yield from files_below(root, path, entered)
        else:
            yield path
