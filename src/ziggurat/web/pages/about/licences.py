"""Licenses of Ziggurat's dependencies: the Python packages, and the packages used by its pages."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["Licence", "licence_text", "own_licence", "page_licences", "python_licences"]

_FRONTEND: Final = Path(__file__).parents[2] / "static" / "vendor" / "licences.json"
_LEFT_OUT: Final = ("all", "dev", "docs", "release")
"""Extras that are sums of others, or for those who work on Ziggurat itself."""

_FILE: Final = re.compile(r"(licen[cs]e|copying|notice)[^/]*", re.IGNORECASE)
_NAME: Final = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[([^\]]*)\])?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*['"]([\w.-]+)['"]""")
_CLASSIFIER: Final = "License :: OSI Approved :: "


@dataclass(frozen=True, kw_only=True)
class Licence:
    """The license of a package.

    Args:
        name: of the package.
        version: of it.
        licence: what it calls its license; empty where it says nothing.
    """

    name: str
    version: str
    licence: str


@cache
def python_licences() -> tuple[Licence, ...]:
    """Return those of the packages that are installed and that Ziggurat needs, or can use, by name."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [("ziggurat", tuple(_own_extras()))]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        asked = waiting.pop()
        if asked in seen:
            continue
        seen.add(asked)
        try:
            distribution = importlib.metadata.distribution(asked[0])
        except importlib.metadata.PackageNotFoundError:  # an extra that is not installed, or for other systems
            continue
        found[_same(asked[0])] = distribution
        waiting += _needed(distribution, asked[1])
    found.pop("ziggurat", None)
    return tuple(sorted((_licence(each) for each in found.values()), key=lambda each: each.name.casefold()))


@cache
def page_licences() -> tuple[Licence, ...]:
    """Return those of the packages whose code is in the pages' scripts; none where the scripts were not built."""
    if not _FRONTEND.is_file():
        return ()
    return tuple(Licence(name=each["name"], version=each["version"], licence=each["licence"]) for each in _built())


@cache
def own_licence() -> Licence:
    """Return that of Ziggurat itself."""
    return _licence(importlib.metadata.distribution("ziggurat"))


def licence_text(licence: Licence) -> str:
    """Return the text of a license; empty where the package brings none."""
    if licence in page_licences():
        return next((each["text"].strip() for each in _built() if each["name"] == licence.name), "")
    return "\n\n".join(_texts(importlib.metadata.distribution(licence.name)))


def _built() -> list[dict[str, str]]:
    return json.loads(_FRONTEND.read_text(encoding="utf-8"))


def _own_extras() -> list[str]:
    known = importlib.metadata.metadata("ziggurat").get_all("Provides-Extra") or []
    return [each for each in known if each not in _LEFT_OUT]


def _needed(
    distribution: importlib.metadata.Distribution, extras: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in distribution.requires or ():
        requirement, _, marker = line.partition(";")
        extra = _EXTRA.search(marker)
        if extra is not None and extra[1] not in extras:
            continue
        name = _NAME.match(requirement)
        if name is not None:
            chosen = tuple(part.strip() for part in (name[2] or "").split(",") if part.strip())
            yield _same(name[1]), chosen


def _licence(distribution: importlib.metadata.Distribution) -> Licence:
    about = distribution.metadata
    classifiers = [each.removeprefix(_CLASSIFIER) for each in about.get_all("Classifier") or () if _CLASSIFIER in each]
    said = _said(about, "License-Expression") or ", ".join(classifiers) or _said(about, "License")
    return Licence(name=about["Name"], version=distribution.version, licence=said.splitlines()[0][:100] if said else "")


def _said(about: importlib.metadata.PackageMetadata, name: str) -> str:
    return (about.get_all(name) or [""])[0].strip()


def _texts(distribution: importlib.metadata.Distribution) -> Iterator[str]:
    for file in distribution.files or ():
        is_about = ".dist-info" in file.as_posix()
        if is_about and _FILE.fullmatch(file.name) and not file.name.endswith((".py", ".pyc")):
            place = Path(str(file.locate()))
            if place.is_file():
                yield place.read_text(encoding="utf-8", errors="replace").strip()


def _same(name: str) -> str:
    """Return a package's name in the one form that stands for all its spellings."""
    return re.sub(r"[-_.]+", "-", name).lower()
