"""HTTP transports that resolve a name once, check its addresses, and connect to exactly these."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

import httpx

from ziggurat.net.ssrf import AllowedAddresses, addresses_of

__all__ = [
    "DEFAULT_PORTS",
    "AddressRefusedError",
    "AsyncGuardedTransport",
    "GuardedTransport",
    "host_of",
    "port_of",
]

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_ONE_REQUEST: Final = httpx.Limits(max_keepalive_connections=0)
"""No connection is kept: one that was opened for a name must not serve another name at the same address."""


class AddressRefusedError(Exception):
    """A host may not be asked; nobody was.

    Args:
        host: as it is compared, an IPv6 address without brackets.
        port: of it.
    """

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host}:{port}")
        self.host = host
        self.port = port


class GuardedTransport(httpx.BaseTransport):
    """Sends requests to checked addresses; redirects, cookies and proxies are left to the caller.

    Errors of the resolver are ``OSError`` and ``UnicodeError``; an address that may not be asked is an
    ``AddressRefusedError``.

    Args:
        allowed: what may be asked; None for everything.
        verify: the TLS configuration.
    """

    def __init__(self, allowed: AllowedAddresses | None, *, verify: ssl.SSLContext | bool = True) -> None:
        self._allowed = allowed
        self._transport = httpx.HTTPTransport(verify=verify, limits=_ONE_REQUEST)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the beginning of what the first address answers that can be reached."""
        problem: Exception = httpx.ConnectError("the name stands for no address", request=request)
        addresses = addresses_of(host_of(request.url), port_of(request.url))
        for address in _checked(self._allowed, request.url, addresses):
            try:
                return self._transport.handle_request(_pinned(request, address))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                problem = error
        raise problem

    def close(self) -> None:
        """Close what is open."""
        self._transport.close()


class AsyncGuardedTransport(httpx.AsyncBaseTransport):
    """Does the same in an event loop; a slow resolver can be given up.

    Args:
        allowed: as in ``GuardedTransport``.
    """

    def __init__(self, allowed: AllowedAddresses | None) -> None:
        self._allowed = allowed
        self._transport = httpx.AsyncHTTPTransport(limits=_ONE_REQUEST)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the beginning of what the first address answers that can be reached."""
        problem: Exception = httpx.ConnectError("the name stands for no address", request=request)
        for address in _checked(self._allowed, request.url, await _resolved(request.url)):
            try:
                return await self._transport.handle_async_request(_pinned(request, address))
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                problem = error
        raise problem

    async def aclose(self) -> None:
        """Close what is open."""
        await self._transport.aclose()


def host_of(url: httpx.URL) -> str:
    """Return the host of a URL as it is resolved and compared: in ASCII letters, an IPv6 address without brackets."""
    return url.host if ":" in url.host else url.raw_host.decode("ascii")


def port_of(url: httpx.URL) -> int:
    """Return the port of a URL, that of its scheme where it says none."""
    return DEFAULT_PORTS[url.scheme] if url.port is None else url.port


def _checked(allowed: AllowedAddresses | None, url: httpx.URL, addresses: Sequence[str]) -> Sequence[str]:
    host, port = host_of(url), port_of(url)
    if allowed is not None and not allowed.allows(host, port, addresses):
        raise AddressRefusedError(host, port)
    return addresses


def _pinned(request: httpx.Request, address: str) -> httpx.Request:
    """Return the request to an address that was checked; ``Host`` and the certificate are still those of the name."""
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address, fragment=None),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host_of(request.url)},
    )


async def _resolved(url: httpx.URL) -> list[str]:
    """Resolve in a thread of its own: a pool's threads are waited for at the end, however long a resolver takes."""
    found: Future[list[str]] = Future()
    threading.Thread(target=_resolve, args=(host_of(url), port_of(url), found), daemon=True).start()
    return await asyncio.wrap_future(found)


def _resolve(host: str, port: int, found: Future[list[str]]) -> None:
    if not found.set_running_or_notify_cancel():
        return
    try:
        found.set_result(addresses_of(host, port))
    except (OSError, UnicodeError) as error:
        found.set_exception(error)
