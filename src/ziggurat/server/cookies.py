"""Session cookie: its name, its attributes, and how it is read back."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.responses import Response

__all__ = ["clear_session", "cookie_name", "session_secret", "set_session"]


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
    """Make the browser forget the secret."""
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
