"""Owns finding the importer of a source: by name, or by asking every one what it thinks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ziggurat.datasets.importer import Guess, Importer
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.plugins import available, load

__all__ = ["SURE", "guess_format", "guesses", "importer", "importers"]

SURE = 0.3
"""A guess below this confidence is shown, but never taken without a person's word."""


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


def guesses(source: Path) -> list[Guess]:
    """Return what every importer thinks of a source, the surest first.

    Raises:
        DataError: where the source is not there.
    """
    if not source.exists():
        raise DataError("A source is a folder or a file that exists.", received=f"`{source}`", advice="Check the path.")
    found = [guess for guess in (each.guess(source) for each in importers()) if guess is not None]
    return sorted(found, key=lambda guess: (-guess.confidence, guess.format))


def guess_format(source: Path) -> Guess:
    """Return the best guess for a source.

    Raises:
        DataError: where no importer recognises it; the message says what would be recognised.
    """
    found = [guess for guess in guesses(source) if guess.confidence >= SURE]
    if not found:
        known = ", ".join(each.name for each in importers())
        raise DataError(
            "The format of a source is one that can be read.",
            received=f"`{source}`, which none of the importers recognises",
            advice=f"Name one with --format. Known: {known}.",
        )
    return found[0]


def _loaded(name: str) -> Importer | None:
    try:
        return importer(name)
    except MissingDependencyError:
        return None
