"""Importer for image-to-image tasks: input and target images from two folders, a list, or one folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.formats.masks.importer import pair_lists, pairs_in_list
from ziggurat.datasets.formats.shared.exports import completed
from ziggurat.datasets.formats.shared.folder_walk import (
    Match,
    Pairing,
    first_image,
    folder_named,
    folders_in,
    matches,
    pairings,
)
from ziggurat.datasets.importer import Guess, Importer, ImporterOption, Scan
from ziggurat.datasets.samples import Problem, Sample, split_of
from ziggurat.errors import ConfigurationError, DataError
from ziggurat.records.schema import Schema

__all__ = ["ImagePairsImporter"]

_NAMES: Final = (
    ("input", "target"), ("inputs", "targets"), ("feature", "label"), ("features", "labels"), ("images", "targets"),
    ("noisy", "clean"), ("blur", "sharp"), ("lr", "hr"), ("source", "target"), ("low", "high"), ("a", "b"), ("x", "y"),
)  # fmt: skip
_ALSO_CLASSES: Final = {"source", "low", "a", "x"}
_ENDINGS: Final = ("_target", "_targets", "_clean", "_hr")


class ImagePairsImporter(Importer):
    """Images in, images out. A folder alone is for an auto-encoder, which gives back what it got."""

    name = "image_pairs"
    title = "Images to images"
    kinds = ("image-to-image",)
    options = (
        ImporterOption(name="inputs", type=str, default="", help="Folder of the images that go in."),
        ImporterOption(name="targets", type=str, default="", help="Folder of the images that shall come out."),
        ImporterOption(name="val_inputs", type=str, default="", help="Folder of inputs for validation."),
        ImporterOption(name="val_targets", type=str, default="", help="Folder of targets for validation."),
        ImporterOption(name="target_suffix", type=str, default="", help="What a target's name adds, such as _clean."),
        ImporterOption(name="auto_encoder", type=bool, default=False, help="Each image is its own target."),
    )

    def guess(self, source: Path) -> Guess | None:
        """Claim pairs of folders whose names say input and target, and lists of pairs."""
        options = self.checked_options({})
        if source.is_file() and source.suffix.lower() not in (".txt", ".lst", ".tsv"):
            return None
        by_folder = source.is_dir() and bool(_known_pairings(source))
        if not by_folder and not pair_lists(source):
            return None
        found = next((each for each in _samples(source, options) if isinstance(each, Sample)), None)
        if found is None or not (_root(source) / str(found.parts[-1])).is_file():
            return None
        targets = tuple(f"{target}/" for _, target in _NAMES)
        marked = len(found.parts) == 1 or str(found.parts[1]).lower().startswith(targets)
        return Guess(
            format=self.name,
            confidence=_confidence(source) if by_folder else 0.93 if marked else 0.4,
            reason=f"images with other images of the same name, such as {_both(found)}",
            kind="image-to-image",
        )

    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through the pairs.

        Raises:
            ConfigurationError: where folders of validation are named, and none of inputs.
        """
        if not options["inputs"] and (options["targets"] or options["val_inputs"] or options["val_targets"]):
            raise ConfigurationError(
                "`inputs` is missing, and another folder is named.",
                received="`targets`, `val_inputs` or `val_targets` alone",
                advice="Name the folder of the inputs, too.",
                details={"field": "options.inputs"},
            )
        return _PairScan(source, options)


class _PairScan(Scan):
    def __init__(self, source: Path, options: Mapping[str, Any]) -> None:
        self._source = source
        self._options = options
        self._parts = ("image", "target")

    def __iter__(self) -> Iterator[Sample | Problem]:
        found = False
        for each in _samples(self._source, self._options):
            if isinstance(each, Sample):
                found = True
                self._parts = ("image", "target")[: len(each.parts)]
            yield each
        if not found:
            raise DataError(
                "A source of images has two folders with the same names in them, a list of pairs, or one folder.",
                received=f"`{self._source}` without any",
                advice="Name the folders with the options `inputs` and `targets`.",
            )

    @property
    def schema(self) -> Schema:
        """One part where each image is its own target, else two."""
        return completed(Schema(kind="image-to-image", parts=self._parts), _root(self._source))


def _samples(source: Path, options: Mapping[str, Any]) -> Iterator[Sample | Problem]:
    lists = [] if options["inputs"] or options["auto_encoder"] else pair_lists(source)
    for path, split in lists:
        for each in pairs_in_list(path, _root(source)):
            if isinstance(each, Problem):
                yield replace(each, split=split)
            else:
                parts = (each.first,) if each.first == each.second else (each.first, each.second)
                yield Sample(key=each.key, parts=parts, split=split)
    if not lists:
        for pairing in _folders(source, options):
            yield from _in_folders(source, pairing, options["target_suffix"])


def _in_folders(source: Path, pairing: Pairing, ending: str) -> Iterator[Sample | Problem]:
    alone = pairing.second is None
    for each in matches(source, pairing, ending=ending):
        if isinstance(each, Problem):
            yield replace(each, split=pairing.split)
        elif alone or (each.first and each.second):
            split = pairing.split or (split_of(each.first) if alone and "/" in each.first else "")
            yield Sample(key=each.first, parts=_parts(each), split=split, size_bytes=each.size_bytes)
        else:
            folder = pairing.second if each.first else pairing.first
            reason = f"`{folder}` has no image of the same name."
            key = each.first or each.second
            yield Problem(key=key, kind="no-partner", reason=reason, left_out=True, split=pairing.split)


def _parts(match: Match) -> tuple[str, ...]:
    return (match.first, match.second) if match.second else (match.first,)


def _folders(source: Path, options: Mapping[str, Any]) -> list[Pairing]:
    if not options["inputs"]:
        if not options["auto_encoder"] and (known := _known_pairings(source)):
            return known
        return [Pairing("", None)]
    pairs = [
        Pairing(folder_named(options[f"{part}inputs"]), _target_folder(options[f"{part}targets"]), split)
        for part, split in (("", ""), ("val_", "val"))
        if options[f"{part}inputs"]
    ]
    return [pairs[0]._replace(split="train"), *pairs[1:]] if len(pairs) == 2 else pairs


def _known_pairings(source: Path) -> list[Pairing]:
    """Return the pairs of folders with names that say what they are, and images in both."""
    for first, second in _NAMES:
        found = pairings(source, (first,), (second,), _ENDINGS)
        if found and found[0].second and all(first_image(source, folder) for folder in found[0][:2] if folder):
            return found
    return []


def _confidence(source: Path) -> float:
    """Return how sure the names of folders make: two classes may be called so, too."""
    first, second, _split = _known_pairings(source)[0]
    names = {name.lower() for name in (*first.split("/"), *str(second).split("/")) if not split_of(name)}
    others = [name for name in folders_in(source) if name.lower() not in names and not split_of(name)]
    return 0.4 if others or names & _ALSO_CLASSES else 0.9


def _target_folder(option: str) -> str | None:
    return folder_named(option) if option else None


def _root(source: Path) -> Path:
    return source if source.is_dir() else source.parent


def _both(sample: Sample) -> str:
    return " and ".join(f"`{part}`" for part in sample.parts)
