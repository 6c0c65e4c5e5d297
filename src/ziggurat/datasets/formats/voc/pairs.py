"""Images of VOC datasets and their XML files: by the image that ``<filename>`` names, else by the same name."""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ziggurat.datasets.formats.shared.detection_import import Pair, walk_pairs
from ziggurat.datasets.formats.shared.file_finder import FileFinder, RuleCounts
from ziggurat.datasets.formats.shared.text_files import encoding_by_mark
from ziggurat.datasets.formats.voc.layout import XML_ENCODING, VocFolder
from ziggurat.datasets.samples import Problem

__all__ = ["VocPair", "VocPairs"]

_HEAD_BYTES: Final = 1 << 13  # `<filename>` is one of the first elements
_FILENAME: Final = re.compile(r"<filename>\s*(.*?)\s*</filename>", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class VocPair:
    """An image and its XML files.

    Args:
        stem: path without the ending below the folder of images; of an XML file without an image, its own.
        image: path below the source; None where there is none.
        size_bytes: of the image; None where it is a link that leads nowhere.
        labels: paths of the XML files below the source.
    """

    stem: str
    image: str | None
    size_bytes: int | None
    labels: tuple[str, ...]


class VocPairs:
    """Walk through the images of a folder in the form of VOC.

    An XML file belongs to the image that its `<filename>` names, if that is there and no XML file of the image's own
    name says so too; else to the image of its own name. Memory holds the XML files whose names differ from their
    images'.

    Args:
        root: the source.
        folder: in it.
    """

    def __init__(self, root: Path, folder: VocFolder) -> None:
        self._root = root
        self._folder = folder
        self._counts = RuleCounts()
        self._renamed = 0
        self._example = ""

    def __iter__(self) -> Iterator[VocPair]:
        targets = self._targets()
        labels_of: dict[str, list[str]] = {}
        for label, image in targets.items():
            labels_of.setdefault(image, []).append(label)
        for pair in self._walk(self._counts):
            own = [pair.label] if pair.label is not None and pair.label not in targets else []
            if pair.image is None and not own:
                continue
            labels = (*own, *labels_of.get(pair.image or "", ()))
            yield VocPair(stem=pair.stem, image=pair.image, size_bytes=pair.size_bytes, labels=labels)

    def problems(self) -> Iterator[Problem]:
        """Yield by which rules files were found; call it after the walk."""
        yield from self._counts.problems(self._folder.annotations)
        if self._renamed:
            files = "One XML file names" if self._renamed == 1 else f"{self._renamed} XML files name"
            reason = f"{files} another image than that of the same name, and `<filename>` counts: {self._example}."
            yield Problem(key=self._folder.annotations, kind="other-name", reason=reason)

    def _walk(self, counts: RuleCounts) -> Iterator[Pair]:
        return walk_pairs(self._root, self._folder.image_folder, self._folder.annotations, ".xml", counts=counts)

    def _targets(self) -> dict[str, str]:
        """Return XML file → image, where that is another one than the walk gives it."""
        targets: dict[str, str] = {}
        finder: FileFinder | None = None
        for pair in self._walk(RuleCounts()):
            name = _filename(self._root / pair.label) if pair.label is not None else ""
            if pair.label is None or not name or (pair.image is not None and _is_same(name, pair.image)):
                continue
            inner = posixpath.join(self._folder.image_folder, posixpath.dirname(pair.stem))
            finder = finder or FileFinder(self._root, [self._folder.image_folder])
            found = finder.find(posixpath.join(inner, name)[len(self._folder.image_folder) :].lstrip("/"))
            found = found or finder.find(name)
            if found is None or found.path == pair.image or not self._is_inside(found.path):
                continue
            if self._has_own(found.path):
                continue  # a name that was copied
            targets[pair.label] = found.path
            self._renamed += 1
            self._example = self._example or f"`{pair.label}` is of `{found.path}`"
        return targets

    def _is_inside(self, image: str) -> bool:
        return not self._folder.image_folder or image.startswith(f"{self._folder.image_folder}/")

    def _has_own(self, image: str) -> bool:
        """Return whether an XML file of the image's own name says that it is of this image."""
        below = image[len(self._folder.image_folder) :].lstrip("/")
        own = self._root / self._folder.annotations / f"{posixpath.splitext(below)[0]}.xml"
        return own.is_file() and _is_same(_filename(own), image)


def _filename(path: Path) -> str:
    """Return the name of the image that an XML file gives; empty where it gives none."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return ""
    declared = XML_ENCODING.match(head)
    encoding = encoding_by_mark(head[:4]) or (declared[1].decode() if declared else "utf-8")
    try:
        found = _FILENAME.search(head.decode(encoding, "replace"))
    except LookupError:
        return ""
    return html.unescape(found[1]) if found else ""


def _is_same(name: str, image: str) -> bool:
    """Return whether a name means an image: endings often differ, as images were converted."""
    base = posixpath.basename(name.replace("\\", "/"))
    return posixpath.splitext(base)[0] == posixpath.splitext(posixpath.basename(image))[0]
