"""Dataset formats by name: the importer of a source, chosen or recognized, and the exporters."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.class_folders.layout import data_files
from ziggurat.datasets.formats.shared.detection_import import KEYS_NAME
from ziggurat.datasets.formats.shared.exports import SCHEMA_NAME, ExportReport
from ziggurat.datasets.formats.shared.folder_walk import folders_in
from ziggurat.datasets.formats.shared.looks import has_ending, looking_once
from ziggurat.datasets.importer import Guess, Importer
from ziggurat.datasets.samples import split_of
from ziggurat.datasets.sources.archives import is_archive
from ziggurat.errors import ConfigurationError, DataError, MissingDependencyError, UnknownNameError
from ziggurat.plugins import available, load

__all__ = [
    "EXPORT_FORMATS",
    "SURE",
    "Recognition",
    "export_dataset",
    "guess_format",
    "guesses",
    "importer",
    "importers",
    "is_unpacked_first",
    "recognize",
]

SURE: Final = 0.5
"""Confidence from which a guess is taken without a choice by the user."""

_MOST_FOLDERS: Final = 20
_DEEPEST: Final = 3
_MOST_OPTIONS: Final = 6
_BY_FOLDER: Final = frozenset(("class_folders", "text"))
"""Formats that read every folder of a source; others look for their files, and pass over datasets of other formats."""

_BESIDE_DATA: Final = frozenset((
    "__macosx", "asset", "assets", "doc", "docs", "figures", "notebooks", "output", "outputs", "results", "screenshots",
    "scripts", "src", "tests", "weights",
))  # fmt: skip
"""Names of folders in repositories that hold images or texts which are no data."""

EXPORT_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "class_folders": ("image-classification",),
    "text_list": ("image-classification", "image-regression"),
    "coco": ("detection",),
    "voc": ("detection", "segmentation"),
    "yolo": ("detection",),
    "kitti": ("detection",),
    "labelme": ("detection",),
    "cvat": ("detection",),
    "label_studio": ("detection",),
    "boxes_csv": ("detection",),
    "via": ("detection",),
    "createml": ("detection",),
    "supervisely": ("detection",),
    "masks": ("segmentation",),
    "image_pairs": ("image-to-image",),
    "idx": ("image-classification",),
    "tfrecord": (
        "image-classification",
        "image-regression",
        "detection",
        "segmentation",
        "image-to-image",
        "image-pairs",
    ),
    "webdataset": (
        "image-classification",
        "image-regression",
        "detection",
        "segmentation",
        "image-to-image",
        "image-pairs",
        "text-classification",
    ),
    "digits_lmdb": ("image-classification",),
    "digits_hdf5": ("image-classification",),
    "table": ("table",),
    "text": ("text-classification",),
}
"""Format → the kinds of dataset that it can hold."""


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """What the importers think of a source, and which guess is taken.

    Args:
        source: folder or file.
        guesses: the most confident first; those about a folder in the source have its path.
        obstacles: ``format: reason`` of importers that know the kind of file and cannot read it.
    """

    source: Path
    guesses: tuple[Guess, ...]
    obstacles: tuple[str, ...] = ()

    @property
    def chosen(self) -> Guess | None:
        """The guess that is taken: the most confident one, or that of the single folder in the source that fits better.

        None where it is less than 50 % sure or would drop labels: then the user chooses.
        """
        own = next((guess for guess in self.guesses if not guess.folder), None)
        if own is not None and _is_usable(own):
            return own
        inner = [guess for guess in self.guesses if guess.folder and _is_usable(guess)]
        fits_better = len(inner) == 1 and (own is None or inner[0].confidence > own.confidence)
        return inner[0] if fits_better else None

    def required(self) -> Guess:
        """Return the guess that is taken.

        Raises:
            DataError: where none is; it lists the likely formats, also in ``details["options"]``.
        """
        if self.chosen is not None:
            return self.chosen
        if self.guesses:
            raise self._open_choice()
        known = ", ".join(each.name for each in importers())
        nearest = f" ({'; '.join(self.obstacles)})" if self.obstacles else ""
        raise DataError(
            f"No importer recognizes `{self.source}`{nearest}.",
            advice=f"Name one with --format. Known: {known}.",
            details={"obstacles": list(self.obstacles)},
        )

    def _open_choice(self) -> DataError:
        likely = self.guesses[:_MOST_OPTIONS]
        shown = "; ".join(_option_text(guess) for guess in likely)
        folders = [guess.folder for guess in likely if guess.folder]
        ways = ["--format NAME (the field `format`; `ziggurat dataset formats` lists all)"]
        ways += [f"the path of a folder in it, such as `{folders[0]}`"] if folders else []
        obstacles = "".join(f"; {obstacle}" for obstacle in self.obstacles)
        return DataError(
            f"The format of `{self.source}` is not clear; it may be: {shown}{obstacles}.",
            advice=f"Choose one with {', or '.join(ways)}.",
            details={
                "field": "format",
                "options": [asdict(guess) for guess in likely],
                "obstacles": list(self.obstacles),
            },
        )


def importer(name: str) -> Importer:
    """Return the importer of a format.

    Raises:
        UnknownNameError: where there is none.
        MissingDependencyError: where it needs a package that is not installed.
    """
    found = load("importers", name)
    return found() if isinstance(found, type) else found


def importers() -> Sequence[Importer]:
    """Return every importer that can be loaded here, by name."""
    return [each for each in (_loaded(plugin.name) for plugin in available("importers")) if each is not None]


def recognize(source: Path) -> Recognition:
    """Return what every importer thinks of a source, and of the folders in it where it is no dataset itself.

    Raises:
        DataError: where the source is not there.
    """
    if not source.exists():
        raise DataError(f"`{source}` does not exist.", advice="Check the path.")
    with looking_once():
        return _recognized(source)


def _recognized(source: Path) -> Recognition:
    own = _guesses_of(source)
    inner: list[Guess] | None = None
    if own and _is_usable(own[0]):
        is_whole = own[0].format in _BY_FOLDER or _is_own_export(source)
        if is_whole or len(_data_folders(source)) < 2:
            return Recognition(source=source, guesses=tuple(own))
        inner = list(_inner_guesses(source))
        others = [guess for guess in inner if guess.format != own[0].format]
        if len(inner) < 2 or not others:
            return Recognition(source=source, guesses=tuple(own))
        own[0] = replace(own[0], loses=f"the dataset ({others[0].format}) in the folder `{others[0].folder}`")
    found = sorted([*own, *(_inner_guesses(source) if inner is None else inner)], key=_by_confidence)
    claimed = {guess.format for guess in own}
    others = [each for each in importers() if each.name not in claimed]
    obstacles = [f"{each.name}: {reason}" for each in others if (reason := each.obstacle(source))]
    return Recognition(source=source, guesses=tuple(found), obstacles=tuple(obstacles))


def guesses(source: Path) -> list[Guess]:
    """Return what every importer thinks of a source, the most confident first.

    Raises:
        DataError: where the source is not there.
    """
    return list(recognize(source).guesses)


def guess_format(source: Path) -> Guess:
    """Return the guess that is taken for a source.

    Raises:
        DataError: where none is: none is confident enough, the most confident one would drop labels, or no importer
            recognizes it. The message lists the likely formats.
    """
    return recognize(source).required()


def is_unpacked_first(path: Path, format_name: str = "") -> bool:
    """Return whether a file is an archive that must be unpacked before an importer can read it.

    Args:
        path: of the file.
        format_name: that the user named; empty: a tar file that looks like a shard of samples stays as it is.

    Raises:
        UnknownNameError: where there is no such format.
    """
    if not (path.is_file() and is_archive(path.name)):
        return False
    if format_name:
        return not importer(format_name).reads_archives
    found = (each.guess(path) for each in importers() if each.reads_archives)
    return not any(guess is not None and _is_usable(guess) for guess in found)


def _loaded(name: str) -> Importer | None:
    try:
        return importer(name)
    except MissingDependencyError:
        return None


def _guesses_of(source: Path) -> list[Guess]:
    asked = [each for each in importers() if not each.markers or has_ending(source, each.markers)]
    found = [guess for guess in (each.guess(source) for each in asked) if guess is not None]
    return sorted(found, key=_by_confidence)


def _inner_guesses(source: Path) -> Iterator[Guess]:
    """Yield the best guess for each folder in a source; labels and images beside it would be lost."""
    for folder in _data_folders(source):
        path, found = folder, _guesses_of(source / folder)
        for _ in range(_DEEPEST):
            inner = _data_folders(source / path)
            is_chain = len(inner) == 1 and not any(data_files(source / path, without=inner))
            if not is_chain or (found and _is_usable(found[0])):
                break
            path = f"{path}/{inner[0]}"
            found = _guesses_of(source / path)
        if found and _is_usable(found[0]):
            beside = next(data_files(source, without=(folder, *_documents(source))), "")
            yield replace(found[0], folder=path, loses=f"`{beside}` beside that folder" if beside else "")


def _is_own_export(source: Path) -> bool:
    """Return whether a folder has what only our exports write; its folders are parts of one dataset."""
    return source.is_dir() and any((source / name).is_file() for name in (SCHEMA_NAME, KEYS_NAME))


def _data_folders(source: Path) -> list[str]:
    names = (name for name in folders_in(source) if not split_of(name) and name.lower() not in _BESIDE_DATA)
    return list(islice(names, _MOST_FOLDERS)) if source.is_dir() else []


def _documents(source: Path) -> list[str]:
    return [name for name in folders_in(source) if name.lower() in _BESIDE_DATA]


def _is_usable(guess: Guess) -> bool:
    return guess.confidence >= SURE and not guess.loses


def _by_confidence(guess: Guess) -> tuple[Any, ...]:
    return (-guess.confidence, guess.folder, guess.format)


def _option_text(guess: Guess) -> str:
    where = f" in the folder `{guess.folder}`" if guess.folder else ""
    lost = f", but would lose {guess.loses}" if guess.loses else ""
    return f"{guess.format}{where} ({guess.confidence:.0%} sure: {guess.reason.rstrip('.')}{lost})"


def export_dataset(
    dataset: Dataset,
    format: str,  # noqa: A002 - the word that people use
    folder: Path,
    options: Mapping[str, Any] | None = None,
) -> ExportReport:
    """Write a dataset in a format of others.

    Args:
        dataset: it.
        format: a name in ``EXPORT_FORMATS``.
        folder: to be written; new, or empty.
        options: of the exporter.

    Raises:
        UnknownNameError: where there is no such format.
        ConfigurationError: where the format cannot hold a dataset of this kind.
        StorageError: where the folder is not empty, or the disk is full or refuses.
    """
    if format not in EXPORT_FORMATS:
        raise UnknownNameError("format of an export", format, EXPORT_FORMATS)
    if dataset.kind not in EXPORT_FORMATS[format]:
        fitting = [name for name, kinds in EXPORT_FORMATS.items() if dataset.kind in kinds]
        raise ConfigurationError(
            f"The format {format} holds datasets of kind {' or '.join(EXPORT_FORMATS[format])}.",
            received=f"kind {dataset.kind}",
            advice=f"Choose one of: {', '.join(fitting)}." if fitting else "No format of others holds this kind.",
        )
    module = importlib.import_module(f"ziggurat.datasets.formats.{format}.exporter")
    function: Callable[..., ExportReport] = getattr(module, f"export_{format}")
    return function(dataset, folder, **(options or {}))
