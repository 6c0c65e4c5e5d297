"""A namespace for the whole program."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

__all__ = ["GlobalNS", "globalns"]


class GlobalNS(SimpleNamespace):
    """Attributes of any name."""

    def use_argument(self, args: argparse.Namespace) -> None:
        """Take all arguments of a command line as attributes."""
        vars(self).update(vars(args))


globalns = GlobalNS()
"""The one that a program's modules share."""
