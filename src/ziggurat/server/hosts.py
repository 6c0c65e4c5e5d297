"""Checks of the names in a request: the requested host, and the site that sent the request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from ziggurat.workspace.accounts import is_loopback

__all__ = ["SAFE_METHODS", "HostRule", "host_of", "is_cross_site", "is_foreign_embedding"]

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods that change nothing."""

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?\.?)(:[0-9]{1,5})?", re.IGNORECASE)
_OWN_SITE = ("same-origin", "none")
_EMBEDDED = ("iframe", "frame", "embed", "object")


class HostRule:
    """Which names the studio answers to.

    Args:
        hosts: names such as ``studio.example.org`` or ``*.example.org``; ``*`` for all.
        public_bind: whether it listens beyond this machine; it then answers to any name where ``hosts`` is empty.
    """

    def __init__(self, hosts: Iterable[str], *, public_bind: bool) -> None:
        self._hosts = tuple(host.lower().rstrip(".") for host in hosts)
        self._takes_all = "*" in self._hosts or (public_bind and not self._hosts)

    def allows(self, host: str) -> bool:
        """Return whether a name, as ``host_of`` returns it, is one of them; loopback names always are."""
        if self._takes_all or is_loopback(host):
            return True
        return any(host == known or (known[:2] == "*." and host.endswith(known[1:])) for known in self._hosts)


def host_of(headers: Headers) -> str | None:
    """Return the name of the ``Host`` header in small letters, without its port; None where it is not valid."""
    given = headers.getlist("host")
    match = _HOST.fullmatch(given[0]) if len(given) == 1 else None
    return None if match is None else match.group(1).lower().rstrip(".")


def is_cross_site(headers: Headers) -> bool:
    """Return whether a page of another site made a browser send the request.

    Every browser of today says so by ``Sec-Fetch-Site``, but over plain HTTP only to loopback; else ``Origin`` says it.
    Programs send neither.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in _OWN_SITE
    origin = headers.get("origin")
    return origin is not None and _authority(origin) != _without_default_port(headers.get("host", ""))


def is_foreign_embedding(headers: Headers) -> bool:
    """Return whether another site embeds or fetches something, rather than linking to it."""
    if headers.get("sec-fetch-site", "none") in _OWN_SITE:
        return False
    return headers.get("sec-fetch-mode") != "navigate" or headers.get("sec-fetch-dest") in _EMBEDDED


def _authority(origin: str) -> str | None:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return _without_default_port(parts.netloc) if parts.scheme in ("http", "https") and parts.netloc else None


def _without_default_port(authority: str) -> str:
    return re.sub(r":(80|443)$", "", authority.lower())
