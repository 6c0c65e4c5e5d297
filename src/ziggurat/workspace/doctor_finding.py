"""Result of one diagnostic check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Finding"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        section: ``python``, ``packages``, ``extras``, ``backends``, ``plugins``, ``machine``, ``workspace`` or
            ``studio``.
        name: what it is.
        level: ``ok``, ``note`` (something optional is not there) or ``problem``.
        text: what was found.
        advice: how to mend it; empty where nothing has to be.
    """

    section: str
    name: str
    level: str
    text: str
    advice: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)
