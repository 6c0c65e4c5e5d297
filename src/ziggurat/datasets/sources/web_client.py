"""HTTP client for sources, with an address allowlist when it fetches for other users.

A user on their own machine may fetch any address. A worker of a studio fetches for other users: ``limit_addresses``
sets once which addresses they may name, and no connection goes anywhere else, even after a redirect.
"""

from __future__ import annotations

import base64
from urllib.parse import urlsplit

from ziggurat.datasets.sources.secrets import Credentials
from ziggurat.errors import DataError
from ziggurat.net.http_client import AddressRefusedError, HTTPClient, HTTPResponse
from ziggurat.net.ssrf import AllowedAddresses

__all__ = ["WebClient", "address_limits", "host_of", "limit_addresses"]

_allowed: AllowedAddresses | None = None


def limit_addresses(allowed: AllowedAddresses | None) -> None:
    """Say for all of this process what may be fetched; None for everything, as it is at the beginning."""
    global _allowed
    _allowed = allowed


def address_limits() -> AllowedAddresses | None:
    """Return what may be fetched in this process, for those that it starts; None for everything."""
    return _allowed


class WebClient:
    """Opens URLs within the limits of this process.

    Args:
        timeout_s: how long a server may be silent.
        credentials: sent to one host only.
        host: that gets them, with its port.
    """

    def __init__(self, timeout_s: float, credentials: Credentials | None = None, host: str = "") -> None:
        self._client = HTTPClient(timeout_s)
        self._authorization = _authorization(credentials) if credentials is not None and credentials.user else ""
        self._host = host

    def open(self, url: str) -> HTTPResponse:
        """Return the response to a GET.

        Raises:
            OSError: where the server is not there, refuses, or answers with an error (``StatusError``).
            DataError: where the address is none that may be fetched here.
        """
        authorization = self._authorization if host_of(url) == self._host else ""
        try:
            return self._client.get(url, allowed=_allowed, authorization=authorization)
        except AddressRefusedError as error:
            limits = _allowed or AllowedAddresses("source_hosts")
            raise DataError(
                limits.rule("What a dataset is made of"),
                received=f"`{error.host}:{error.port}`, which is in a network of the studio's machine",
                advice=f"Send the files, or name a folder. {limits.advice}",
            ) from None

    def content(self, url: str, most_bytes: int) -> bytes:
        """Return what a URL has.

        Raises:
            OSError: as ``open``, and where it is larger than asked for, or is cut off.
            DataError: as ``open``.
        """
        with self.open(url) as response:
            return response.content(most_bytes)


def host_of(url: str) -> str:
    """Return the host of a URL, with its port where it says one."""
    return urlsplit(url).netloc.lower()


def _authorization(credentials: Credentials) -> str:
    pair = f"{credentials.user}:{credentials.password}".encode()
    return f"Basic {base64.b64encode(pair).decode()}"
