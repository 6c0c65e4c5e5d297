"""HTTP client for GET and POST, on transports that resolve a name once and connect to the checked addresses alone.

Redirects of a GET request and the proxies of the environment are followed; each new address is checked like the first.
"""

from __future__ import annotations

import asyncio
import importlib
import ssl
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote

from ziggurat.net.ssrf import AllowedAddresses, addresses_of

if TYPE_CHECKING:
    import httpx

__all__ = [
    "DEFAULT_PORTS",
    "AddressRefusedError",
    "AsyncGuardedTransport",
    "ConnectionBrokenError",
    "HTTPClient",
    "HTTPResponse",
    "StatusError",
    "host_of",
    "port_of",
]

if not TYPE_CHECKING:

    class _LazyHTTPX:
        """The module httpx, imported at its first use: each worker imports this module, and few fetch anything."""

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module("httpx"), name)

    httpx = _LazyHTTPX()


_PLAIN: Final = "/%:@!$&'()*+,;=~?#[]-._"
_MOST_REDIRECTS: Final = 10
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_HEADERS: Final = {"User-Agent": "ziggurat", "Accept-Encoding": "identity", "Connection": "close"}


class StatusError(OSError):
    """A server answered, and not with what was asked for.

    Args:
        status: the HTTP status code.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP status {status}")
        self.status = status


class ConnectionBrokenError(OSError):
    """A response did not come to its end."""


class HTTPResponse:
    """A response with a body that was not read yet; a context manager that closes the connection.

    Args:
        response: of httpx.
        url: that answered.
        transport: that the connection belongs to.
    """

    def __init__(
        self, response: httpx.Response, url: httpx.URL, transport: GuardedTransport | httpx.BaseTransport
    ) -> None:
        self._response = response
        self._transport = transport
        self.url = str(url)
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_details: object) -> None:
        self.close()

    @property
    def length(self) -> int | None:
        """How many bytes the server says will come; None where it does not say."""
        length = self.headers.get("Content-Length", "")
        return int(length) if length.isdecimal() and "Content-Encoding" not in self.headers else None

    @property
    def media_type(self) -> str:
        """The media type, in small letters; empty where the server does not say."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def charset(self) -> str:
        """The encoding of a text, UTF-8 where the server does not say one that is known."""
        return self._response.charset_encoding or "utf-8"

    def parts(self) -> Iterator[bytes]:
        """Yield the body as it comes; nothing is decompressed.

        Raises:
            ConnectionBrokenError: where it does not come to its end.
        """
        try:
            yield from self._response.iter_raw()
        except httpx.HTTPError as error:
            raise ConnectionBrokenError(f"the connection broke ({type(error).__name__})") from None

    def content(self, most_bytes: int) -> bytes:
        """Return the whole body.

        Raises:
            ConnectionBrokenError: as ``parts``.
            OSError: where it is larger than asked for.
        """
        content = bytearray()
        for part in self.parts():
            content += part
            if len(content) > most_bytes:
                raise OSError(f"more than {most_bytes} bytes")
        return bytes(content)

    def close(self) -> None:
        """Close the connection."""
        self._response.close()
        self._transport.close()


class HTTPClient:
    """Sends requests to HTTP and HTTPS URLs and nothing else: a redirect to a file of this machine is refused.

    Args:
        timeout_s: how long a server may be silent.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout = dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)

    def get(self, url: str, *, allowed: AllowedAddresses | None = None, authorization: str = "") -> HTTPResponse:
        """Return the response, after redirects.

        Args:
            url: ``http://…`` or ``https://…``.
            allowed: what may be asked; None for everything.
            authorization: header for the host of ``url`` alone; a redirect does not take it to another.

        Raises:
            StatusError: where the server answers with an error, or with redirects that cannot be followed.
            OSError: if the host is unknown, or it does not answer.
            AddressRefusedError: where the host may not be asked.
        """
        headers = {"Authorization": authorization} if authorization else {}
        try:
            asked = first = httpx.URL(quote(url, safe=_PLAIN))
            response = self._sent("GET", first, allowed, headers)
            redirects = 0
            while redirects < _MOST_REDIRECTS and (following := _following(response, asked)) is not None:
                response.close()
                redirects, asked = redirects + 1, following
                is_same = asked.netloc == first.netloc and asked.scheme in (first.scheme, "https")
                response = self._sent("GET", asked, allowed, headers if is_same else {})
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise OSError(str(error) or type(error).__name__) from None
        if not 200 <= response.status < 300:
            response.close()
            raise StatusError(response.status)
        return response

    def post(
        self, url: str, content: bytes, *, headers: Mapping[str, str], allowed: AllowedAddresses | None = None
    ) -> None:
        """Send a body; what is answered is not read, and a redirect is not followed.

        Args:
            url: ``http://…`` or ``https://…``.
            content: the body.
            headers: of the request.
            allowed: what may be asked; None for everything.

        Raises:
            StatusError: where the server answers with anything but 2xx.
            TimeoutError: if it does not answer in time.
            OSError: if the host is unknown, or cannot be reached.
            AddressRefusedError: where the host may not be asked.
        """
        try:
            with self._sent("POST", httpx.URL(quote(url, safe=_PLAIN)), allowed, headers, content) as response:
                status = response.status
        except httpx.TimeoutException as error:
            raise TimeoutError(type(error).__name__) from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            raise OSError(str(error) or type(error).__name__) from None
        if not 200 <= status < 300:
            raise StatusError(status)

    def _sent(
        self,
        method: str,
        url: httpx.URL,
        allowed: AllowedAddresses | None,
        headers: Mapping[str, str],
        content: bytes | None = None,
    ) -> HTTPResponse:
        if url.scheme not in DEFAULT_PORTS or not url.host:
            raise httpx.UnsupportedProtocol("the address begins with http:// or https://")
        extensions = {"timeout": self._timeout}
        request = httpx.Request(method, url, headers={**_HEADERS, **headers}, content=content, extensions=extensions)
        transport = self._transport(url, allowed)
        try:
            return HTTPResponse(transport.handle_request(request), url, transport)
        except BaseException:
            transport.close()
            raise

    def _transport(self, url: httpx.URL, allowed: AllowedAddresses | None) -> GuardedTransport | httpx.BaseTransport:
        """Return a transport, through the proxy of the environment where there is one.

        The proxy resolves the name then, and it cannot be checked: where addresses are limited, only hosts that are
        named go through one.
        """
        host, port = host_of(url), port_of(url)
        proxy = urllib.request.getproxies().get(url.scheme, "")
        is_named = allowed is None or allowed.names(host, port)
        if proxy and is_named and not urllib.request.proxy_bypass(f"{host}:{port}"):
            return httpx.HTTPTransport(proxy=proxy if "://" in proxy else f"http://{proxy}", verify=self._tls)
        return GuardedTransport(allowed, verify=self._tls)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()


def _following(response: HTTPResponse, url: httpx.URL) -> httpx.URL | None:
    """Return where a redirect leads; None for another response, and for a redirect that leads out of the web."""
    location = response.headers.get("Location", "")
    if response.status not in _REDIRECTS or not location:
        return None
    target = url.join(location)
    return target if target.scheme in DEFAULT_PORTS and target.host else None


DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class AddressRefusedError(Exception):
    """A host is not allowed; no request was sent.

    Args:
        host: as it is compared, an IPv6 address without brackets.
        port: TCP port of that host.
    """

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host}:{port}")
        self.host = host
        self.port = port


class GuardedTransport:
    """Sends requests to checked addresses; redirects, cookies and proxies are left to the caller.

    Errors of the resolver are ``OSError`` and ``UnicodeError``; an address that may not be asked is an
    ``AddressRefusedError``.

    Args:
        allowed: what may be asked; None for everything.
        verify: the TLS configuration.
    """

    def __init__(self, allowed: AllowedAddresses | None, *, verify: ssl.SSLContext | bool = True) -> None:
        self._allowed = allowed
        self._transport = httpx.HTTPTransport(verify=verify, limits=_one_request())

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


class AsyncGuardedTransport:
    """Does the same in an event loop; a slow resolver can be given up.

    Args:
        allowed: as in ``GuardedTransport``.
    """

    def __init__(self, allowed: AllowedAddresses | None) -> None:
        self._allowed = allowed
        self._transport = httpx.AsyncHTTPTransport(limits=_one_request())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

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


def _one_request() -> httpx.Limits:
    # No connection is kept: one that was opened for a name must not serve another name at the same address.
    return httpx.Limits(max_keepalive_connections=0)


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
