"""Error of a file of Caffe that cannot be imported; it names the line where there is one."""

from __future__ import annotations

from ziggurat.errors import DataError

__all__ = ["CaffeError"]


class CaffeError(DataError):
    """A file of Caffe is damaged, or asks for what an import does not know.

    Args:
        rule: as of every error.
        line: of the text, from 1; 0 where there is none.
        received: what came instead; empty for nothing to show.
        advice: what to do.
    """

    code = "caffe"

    def __init__(self, rule: str, *, line: int = 0, received: str = "", advice: str = "") -> None:
        options = {"received": received} if received else {}
        where = f"Line {line}: " if line else ""
        super().__init__(where + rule, advice=advice, details={"line": line} if line else {}, **options)
        self.line = line
