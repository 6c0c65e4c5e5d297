"""HTTP client for sources: HTTP and HTTPS only, and an address allowlist when it fetches for other users.

A user on their own machine may fetch any address. A worker of a studio fetches for other users: ``limit_addresses``
sets once which addresses they may name, and no connection goes anywhere else, even after a redirect.
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import urllib.request
from contextlib import closing
from email.message import Message
from typing import IO, Any, Final, cast
from urllib.parse import quote, urlsplit

from ziggurat.datasets.sources.secrets import Credentials
from ziggurat.errors import DataError
from ziggurat.net.ssrf import AllowedAddresses, addresses_of

__all__ = ["WebClient", "address_limits", "host_of", "length_of", "limit_addresses"]

_PLAIN: Final = "/%:@!$&'()*+,;=~?#[]-._"
_PORTS: Final = {"http": 80, "https": 443}

_allowed: AllowedAddresses | None = None


def limit_addresses(allowed: AllowedAddresses | None) -> None:
    """Say for all of this process what may be fetched; None for everything, as it is at the beginning."""
    global _allowed
    _allowed = allowed


def address_limits() -> AllowedAddresses | None:
    """Return what may be fetched in this process, for those that it starts; None for everything."""
    return _allowed


class WebClient:
    """Opens URLs of the web and nothing else: a redirect to a file of this machine is refused.

    Args:
        timeout_s: how long a server may be silent.
        credentials: sent to one host only.
        host: that gets them, with its port.
    """

    def __init__(self, timeout_s: float, credentials: Credentials | None = None, host: str = "") -> None:
        self._timeout_s = timeout_s
        self._header = _authorization(credentials) if credentials is not None and credentials.user else None
        self._host = host
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            _Proxies(),
            _Http(),
            _Https(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _Redirects(self._request),
            urllib.request.UnknownHandler(),
        ):
            self._opener.add_handler(handler)

    def open(self, url: str) -> Any:
        """Return the response to a GET.

        Raises:
            OSError: where the server is not there, refuses, or answers with an error (``HTTPError``).
            DataError: where the address is none that may be fetched here.
        """
        return self._opener.open(self._request(url), timeout=self._timeout_s)

    def content(self, url: str, most_bytes: int) -> bytes:
        """Return what a URL has.

        Raises:
            OSError: as ``open``, and where it is larger than asked for, or is cut off.
            DataError: as ``open``.
        """
        with closing(self.open(url)) as response:
            content = response.read(most_bytes + 1)
            expected = length_of(response)
        if len(content) > most_bytes:
            raise OSError(f"more than {most_bytes} bytes")
        if expected is not None and len(content) != expected:
            raise OSError(f"{len(content)} of {expected} bytes came")
        return content

    def _request(self, url: str) -> urllib.request.Request:
        request = _Request(quote(url, safe=_PLAIN), headers={"User-Agent": "ziggurat"})
        if self._header is not None and host_of(url) == self._host:
            request.add_unredirected_header("Authorization", self._header)
        return request


def length_of(response: Any) -> int | None:
    """Return how many bytes a server says will come; None where it does not say."""
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() and "Content-Encoding" not in response.headers else None


def host_of(url: str) -> str:
    """Return the host of a URL, with its port where it says one."""
    return urlsplit(url).netloc.lower()


def _authorization(credentials: Credentials) -> str:
    pair = f"{credentials.user}:{credentials.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"


class _Request(urllib.request.Request):
    is_through_proxy: bool = False


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects; credentials go on to the same host only."""

    def __init__(self, request: Any) -> None:
        self._request = request

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme not in ("http", "https"):
            return None
        return self._request(newurl) if super().redirect_request(req, fp, code, msg, headers, newurl) else None  # type: ignore[arg-type]


class _Proxies(urllib.request.ProxyHandler):
    """Asks through the proxies of the environment.

    What a name stands for is found by the proxy then, and nobody could check it: where addresses are limited, only
    hosts that are named go through one.
    """

    def proxy_open(self, req: urllib.request.Request, proxy: str, type: str) -> Any:  # noqa: A002 - its name there
        parts = urlsplit(req.full_url)
        if _allowed is not None and not _allowed.names(parts.hostname or "", parts.port or _PORTS[parts.scheme]):
            return None
        before = req.host
        answer = super().proxy_open(req, proxy, type)
        cast("_Request", req).is_through_proxy = req.host != before
        return answer


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_CheckedConnection if _is_checked(req) else http.client.HTTPConnection, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self) -> None:
        self._tls = ssl.create_default_context()
        super().__init__(context=self._tls)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        connection = _CheckedTlsConnection if _is_checked(req) else http.client.HTTPSConnection
        return self.do_open(connection, req, context=self._tls)


def _is_checked(request: urllib.request.Request) -> bool:
    return _allowed is not None and not cast("_Request", request).is_through_proxy


class _CheckedConnection(http.client.HTTPConnection):
    """Connects to an address that was checked, as the name was resolved for this very connection."""

    def connect(self) -> None:
        self.sock = _connected(self.host, self.port, self.timeout)


class _CheckedTlsConnection(http.client.HTTPSConnection):
    """Does so too; the certificate is that of the name."""

    def __init__(self, host: str, *, context: ssl.SSLContext, **options: Any) -> None:
        super().__init__(host, context=context, **options)
        self._tls = context

    def connect(self) -> None:
        plain = _connected(self.host, self.port, self.timeout)
        try:
            self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


def _connected(host: str, port: int, timeout_s: float | None) -> socket.socket:
    """Return a connection to the first address of a host that can be reached; all of them were checked.

    Raises:
        DataError: where one of them may not be asked.
        OSError: where nobody knows the host, or it cannot be reached.
    """
    addresses = addresses_of(host, port)
    if _allowed is not None and not _allowed.allows(host, port, addresses):
        raise DataError(
            _allowed.rule("What a dataset is made of"),
            received=f"`{host}:{port}`, which is in a network of the studio's machine",
            advice=f"Send the files, or name a folder. {_allowed.advice}",
        )
    problem: OSError = OSError(f"{host} stands for no address")
    for address in addresses:
        try:
            connection = socket.create_connection((address, port), timeout_s)
        except OSError as error:
            problem = error
            continue
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    raise problem
