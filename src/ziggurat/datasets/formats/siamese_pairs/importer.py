"""Importer for pairs of images of the same or different classes: from a list, or generated from class folders."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ziggurat.dataflow.images import IMAGE_SUFFIXES
from ziggurat.datasets.formats.shared.folder_walk import FoundImage, ImageWalk, Match, Pairing, folders_in, matches
from ziggurat.datasets.formats.shared.text_encodings import ENCODING_OPTION
from ziggurat.datasets.formats.shared.text_files import (
    OTHER_LABEL,
    Line,
    SeenKeys,
    below_source,
    encoding_of,
    encoding_problems,
    lines_of,
    two_paths,
)
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import SPLIT_NAMES, SPLITS, Problem, Sample, split_of
from ziggurat.errors import ConfigurationError, DataError
from ziggurat.records.schema import Schema

__all__ = ["SiamesePairsImporter"]

_SAME: Final = re.compile(r"(?P<paths>.+?)\s+(?P<same>[01])")
_REMEMBERED: Final = 1000  # images of a class; a random choice of them stands for the class, however large it is
_ATTEMPTS: Final = 20  # to find a partner that is not taken


class SiamesePairsImporter(Importer):
    """Pairs of images; the label is 1 where both show the same, else 0.

    Of class folders, each image gets partners of its own class and of others by turns. They are chosen from at most
    1000 images of each class, so that millions of images cost no memory.
    """

    name = "siamese_pairs"
    title = "Pairs of images, same or not"
    kinds = ("image-pairs",)
    options = (
        ImporterOption(name="pairs_per_sample", type=int, default=2, help="Pairs for each image of class folders."),
        ImporterOption(name="seed", type=int, default=0, help="Decides which images become pairs."),
        ENCODING_OPTION,
    )

    def guess(self, source: Path) -> Guess | None:
        """Claim lists of ``path path 0|1``; class folders only where a person says so."""
        for path, _split in _lists(source):
            first = next(lines_of(path), Line(1, ""))
            pair = _pair_of(first, path, "")
            if isinstance(pair, Sample) and all(_is_image(str(part)) for part in pair.parts):
                return Guess(
                    format=self.name,
                    confidence=0.9,
                    reason=f"a list of two paths and 0 or 1 a line, `{path.name}`",
                    kind="image-pairs",
                )
        return None

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the pairs.

        Raises:
            ConfigurationError: where no pair is asked for.
        """
        if options["pairs_per_sample"] < 1:
            raise ConfigurationError(
                "`pairs_per_sample` is 1 or more.", received=str(options["pairs_per_sample"]), advice="Left out: 2."
            )
        return _SiameseScan(source, options)


class _SiameseScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._source = source
        self._options = options

    def __iter__(self) -> Iterator[Sample | Problem]:
        found = False
        for each in self._listed() if _lists(self._source) else self._made():
            found = found or isinstance(each, Sample)
            yield each
        if not found:
            raise DataError(
                f"`{self._source}` has neither a valid line `path path 0|1` nor two folders of images, one for a class."
            )

    @property
    def schema(self) -> Schema:
        """Two images."""
        return Schema(kind="image-pairs", class_names=("different", "same"))

    def _listed(self) -> Iterator[Sample | Problem]:
        seen, labeled = SeenKeys(), SeenKeys()
        chosen = self._options["encoding"]
        for path, split in _lists(self._source):
            yield from encoding_problems(path.name, encoding_of(path, chosen), chosen)
            for line in lines_of(path, chosen):
                found = _pair_of(line, path, split)
                if isinstance(found, Sample):
                    is_other = labeled.is_new(f"{found.key}\n{found.label}")
                    again = seen.again(found.key)
                    if again is not None and is_other:
                        reason = "A line before says otherwise of these images."
                        again = replace(again, kind="other-label", reason=reason, why=OTHER_LABEL)
                    yield found if again is None else replace(again, split=split)
                else:
                    yield found

    def _made(self) -> Iterator[Sample | Problem]:
        names = folders_in(self._source)
        splits = [name for name in names if split_of(name)]
        for place in splits or [""]:
            classes = [f"{place}/{name}" if place else name for name in folders_in(self._source / place)]
            yield from self._pairs_of(classes, split_of(place))
            yield from self._loose(place)
        for name in names if splits else ():
            if name not in splits:
                yield from self._loose(name, nested=True)
        if splits:
            yield from self._loose("")

    def _loose(self, place: str, *, nested: bool = False) -> Iterator[Problem]:
        """Yield the images that lie in no class's folder."""
        for found in ImageWalk(self._source).images(place, nested=nested):
            if isinstance(found, FoundImage):
                reason = "It lies in no class's folder."
                yield Problem(
                    key=found.path, kind="no-label", reason=reason, left_out=True, split=split_of(f"{place}/")
                )

    def _pairs_of(self, classes: Sequence[str], split: str) -> Iterator[Sample | Problem]:
        chosen = [self._remembered(folder) for folder in classes]
        filled = [number for number, names in enumerate(chosen) if names]
        for number in filled:
            partners = _Partners(chosen, number, [other for other in filled if other != number])
            for each in matches(self._source, Pairing(classes[number], None)):
                if isinstance(each, Problem):
                    yield replace(each, split=split)
                    continue
                rng = self._random(each.first)
                pairs = list(partners.draw(each.first, self._options["pairs_per_sample"], rng))
                for partner, same in pairs:
                    yield _sample(each.first, partner, same, split, each.size_bytes)
                if not pairs:
                    reason = "There is no other image that it could be paired with."
                    yield Problem(key=each.first, kind="no-partner", reason=reason, left_out=True, split=split)

    def _remembered(self, folder: str) -> list[str]:
        """Return the images of a class that may be partners: a fair choice of them (Vitter, TOMS 11, 1985: R)."""
        rng = self._random(folder)
        kept: list[str] = []
        found = (each for each in matches(self._source, Pairing(folder, None)) if isinstance(each, Match))
        for count, each in enumerate(found):
            if count < _REMEMBERED:
                kept.append(each.first)
            elif (place := rng.randrange(count + 1)) < _REMEMBERED:
                kept[place] = each.first
        return kept

    def _random(self, name: str) -> random.Random:
        digest = hashlib.sha256(f"{self._options['seed']}\n{name}".encode()).digest()
        return random.Random(int.from_bytes(digest[:8]))


@dataclass
class _Partners:
    """Chooses partners for the images of one class.

    Args:
        chosen: images of each class that may be partners.
        mine: number of the class.
        others: numbers of the other classes with images.
    """

    chosen: Sequence[Sequence[str]]
    mine: int
    others: Sequence[int]
    taken: set[str] = field(default_factory=set)

    def draw(self, image: str, pairs: int, rng: random.Random) -> Iterator[tuple[str, int]]:
        """Yield partners with 1 for the same class and 0 for another, by turns, none of them twice."""
        self.taken = {image}
        for number in range(pairs):
            same = 1 - number % 2
            for _ in range(_ATTEMPTS):
                numbers = [self.mine] if same else self.others
                partner = rng.choice(self.chosen[rng.choice(numbers)]) if numbers else image
                if partner not in self.taken:
                    self.taken.add(partner)
                    yield partner, same
                    break


def _lists(source: Path) -> list[tuple[Path, str]]:
    if source.is_file():
        return [(source, "")] if source.suffix.lower() in (".txt", ".lst", ".tsv", ".csv") else []
    names = sorted(SPLIT_NAMES, key=lambda name: SPLITS.index(SPLIT_NAMES[name]))
    named = [(source / f"{name}.txt", SPLIT_NAMES[name]) for name in names] + [(source / "pairs.txt", "")]
    return [(path, split) for path, split in named if path.is_file()]


def _pair_of(line: Line, path: Path, split: str) -> Sample | Problem:
    found = _SAME.fullmatch(line.text.strip())
    values = None if found is None else _paths(found["paths"])
    cleaned = None if values is None else [below_source(value) for value in values]
    if found is None or cleaned is None or None in cleaned or len(cleaned) != 2:
        reason = f"A line is two paths and 0 or 1 (received: {line.text[:200]!r})."
        return Problem(key=f"{path.name}:{line.number}", kind="bad-line", reason=reason, left_out=True, split=split)
    return _sample(str(cleaned[0]), str(cleaned[1]), int(found["same"]), split, None)


def _is_image(name: str) -> bool:
    """Whether a name ends as an image's does: one path with a blank in it is not taken for two."""
    return PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES


def _paths(text: str) -> tuple[str, ...] | None:
    values = text.split()
    return two_paths(text) or (tuple(values) if len(values) == 2 else None)


def _sample(first: str, second: str, same: int, split: str, size_bytes: int | None) -> Sample:
    return Sample(key=f"{first}|{second}", parts=(first, second), label=same, split=split, size_bytes=size_bytes)
