"""Conversion of a studio's error responses back to the Ziggurat errors that the server raised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ziggurat.errors import UsageError, ZigguratError

__all__ = ["error_of"]

_SHOWN = 500


def error_of(status: int, shape: Any, text: str = "") -> ZigguratError:
    """Return the error of an answer.

    Args:
        status: of HTTP; kept as ``details["status"]``.
        shape: decoded JSON of the answer.
        text: of the answer, where it is no JSON.
    """
    if not isinstance(shape, Mapping) or not isinstance(shape.get("rule"), str):
        return UsageError(
            f"A studio answers with JSON; this answer has the status {status}.",
            received=text[:_SHOWN] or "nothing",
            advice="Check the address; a proxy may stand in between.",
            details={"status": status},
        )
    code = str(shape.get("error", ""))
    family = next((each for each in _families(ZigguratError) if each.code == code), _family_of_status(status))
    return _made(family, code, status, shape)


def _made(family: type[ZigguratError], code: str, status: int, shape: Mapping[str, Any]) -> ZigguratError:
    error = family.__new__(family)
    options = {"received": shape["received"]} if "received" in shape else {}
    details = {**(shape.get("details") or {}), "status": status}
    # The families have constructors of their own; the answer holds what these would make.
    ZigguratError.__init__(error, shape["rule"], advice=shape.get("advice", ""), details=details, **options)
    error.__dict__["code"] = code
    return error


def _families(family: type[ZigguratError]) -> Iterator[type[ZigguratError]]:
    yield family
    for each in family.__subclasses__():
        yield from _families(each)


def _family_of_status(status: int) -> type[ZigguratError]:
    return UsageError if status < 500 else ZigguratError
