"""REST routes that are nothing but an operation: method, path, permission, parameters and text come from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Response
from pydantic import BaseModel

from ziggurat.api.responses import answer
from ziggurat.entities import Identity
from ziggurat.operations.use_case import UseCase
from ziggurat.server.dependencies import StudioDep
from ziggurat.server.permissions import require
from ziggurat.workspace.studio import Studio

__all__ = ["add_operation", "needs"]


def needs(use_case: UseCase[..., Any]) -> Any:
    """Return the requirement of a route that is written by hand around an operation."""
    return require(use_case.operation.role, use_case.operation.scope)


def add_operation(
    router: APIRouter,
    use_case: UseCase[..., Any],
    *,
    shape: Any = None,
    status: int = 200,
    body: type[BaseModel] | None = None,
    name: str = "",
    shown: Callable[[Studio, Any], Any] = lambda _studio, result: result,
) -> None:
    """Add the route of an operation. Its fields are those of the path and of the body, and else of the query; what
    the use case takes by keyword only is for pages.

    Args:
        router: the router; the operation's path begins with its prefix.
        use_case: its parameters have the names of the fields.
        shape: of the answer, for the documentation; None for an answer without content.
        status: of the answer.
        body: its fields are parameters of the use case.
        name: of the route in the OpenAPI document, which programs may rely on; that of the use case if empty.
        shown: what of the result is answered.
    """
    operation = use_case.operation
    hints = get_type_hints(use_case.run, include_extras=True)
    sent = set() if body is None else set(body.model_fields)
    own = [
        each.replace(annotation=hints[each.name], kind=each.KEYWORD_ONLY)
        for each in list(inspect.signature(use_case.run).parameters.values())[1:]
        if each.name not in sent and each.kind is each.POSITIONAL_OR_KEYWORD
    ]

    def route(studio: Studio, who: Identity, **given: Any) -> Response:
        content: BaseModel | None = given.pop("body", None)
        fields = {} if content is None else {name: getattr(content, name) for name in type(content).model_fields}
        result = use_case(studio, who, **given, **fields)
        return Response(status_code=204) if status == 204 else answer(shown(studio, result), status)

    parameters = [
        _keyword("studio", StudioDep),
        _keyword("who", Annotated[Identity, needs(use_case)]),
        *own,
        *([] if body is None else [_keyword("body", body)]),
    ]
    route.__signature__ = inspect.Signature(parameters, return_annotation=Response)  # pyright: ignore[reportFunctionMemberAccess]
    route.__name__, route.__doc__ = name or use_case.run.__name__, use_case.run.__doc__
    path = f"/api/v1{operation.path}".removeprefix(router.prefix)
    router.add_api_route(path, route, methods=[operation.method], response_model=shape, status_code=status)


def _keyword(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
