"""Arguments by the names that they had in older versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = ["OlderNames"]


class OlderNames:
    """Takes arguments by their older names too."""

    older: ClassVar[Mapping[str, str]] = {}
    """Older name → name; an empty one for what means nothing here."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        renamed = {self.older.get(name, name): value for name, value in options.items()}
        renamed.pop("", None)
        super().__init__(*arguments, **renamed)
