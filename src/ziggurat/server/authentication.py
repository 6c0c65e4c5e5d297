"""Authentication of every request, by token or session cookie: the same code for pages, API and event stream."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response

from ziggurat.entities import Identity
from ziggurat.server.errors import HTTPError, NotLoggedInError
from ziggurat.server.middleware import SAFE_METHODS, host_of, is_cross_site, is_foreign_embedding
from ziggurat.workspace.accounts import LOCAL, NOBODY, Accounts, ForbiddenError, check_permission, is_loopback

__all__ = ["Authenticator", "address_of", "clear_session", "session_secret", "set_session"]


_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")


class Authenticator:
    """Tells who is asking, and lets them in or not.

    Args:
        people: of the studio.
        public_bind: whether the studio listens beyond this machine; an account is then required.
    """

    def __init__(self, people: Accounts, *, public_bind: bool) -> None:
        self._people = people
        self._public_bind = public_bind

    async def identity(self, connection: HTTPConnection) -> Identity:
        """Return who is asking, as things are now: an ended session counts as anonymous.

        Raises:
            HTTPError: 401 where a bearer token is not good; a cookie does not help then.
        """
        return await run_in_threadpool(self._identity, connection)

    async def admit(self, connection: HTTPConnection, role: str, scope: str) -> Identity:
        """Return who is asking, where they may have what needs this role and scope.

        Args:
            connection: of the request.
            role: at least needed; empty for public access.
            scope: at least needed, where there is a role.

        Raises:
            HTTPError: 401 where they must log in; 403 where they may not, or another site made their browser ask.
        """
        identity = await self.identity(connection)
        _check_site(connection, identity)
        if not role:
            return identity
        if identity.by == "nobody":
            raise _log_in()
        try:
            check_permission(identity, role, scope)
        except ForbiddenError as error:
            connection.scope.setdefault("state", {})["identity"] = identity  # the page that says so is one of theirs
            raise HTTPError(error) from None
        return identity

    def _identity(self, connection: HTTPConnection) -> Identity:
        bearer = _bearer(connection.headers)
        if bearer is not None:
            found = self._people.identity_of_token(bearer)
            if found is None:
                raise _bad_token()
            return found
        secret = session_secret(connection)
        found = None if secret is None else self._people.identity_of_session(secret)
        if found is not None:
            return found
        return LOCAL if self.is_local(connection) and not self._people.has_accounts() else NOBODY

    def is_local(self, connection: HTTPConnection) -> bool:
        """Return whether the client is a user of this machine.

        The address alone is not enough: the browser of a local user may show a page whose host name leads
        here (DNS rebinding), so the name that was asked for must be loopback's own; and a proxy passes on what
        strangers ask.
        """
        client, host = connection.client, host_of(connection.headers)
        if self._public_bind or client is None or host is None:
            return False
        if any(name in connection.headers for name in _FORWARDED):
            return False
        return is_loopback(client.host) and is_loopback(host)


def address_of(connection: HTTPConnection) -> str:
    """Return the address that a request comes from, for limits and the record; empty where it is not known."""
    return connection.client.host if connection.client is not None else ""


def _bearer(headers: Headers) -> str | None:
    kind, _, secret = headers.get("authorization", "").partition(" ")
    return secret.strip() if kind.lower() == "bearer" else None


def _check_site(connection: HTTPConnection, identity: Identity) -> None:
    if identity.by == "token":
        return  # no browser adds a token by itself
    is_safe = connection.scope.get("method", "GET") in SAFE_METHODS
    if connection.scope["type"] == "websocket":
        is_safe = False  # it is opened by GET, and no rule of the browser keeps other sites from it
    bad = is_cross_site(connection.headers) if not is_safe else is_foreign_embedding(connection.headers)
    if bad and not (is_safe and identity.by == "nobody"):
        raise HTTPError(
            ForbiddenError(
                "A request must come from the studio's own pages, or from a program with a token.",
                received=repr(_site(connection.headers)[:200]),
                advice="Open the studio itself and do it there.",
            )
        )


def _site(headers: Headers) -> str:
    return headers.get("origin") or headers.get("sec-fetch-site") or "another site"


def _log_in() -> HTTPError:
    error = NotLoggedInError(
        "Log in first.",
        advice="Log in at POST /api/v1/login, or send a token as `Authorization: Bearer zig_…`.",
    )
    return HTTPError(error)


def _bad_token() -> HTTPError:
    error = NotLoggedInError("The token is unknown, revoked or expired.", advice="Make a new one.")
    return HTTPError(error, headers={"WWW-Authenticate": 'Bearer realm="ziggurat", error="invalid_token"'})


def cookie_name(connection: HTTPConnection) -> str:
    """Return the name of the cookie.

    Cookies do not tell ports apart, so the name does: two studios on one machine do not log each other out. Names that
    begin with ``__Host-`` or ``__Secure-`` are taken by a browser from this very host, or over HTTPS, alone.
    """
    port = connection.headers.get("host", "").rpartition("]")[2].partition(":")[2]
    name = f"ziggurat_session_{port}" if port.isdecimal() else "ziggurat_session"
    if not _is_https(connection):
        return name
    return f"__Secure-{name}" if connection.scope.get("root_path") else f"__Host-{name}"


def session_secret(connection: HTTPConnection) -> str | None:
    """Return the secret that the browser sent, or None.

    Several different ones are as good as none: one of them was planted by a neighbor (another port, a sibling domain).
    """
    name, found = cookie_name(connection), set()
    for header in connection.headers.getlist("cookie"):
        for part in header.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name:
                found.add(value)
    return found.pop() if len(found) == 1 else None


def set_session(response: Response, connection: HTTPConnection, secret: str, *, longest_s: int) -> None:
    """Give the browser the secret of a session.

    Args:
        response: that takes it there.
        connection: that it answers.
        secret: of the session.
        longest_s: seconds after which the browser forgets it.
    """
    response.set_cookie(
        cookie_name(connection),
        secret,
        max_age=longest_s,
        path=_path(connection),
        secure=_is_https(connection),
        httponly=True,
        samesite="lax",
    )


def clear_session(response: Response, connection: HTTPConnection) -> None:
    """Make the browser forget the secret, and what it keeps of private images, so that pages need not ask for each.

    Browsers obey over HTTPS and at the address of the own machine.
    """
    response.headers["Clear-Site-Data"] = '"cache"'
    response.delete_cookie(
        cookie_name(connection),
        path=_path(connection),
        secure=_is_https(connection),
        httponly=True,
        samesite="lax",
    )


def _path(connection: HTTPConnection) -> str:
    return connection.scope.get("root_path") or "/"


def _is_https(connection: HTTPConnection) -> bool:
    return connection.scope.get("scheme") in ("https", "wss")
