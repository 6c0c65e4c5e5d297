"""Importer interface: recognition of a format, scan of a source into samples, and reading of their parts.

An importer is registered by name in the entry-point group ``ziggurat.importers``. ``ziggurat.testing.importer`` tests
any importer against this contract.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np

from ziggurat.dataflow.image_codec import read_file
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import ConfigurationError, DatapointError, UnknownNameError
from ziggurat.records.offered_folders import check_file
from ziggurat.records.schema import Schema

__all__ = ["FilePartReader", "Guess", "Importer", "ImporterOption", "PartReader", "Scan"]


@dataclass(frozen=True, kw_only=True)
class ImporterOption:
    """One thing that a person may tell an importer.

    Args:
        name: its name.
        type: ``str``, ``int``, ``float``, ``bool``, ``list`` or ``dict``.
        default: its value if not given.
        help: one sentence.
        choices: the values that it may have; empty for any.
    """

    name: str
    type: type
    default: Any
    help: str
    choices: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Guess:
    """What an importer thinks of a source.

    Args:
        format: name of the importer.
        confidence: from 0 to 1; 0.9 and more: a sign that no other format has.
        reason: one sentence on what was found, such as "12 folders with images".
        kind: kind of dataset that it would become, a name in ``ziggurat.records.schema.KINDS``.
        options: that the importer should get.
        loses: labels of the source that would not be read, such as "`annotations.xml`"; empty where all are.
        folder: folder below the source that the guess is about; empty for the source itself.
    """

    format: str
    confidence: float
    reason: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    loses: str = ""
    folder: str = ""


class PartReader(ABC):
    """Reads the parts of samples by their addresses; each process has its own."""

    @abstractmethod
    def read(self, address: str) -> bytes | np.ndarray:
        """Return a part: the bytes of an encoded image or a text, or an array, (H, W, C) uint8 for an image.

        Raises:
            DatapointError: where it cannot be read.
        """

    def file(self, address: str) -> Path | None:
        """Return the file that holds the part and nothing else, None where there is no such file."""
        return None

    def close(self) -> None:
        """Free files and memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def read_source_file(path: Path) -> bytes:
    """Return the content of a file that a source has or names.

    Raises:
        DatapointError: where it cannot be read, or not for the people of this studio.
    """
    try:
        check_file(path)
    except PermissionError as error:
        raise DatapointError(str(path), f"it cannot be read ({error.strerror}).") from None
    return read_file(path)


class FilePartReader(PartReader):
    """Reads parts that are files.

    Args:
        root: folder that addresses are relative to; absolute addresses are taken as they are.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, address: str) -> bytes:
        """Return the file's content."""
        return read_source_file(self._root / address)

    def file(self, address: str) -> Path:
        """Return the file."""
        return self._root / address


class Scan(ABC):
    """One walk through a source. Iterate it once, to the end; then ``schema`` is there.

    Nothing is kept of a sample that was yielded, and no image is opened: a million samples cost no memory.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[Sample | Problem]:
        """Yield samples and problems, in the same order every time.

        Raises:
            DataError: where the source cannot be used at all.
        """

    @property
    def found_options(self) -> Mapping[str, Any]:
        """Options of the importer that the walk found out, and that its reader needs; there when it has ended."""
        return {}

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """What the samples mean; complete when the iteration has ended."""


class Importer(ABC):
    """One format of datasets.

    Args (class attributes):
        name: by which it is asked for, such as ``coco``.
        title: as a page shows it, such as "COCO (JSON)".
        kinds: the kinds of dataset that it makes.
        options: what it may be told.
        reads_archives: whether it reads tar files as they are; all others get them unpacked.
        markers: endings of files, in lower case; a folder without one of them down to two folders deep is not of this
            format, and ``guess`` is not asked. Empty: it is asked about every folder.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    options: ClassVar[tuple[ImporterOption, ...]] = ()
    reads_archives: ClassVar[bool] = False
    markers: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def guess(self, source: Path) -> Guess | None:
        """Say whether a source has this format; None where it has not. Quick: a few files at most are looked into.

        Args:
            source: a folder or a file that exists.
        """

    def obstacle(self, source: Path) -> str:
        """Return why a source with signs of this format cannot be read; empty without such signs.

        Asked only where no importer recognizes the source, so that the error can name the reason.
        """
        return ""

    @abstractmethod
    def scan(self, source: Path, options: Mapping[str, Any]) -> Scan:
        """Return a walk through a source.

        Args:
            source: a folder or a file.
            options: complete: ``checked_options`` was called.

        Raises:
            DataError: where the source cannot be used at all (also later, from the walk).
        """

    def reader(self, source: Path, options: Mapping[str, Any]) -> PartReader:
        """Return what reads the parts of the samples; here, files below the source."""
        return FilePartReader(source if source.is_dir() else source.parent)

    def checked_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options, those that were given checked.

        Raises:
            UnknownNameError: where one has a name or a choice that is unknown.
            ConfigurationError: where one is of the wrong type.
        """
        known = {option.name: option for option in self.options}
        for name in given:
            if name not in known:
                raise UnknownNameError(f"option of the format {self.name}", name, known)
        return {name: _checked(option, given.get(name, option.default)) for name, option in known.items()}


_TYPES: Final = {
    "bool": "true or false",
    "dict": "an object of names and values",
    "float": "a number",
    "int": "a whole number",
    "list": "a list",
    "str": "a text",
}
"""Type of an option → what its values are called in an error."""


def _checked(option: ImporterOption, value: Any) -> Any:
    if value == option.default:
        return value
    if option.type is float and type(value) is int:
        value = float(value)
    if option.type is list and isinstance(value, str) and value and "," not in value:
        value = [value]  # as in `--option exclude=day`; several are a list in JSON
    if not isinstance(value, option.type) or (option.type is int and isinstance(value, bool)):
        raise ConfigurationError(
            f"`{option.name}` must be {_TYPES[option.type.__name__]}.",
            received=repr(value),
            advice=f"{option.help} Left out: {option.default!r}.",
        )
    if option.choices and value not in option.choices:
        raise UnknownNameError(f"value of `{option.name}`", str(value), [str(choice) for choice in option.choices])
    return value
