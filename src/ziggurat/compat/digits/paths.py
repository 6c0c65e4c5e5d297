"""Paths of DIGITS's JSON routes, each in the two spellings of its documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import APIRouter

from ziggurat.api.schemas import Json

__all__ = ["json_route"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def json_route(router: APIRouter, method: str, path: str) -> Callable[[_Function], _Function]:
    """Return a decorator that makes a function answer at ``path.json`` and at ``path/json``.

    Args:
        router: of the routes.
        method: such as ``GET``.
        path: without the ending; only the first spelling is in the OpenAPI document.
    """

    def decorate(function: _Function) -> _Function:
        for address, is_shown in ((f"{path}.json", True), (f"{path}/json", False)):
            router.api_route(address, methods=[method], response_model=Json, include_in_schema=is_shown)(function)
        return function

    return decorate
