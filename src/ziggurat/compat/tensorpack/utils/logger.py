"""The logger behind the functions of Tensorpack's ``logger``, which some programs take from it."""

from __future__ import annotations

import logging
from typing import Any, Final

from ziggurat.tf import logger

__all__ = ["LOG_DIR", "_logger"]  # noqa: F822 - the first is given by `__getattr__`

_logger: Final[logging.Logger] = logger.info.__self__  # pyright: ignore[reportFunctionMemberAccess]


def __getattr__(name: str) -> Any:
    if name == "LOG_DIR":  # what programs before 0.8 read in place of `get_logger_dir`
        return logger.get_logger_dir()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
