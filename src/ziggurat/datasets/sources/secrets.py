"""Redaction of secrets in stored or displayed text: user names, passwords and tokens in URIs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

__all__ = ["Credentials", "public_uri", "without_secrets", "without_user"]

_HIDDEN: Final = "***"
_SECRET_NAME: Final = re.compile(
    r"key|secret|token|passw|pwd|credential|signature|\bsig\b|auth|session|policy", re.IGNORECASE
)
_URI_IN_TEXT: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"`<>]+")
_USER: Final = re.compile(r"([^/@:?#]*(?::(?![0-9]+/)[^@]*|:[0-9]+)?)@")  # host:81/a@b has a port and no user
_SHORTEST: Final = 4  # hiding a shorter secret would black out parts of ordinary words


@dataclass(frozen=True)
class Credentials:
    """What a URI or its options say of who asks.

    Args:
        user: name, or the id of a key; empty for none.
        password: or secret key.
    """

    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, uri: str) -> Credentials:
        """Return those that a URI holds."""
        user, _, password = _split_user(uri)[0].partition(":")
        return cls(unquote(user), unquote(password))


def without_user(uri: str) -> str:
    """Return a URI without user and password."""
    return _split_user(uri)[1]


def public_uri(uri: str) -> str:
    """Return a URI without user, password and tokens; a path stays as it is.

    >>> public_uri("s3://AKIA:secret@flowers/train?version=2&token=abc")
    's3://flowers/train?version=2&token=***'
    """
    if "://" not in uri:
        return uri
    try:
        parts = urlsplit(without_user(uri))
    except ValueError:
        return f"{uri.partition('://')[0]}://{_HIDDEN}"
    pairs = [pair.partition("=") for pair in parts.query.split("&")] if parts.query else []
    query = "&".join(f"{name}{sign}{_HIDDEN if _SECRET_NAME.search(name) else value}" for name, sign, value in pairs)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def without_secrets(text: str, uri: str, storage: Mapping[str, Any]) -> str:
    """Return the text of an error without what the URI and the storage's options hold of secrets."""
    found = Credentials.of(uri)
    secrets = [found.user, found.password, *_texts_in(storage)]
    hidden = _URI_IN_TEXT.sub(lambda match: public_uri(match[0]), text)
    for secret in sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True):
        hidden = hidden.replace(secret, _HIDDEN).replace(quote(secret, safe=""), _HIDDEN)
    return hidden


def _split_user(uri: str) -> tuple[str, str]:
    """Return what stands before the host, and the URI without it. A secret key may have slashes, as those of S3 do."""
    scheme, sign, rest = uri.partition("://")
    found = _USER.match(rest)
    return (found[1], scheme + sign + rest[found.end() :]) if sign and found else ("", uri)


def _texts_in(storage: Mapping[str, Any]) -> list[str]:
    """Return the secret texts in options, those in options within options too."""
    found = []
    for name, value in storage.items():
        if isinstance(value, Mapping):
            found += _texts_in(value)
        elif isinstance(value, str) and _SECRET_NAME.search(name):
            found.append(value)
    return found
