"""Checks before a dataset is created, so that nothing is written that cannot succeed."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from importlib import import_module
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ziggurat.datasets.format_registry import EXPORT_FORMATS, guess_format, importer, is_unpacked_first
from ziggurat.datasets.sources import is_remote, public_uri
from ziggurat.datasets.sources.secrets import without_user
from ziggurat.errors import ConfigurationError, DataError, JobError, UnknownNameError
from ziggurat.layout import JobFolder
from ziggurat.specs import DatasetSpec

__all__ = ["check_export_options", "check_new_dataset", "export_options", "source_name", "stored_source"]


def check_new_dataset(spec: DatasetSpec, folder: Path | None = None) -> None:
    """Find out early what cannot be, so that no folder is left behind.

    Args:
        spec: what is asked; its source is as ``stored_source`` says.
        folder: where it is to be made; None for a new folder of the workspace.

    Raises:
        DataError: where the source is not there, or its format is not clear; ``details["options"]`` lists the likely.
        UnknownNameError: where format or option are unknown.
        ConfigurationError: where a value cannot be, or the address holds a password.
        JobError: where the folder holds something, or lies in the source.
    """
    _check_pictures(spec)
    if is_remote(spec.source):
        _check_address(spec.source)
        if spec.format:
            importer(spec.format).checked_options(spec.options)
    else:
        _check_local(spec, Path(spec.source))
    if folder is not None:
        _check_folder(folder, None if is_remote(spec.source) else Path(spec.source))


def stored_source(text: str) -> str:
    """Return a source as a spec keeps it: an address as it is, anything of this machine as an absolute path."""
    if is_remote(text):
        return text
    return str(Path(unquote(urlsplit(text).path) if "://" in text else text).absolute())


def source_name(source: str) -> str:
    """Return the default name of a dataset of a source: the last name of its path."""
    if not is_remote(source):
        return Path(source).name
    parts = urlsplit(public_uri(source))
    return Path(unquote(parts.path)).name or parts.netloc


def export_options(format: str) -> tuple[str, ...]:  # noqa: A002 - the word that people use
    """Return the names of the options that an export takes.

    Raises:
        UnknownNameError: where there is no such format.
    """
    if format not in EXPORT_FORMATS:
        raise UnknownNameError("format of an export", format, EXPORT_FORMATS)
    function = getattr(import_module(f"ziggurat.datasets.formats.{format}.exporter"), f"export_{format}")
    parameters = inspect.signature(function).parameters.values()
    return tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)


def check_export_options(format: str, names: Iterable[str]) -> None:  # noqa: A002
    """Find out whether an export takes these options.

    Raises:
        UnknownNameError: where it does not.
    """
    known = export_options(format)
    for name in names:
        if name not in known:
            raise UnknownNameError(f"option of an export as {format}", name, known)


def _check_pictures(spec: DatasetSpec) -> None:
    if spec.size is not None and min(spec.size) < 1:
        raise ConfigurationError(
            "`size` is a number of pixels, or height and width, at least 1.",
            received=" x ".join(str(side) for side in spec.size),
            advice="As in 256 or 240x320.",
        )
    if spec.encoding in ("original", "reference") and (spec.size is not None or spec.channels is not None):
        raise ConfigurationError(
            f"Images with encoding {spec.encoding} stay as they are.",
            received=f"`encoding` {spec.encoding} with {'`size`' if spec.size is not None else '`channels`'}",
            advice="Choose the encoding png, jpeg or raw to change size or channels.",
        )


def _check_address(uri: str) -> None:
    if without_user(uri) != uri:
        raise ConfigurationError(
            "An address holds no user and no password: it is kept in `spec.json`.",
            received=f"one with both in front of the host of `{public_uri(uri)}`",
            advice="Leave them out. Keys come from where the store's own tools look, such as AWS_ACCESS_KEY_ID.",
        )


def _check_local(spec: DatasetSpec, source: Path) -> None:
    if not source.exists():
        raise DataError("A source is a folder or a file that exists.", received=f"`{source}`", advice="Check the path.")
    if spec.format:
        importer(spec.format).checked_options(spec.options)
    elif not is_unpacked_first(source):
        guess = guess_format(source)
        importer(guess.format).checked_options({**guess.options, **spec.options})


def _check_folder(folder: Path, source: Path | None) -> None:
    inside = source is not None and source.is_dir() and folder.resolve().is_relative_to(source.resolve())
    held = [] if JobFolder(folder).spec.exists() else list(islice(_names(folder), 1))
    if inside or held:
        raise JobError(
            "A dataset gets a folder of its own, outside of its source.",
            received=f"`{folder}`, which {'lies in the source' if inside else f'holds `{held[0]}`'}",
            advice="Choose a folder that is new or empty.",
        )


def _names(folder: Path) -> Iterable[str]:
    if not folder.exists():
        return ()
    return (path.name for path in folder.iterdir()) if folder.is_dir() else (folder.name,)
