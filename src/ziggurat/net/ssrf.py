"""SSRF protection: which web addresses the server may fetch for users; also texts for HTTP status codes.

A server that fetches URLs named by users can be turned against its own network. The caller resolves a name once,
checks the resulting addresses here, and connects to exactly these addresses. After a redirect it repeats all of it.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Self

__all__ = ["AllowedAddresses", "addresses_of", "status_in_words"]

_THROUGH_IPV4: Final = ipaddress.IPv6Network("64:ff9b::/96")
_IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class AllowedAddresses:
    """What may be fetched: public addresses, and the hosts that a setting names, wherever they stand.

    Args:
        setting: its name, for messages.
        hosts: names, or names with a port, as they are compared.
    """

    setting: str
    hosts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, setting: str, value: str) -> Self:
        """Return what a setting allows; its value is names, or names with a port, with commas between them."""
        return cls(setting, frozenset(_plain(name) for name in value.split(",") if name.strip()))

    def names(self, host: str, port: int) -> bool:
        """Return whether the setting names a host; an address of six is given without its brackets."""
        name = _plain(f"[{host}]" if ":" in host else host)
        return not self.hosts.isdisjoint((name, f"{name}:{port}"))

    def allows(self, host: str, port: int, addresses: Iterable[str]) -> bool:
        """Return whether a host may be asked: all that its name stands for is public, or the setting names it."""
        return self.names(host, port) or all(map(_is_public, addresses))

    def rule(self, what: str) -> str:
        """Return the rule that an address broke.

        Args:
            what: is fetched, as the beginning of a sentence.
        """
        return f"{what} is fetched from a public address, or from a host that the setting `{self.setting}` names."

    @property
    def advice(self) -> str:
        """What helps, as a sentence."""
        return f"Who runs the studio can add the host to `{self.setting}`."


def addresses_of(host: str, port: int) -> list[str]:
    """Return the addresses that a name stands for now; it may take as long as the resolver likes.

    Raises:
        OSError: if it is unknown.
        UnicodeError: where it can be no name.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def status_in_words(number: int) -> str:
    """Return what a server answers for people: its number, and the usual words for it where there are some."""
    try:
        return f"{number} {HTTPStatus(number).phrase}"
    except ValueError:
        return str(number)


def _is_public(address: str) -> bool:
    """Return whether an address is one of the public internet."""
    try:
        return _is_global(ipaddress.ip_address(address))
    except ValueError:
        return False


def _is_global(address: _IPAddress) -> bool:
    """Return whether an address is public; one that stands for another is what that one is."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in _THROUGH_IPV4:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return _is_global(inner)
        if address.is_site_local or address.teredo is not None:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _plain(host: str) -> str:
    """Return a name, or a name with a port, as it is compared."""
    name, colon, port = host.strip().lower().rpartition(":")
    if not colon or not port.isdecimal():
        return host.strip().lower().rstrip(".")
    return f"{name.rstrip('.')}:{port}"
