"""Tokens of a text: words, numbers and signs of any script."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Final

__all__ = ["tokens_of"]

_SPACELESS: Final = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3040-\u30ff"  # Japanese syllables
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
"""Letters of scripts that put no space between words."""

_JOINERS: Final = "\u200c\u200d"
_LAST_MARK: Final = 0x1F000  # above are emoji, and selectors of variants, which no word contains


def tokens_of(text: str, *, lower: bool) -> list[str]:
    """Return the tokens of a text, in order.

    A token is a word, with the apostrophes within it; a number, with the points and commas within it; a single letter
    of a script without spaces; or any other single sign. Letters that look the same are the same: the text is brought
    to the Unicode form NFC first.

    Args:
        text: of any length.
        lower: whether capital letters count as small ones.
    """
    text = unicodedata.normalize("NFC", text)
    return _pattern().findall(text.lower() if lower else text)


@functools.cache
def _pattern() -> re.Pattern[str]:
    # `\w` knows no combining marks, with which the words of most Indic scripts are written.
    marks = _JOINERS + "".join(
        chr(code) for code in range(0x300, _LAST_MARK) if unicodedata.category(chr(code)).startswith("M")
    )
    letters = rf"[^\W\d_{_SPACELESS}]"
    return re.compile(
        rf"{letters}+(?:[{marks}]{letters}*|['’]{letters}+)*"
        r"|\d+(?:[.,]\d+)*"
        rf"|[{_SPACELESS}][{marks}]*"
        r"|[^\w\s]|_"
    )
