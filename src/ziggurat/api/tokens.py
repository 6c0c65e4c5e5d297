"""Routes for API tokens."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.api.account_schemas import NewToken, NewTokenShape, TokenShape, token_shape
from ziggurat.entities import Identity, User
from ziggurat.errors import UsageError
from ziggurat.server.dependencies import accounts_of
from ziggurat.server.http_errors import ForbiddenError
from ziggurat.server.permissions import new_router, require

__all__ = ["router"]

router = new_router(prefix="/api/v1", tags=["tokens"])


@router.get("/tokens", summary="Tokens")
def tokens(
    request: Request,
    identity: Annotated[Identity, require("viewer", "read")],
    everybody: Annotated[bool, Query(description="Those of all users; for admins.")] = False,
) -> list[TokenShape]:
    """Return one's own tokens, the newest first, revoked ones too; never a secret."""
    people = accounts_of(request)
    if everybody and not identity.may("admin", "read"):
        raise ForbiddenError("Only an admin sees the tokens of others.", advice="Ask for your own.")
    if not everybody and identity.user is None:
        return []
    names = {user.id: user.name for user in people.users()}
    found = people.tokens(None if everybody else identity.user)
    return [token_shape(token, names.get(token.user_id, "")) for token in found]


@router.post("/tokens", status_code=201, summary="Make a token")
def create_token(
    request: Request, sent: NewToken, identity: Annotated[Identity, require("viewer", "admin")]
) -> NewTokenShape:
    """Make a token of one's own. Its secret is shown this once. What it may do, one's role limits further."""
    user = _account(identity)
    token, secret = accounts_of(request).create_token(
        user.name, sent.name, scope=sent.scope, by=identity, good_for_s=sent.expires_in_s
    )
    return NewTokenShape(secret=secret, **token_shape(token, user.name).model_dump())


@router.delete("/tokens/{token_id}", status_code=204, summary="Revoke a token")
async def revoke_token(
    request: Request, token_id: int, identity: Annotated[Identity, require("viewer", "admin")]
) -> Response:
    """Make a token good for nothing, at once; admins may do so with those of others."""
    whose = None if identity.may("admin", "admin") else _account(identity)
    await run_in_threadpool(accounts_of(request).revoke_token, token_id, by=identity, of=whose)
    request.app.state.streams.recheck()
    return Response(status_code=204)


def _account(identity: Identity) -> User:
    if identity.user is None:
        raise UsageError("Only somebody with an account has tokens.", advice="Make an account first.")
    return identity.user
