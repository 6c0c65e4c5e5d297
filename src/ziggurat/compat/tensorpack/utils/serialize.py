"""Objects as bytes."""

from __future__ import annotations

import pickle
from typing import Any

__all__ = ["PickleSerializer", "dumps", "dumps_once", "loads", "loads_once"]


class PickleSerializer:
    """Objects as bytes of ``pickle``: to be loaded from sources that are trusted, and no others."""

    @staticmethod
    def dumps(obj: Any) -> bytes:
        """Return an object as bytes."""
        return pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def loads(buf: bytes) -> Any:
        """Return the object that ``dumps`` was given."""
        return pickle.loads(buf)


dumps = dumps_once = PickleSerializer.dumps
loads = loads_once = PickleSerializer.loads
