"""Names that people give to jobs, datasets, projects, tokens and tags: text without control characters."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from ziggurat.errors import ConfigurationError

__all__ = ["check_job_texts", "check_name", "check_notes"]

_REFUSED: Final = ("Cc", "Cs")
"""Unicode categories: control characters, and halves of surrogate pairs, which are no characters."""

_IN_NOTES: Final = "\n\r\t"
_SHOWN: Final = 50


def check_name(text: str, what: str) -> None:
    """Refuse a name that has a control character, such as NUL or a line break, or half a surrogate pair.

    Args:
        text: the name.
        what: what it is the name of, with its article, to begin the sentence of the error: ``The name of a job``.

    Raises:
        ConfigurationError: it names the character.
    """
    _check(text, what, "")


def check_notes(text: str, what: str) -> None:
    """Refuse notes as ``check_name`` refuses names; line breaks and tabs may be in them."""
    _check(text, what, _IN_NOTES)


def check_job_texts(
    *, name: str | None = None, project: str | None = None, tags: Iterable[str] | None = None, notes: str | None = None
) -> None:
    """Refuse what people say of a job where a text has control characters; None and empty texts are passed over.

    Raises:
        ConfigurationError: it names the text and the character.
    """
    check_name(name or "", "The name of a job")
    check_name(project or "", "The name of a project")
    for tag in tags or ():
        check_name(tag, "A tag")
    check_notes(notes or "", "The notes of a job")


def _check(text: str, what: str, allowed: str) -> None:
    if text.isprintable():
        return
    bad = next((each for each in text if unicodedata.category(each) in _REFUSED and each not in allowed), None)
    if bad is not None:
        raise ConfigurationError(
            f"{what} must be text without control characters.",
            received=f"U+{ord(bad):04X} in {text[:_SHOWN]!a}",
            advice="Leave that character out.",
        )
