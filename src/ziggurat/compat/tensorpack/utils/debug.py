"""A trace of calls."""

from __future__ import annotations

import sys
from typing import Any

from ziggurat.tf import logger

__all__ = ["enable_call_trace"]


def enable_call_trace() -> None:
    """Print each call of a function from here on, with the line that calls it."""

    def trace(frame: Any, event: str, _argument: Any) -> None:
        code, caller = frame.f_code, frame.f_back
        if event == "call" and caller is not None and code.co_name not in ("write", "print"):
            print(f"{caller.f_code.co_filename}:{caller.f_lineno} calls {code.co_name}", file=sys.__stdout__)

    logger.info("Each call is printed from here on.")
    sys.settrace(trace)
