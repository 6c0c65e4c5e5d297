"""The logger behind the functions of Tensorpack's ``logger``, which some programs take from it."""

from __future__ import annotations

import logging
from typing import Final

from ziggurat.tf import logger

__all__ = ["_logger"]

_logger: Final[logging.Logger] = logger.info.__self__  # pyright: ignore[reportFunctionMemberAccess]
